"""Run commands in a Linux sandbox that sees only the files and hosts you allow.

The program ``llm-do`` does the work: that of the variable ``LLM_DO``, else the first one on ``PATH``. Each call starts it
with the options of ``llm-do exec --json`` and reads its result. A policy is the text of ``--profile``.

Who ends whom: ``run`` ends the program before an exception leaves it, and the program ends when this process ends
(``--die-with-parent``). A ``Sandbox`` has a keeper, a shell that reads from a pipe of this process. The end of that pipe, or a
line in it, makes the keeper stop the sandbox. So the sandbox ends with this process, however this process ends.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import secrets
import subprocess
import tempfile
import weakref
from dataclasses import dataclass, field
from typing import IO, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

__all__ = [
    'AnyCommand',
    'Denial',
    'OptionsError',
    'Result',
    'Sandbox',
    'SandboxError',
    'batch',
    'run',
    'run_async',
]

Word = Union[str, bytes, 'os.PathLike[str]', 'os.PathLike[bytes]']
AnyCommand = Sequence[Word]
#: The keys of a profile, or the name or path of a profile.
Policy = Union[Mapping[str, Any], str, 'os.PathLike[str]']
#: Seconds, or a text such as ``'1m'`` or ``'none'``.
Timeout = Union[int, float, str]
#: Text, bytes, or a file that has a descriptor.
Stdin = Union[str, bytes, IO[Any], int]
Variables = Mapping[str, str]
Directory = Union[str, 'os.PathLike[str]']

#: How long the program may take to end a sandbox; it needs a quarter of a second for a command that ignores SIGTERM.
_GRACE_SECONDS = 10.0


class SandboxError(Exception):
    """The command did not run, or its end is unknown. A command that fails is a result."""

    def __init__(self, code: str, message: str, hint: str = '', result: Optional[Result] = None) -> None:
        super().__init__(f'{code}: {message}')
        #: Stable, of docs/reference/errors.md.
        self.code = code
        self.message = message
        #: What to do, empty if nothing is known.
        self.hint = hint
        #: The result that has this error, if the program printed one.
        self.result = result


class OptionsError(TypeError):
    """A mistake of the calling program. Nothing was started."""

    code = 'OPTIONS_INVALID'


@dataclass(frozen=True)
class Denial:
    """Something that the sandbox refused."""

    layer: str
    operation: str
    target: str
    count: int
    #: The option and the key of a policy that allow it; empty if nothing does.
    fix: str
    key: str
    evidence: str


@dataclass(frozen=True)
class Result:
    """How a command ended: docs/reference/result.md. Times are milliseconds."""

    ok: bool
    exit_code: Optional[int]
    signal: Optional[str]
    #: exit, signal, timeout, memory, cpu-time, disk, pids, seccomp, protected, denied, setup, cancelled or lost
    reason: str
    stdout: str
    stderr: str
    message: str
    denials: Tuple[Denial, ...]
    hints: Tuple[str, ...]
    warnings: Tuple[str, ...]
    stdout_bytes: bytes = field(repr=False)
    stderr_bytes: bytes = field(repr=False)
    #: Every field as the program printed it.
    json: Mapping[str, Any] = field(repr=False)
    #: Only in results of ``batch``; all other calls raise it.
    error: Optional[SandboxError] = None


def run(
    cmd: AnyCommand,
    *,
    policy: Optional[Policy] = None,
    timeout: Optional[Timeout] = None,
    env: Optional[Variables] = None,
    cwd: Optional[Directory] = None,
    stdin: Optional[Stdin] = None,
) -> Result:
    """Run one command in one sandbox.

    :param cmd: words; a line of shell is ``['sh', '-c', line]``
    :param policy: keys of a profile above ``extends`` (``default``), or the name or path of a profile; paths are relative to ``cwd``
    :param timeout: seconds, or a text with a unit; the policy decides if absent
    :param env: variables of the command, in addition to those of the policy
    :param cwd: the workspace (the directory of this process)
    :param stdin: text, bytes or a file (empty)
    :raises SandboxError: if the command did not run, or its end is unknown
    :raises OptionsError: if an argument is wrong
    """
    return _run(_exec_call(cmd, policy, timeout, env, cwd), stdin)


async def run_async(
    cmd: AnyCommand,
    *,
    policy: Optional[Policy] = None,
    timeout: Optional[Timeout] = None,
    env: Optional[Variables] = None,
    cwd: Optional[Directory] = None,
    stdin: Optional[Stdin] = None,
) -> Result:
    """The same as :func:`run`. Cancelling the task ends the sandbox."""
    return await _run_async(_exec_call(cmd, policy, timeout, env, cwd), stdin)


def batch(
    commands: Iterable[Sequence[str]],
    *,
    jobs: Optional[int] = None,
    policy: Optional[Policy] = None,
    timeout: Optional[Timeout] = None,
    env: Optional[Variables] = None,
    cwd: Optional[Directory] = None,
) -> Iterator[Result]:
    """Run each command in its own sandbox, several at once.

    Yields the results in the order of the commands. One that was refused has an ``error``. Closing the iterator ends the rest.

    :param jobs: how many at once (one per processor)
    """
    options = _policy_options(policy, timeout) + ([] if jobs is None else ['--jobs', str(jobs)])
    lines = [json.dumps({'command': [_text(word) for word in _words(one)]}) + '\n' for one in commands]
    return _batch(_call(['batch', '--ordered', '--die-with-parent', *options], env, cwd, ['-']), ''.join(lines))


class Sandbox:
    """A sandbox that lives on between commands: they share its files, processes and limits.

    It begins with ``with``, ``async with`` or :meth:`open`, and ends with the block, :meth:`close`, the garbage collector or
    this process.

    :param policy: as of :func:`run`; so are ``env`` and ``cwd``
    :param timeout: of the whole sandbox (none)
    """

    def __init__(
        self,
        *,
        policy: Optional[Policy] = None,
        timeout: Optional[Timeout] = None,
        env: Optional[Variables] = None,
        cwd: Optional[Directory] = None,
    ) -> None:
        #: As ``llm-do ps`` and ``llm-do logs`` know it.
        self.name = f'python-{secrets.token_hex(8)}'
        options = ['run', '--name', self.name, *_policy_options(policy, timeout)]
        self._call = _call(options, env, cwd, ['--', 'sleep', 'infinity'])
        self._end: Optional[weakref.finalize[Any, Any]] = None

    def open(self) -> Sandbox:
        """Start it; ``with`` does this."""
        if self._end is None:
            self._end = weakref.finalize(self, _stop, _keep(self.name, self._call), os.getpid())
        return self

    def close(self) -> None:
        """End it and everything inside."""
        if self._end is not None:
            self._end()

    def run(
        self,
        cmd: AnyCommand,
        *,
        timeout: Optional[Timeout] = None,
        env: Optional[Variables] = None,
        cwd: Optional[Directory] = None,
        stdin: Optional[Stdin] = None,
        keep_state: bool = False,
    ) -> Result:
        """Run a command in it.

        :param cwd: a directory inside (that in which the sandbox began)
        :param keep_state: keep the directory and the exported variables for the next command that says so
        """
        return _run(self._inside(cmd, timeout, env, cwd, keep_state), stdin)

    async def run_async(
        self,
        cmd: AnyCommand,
        *,
        timeout: Optional[Timeout] = None,
        env: Optional[Variables] = None,
        cwd: Optional[Directory] = None,
        stdin: Optional[Stdin] = None,
        keep_state: bool = False,
    ) -> Result:
        """The same. Cancelling the task ends the command, not the sandbox."""
        return await _run_async(self._inside(cmd, timeout, env, cwd, keep_state), stdin)

    def _inside(
        self,
        cmd: AnyCommand,
        timeout: Optional[Timeout],
        env: Optional[Variables],
        cwd: Optional[Directory],
        keep_state: bool,
    ) -> _Call:
        if self._end is None or not self._end.alive:
            raise SandboxError('SANDBOX_CLOSED', 'the sandbox is not open.', 'with Sandbox() as sandbox: ...')
        options = ['exec', '--in', self.name, '--json', *_timeout_option(timeout)]
        options += [] if cwd is None else ['--workdir', os.fspath(cwd)]
        options += ['--keep-state'] if keep_state else []
        return _call(options, env, self._call.cwd, ['--', *_words(cmd)])

    def __enter__(self) -> Sandbox:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Sandbox:
        opening = asyncio.ensure_future(_in_thread(self.open))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A thread cannot be cancelled: this waits for it, and closes what it has opened.
            await asyncio.wait([opening])
            await _in_thread(self.close)
            raise

    async def __aexit__(self, *_: object) -> None:
        await _in_thread(self.close)


# ---- the words of a call


@dataclass(frozen=True)
class _Call:
    argv: List[Union[str, bytes]]
    env: Dict[str, str]
    cwd: Optional[Directory]


#: Variables that decide what the program does. Their values go on its command line, which others on this machine can read. All
#: others go through its environment.
_DECIDING = re.compile(
    r'PATH|HOME|TERM|LANG|LC_.*|TZ|TMPDIR|NO_COLOR|HOSTNAME|VIRTUAL_ENV|SSH_AUTH_SOCK|DBUS_SESSION_BUS_ADDRESS'
    r'|XDG_.*|LLM_DO.*|DOCKER_.*|ENABLE_DOCKER|CONTAINERS_CONF|CONTAINER_.*|NODE_.*|SSL_CERT_.*|.*_CA_BUNDLE|.*_PROXY|.*_proxy'
    r'|npm_config_.*|CARGO_HOME|GOENV|GOPROXY|GIT_CONFIG_.*|PIP_CONFIG_FILE|PIP_INDEX_URL|PIP_EXTRA_INDEX_URL'
)


def _exec_call(
    cmd: AnyCommand,
    policy: Optional[Policy],
    timeout: Optional[Timeout],
    env: Optional[Variables],
    cwd: Optional[Directory],
) -> _Call:
    options = ['exec', '--json', '--die-with-parent', *_policy_options(policy, timeout)]
    return _call(options, env, cwd, ['--', *_words(cmd)])


def _call(
    options: Sequence[str],
    env: Optional[Variables],
    cwd: Optional[Directory],
    rest: Sequence[Union[str, bytes]],
) -> _Call:
    given = dict(env or {})
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or '=' in name or '\0' in name + value:
            raise OptionsError(f'env: expected names without "=" and texts without NUL, got {name!r} ({type(value).__name__})')
    words: List[Union[str, bytes]] = [_program(), *options]
    for name, value in given.items():
        words += ['--env', f'{name}={value}' if _DECIDING.fullmatch(name) else name]
    passed = {name: value for name, value in given.items() if not _DECIDING.fullmatch(name)}
    return _Call([*words, *rest], {**os.environ, **passed}, cwd)


def _program() -> str:
    """Relative places of PATH do not count: the directory of this process may be what a command has written."""
    named = os.environ.get('LLM_DO')
    places = [place for place in os.environ.get('PATH', os.defpath).split(os.pathsep) if os.path.isabs(place)]
    candidates = [named] if named else [os.path.join(place, 'llm-do') for place in places]
    for path in candidates:
        if os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    problem = f'LLM_DO={named}: expected the absolute path of a program' if named else 'llm-do: not found on PATH'
    raise SandboxError('HELPER_MISSING', f'{problem}.', 'install llm-do, or export LLM_DO=/path/to/llm-do')


def _words(cmd: AnyCommand) -> List[Union[str, bytes]]:
    if isinstance(cmd, (str, bytes)):
        raise OptionsError(f'cmd: expected a list of words; for a line of shell: ["sh", "-c", {cmd!r}]')
    words = [os.fspath(word) for word in cmd]
    if not words or any((b'\0' if isinstance(word, bytes) else '\0') in word for word in words):  # type: ignore[operator]
        raise OptionsError('cmd: expected at least one word, and no NUL in any')
    return words


def _text(word: Union[str, bytes]) -> str:
    if isinstance(word, bytes):
        raise OptionsError(f'commands: expected texts, got {word!r}')
    return word


def _policy_options(policy: Optional[Policy], timeout: Optional[Timeout]) -> List[str]:
    return [*_profile_option(policy), *_timeout_option(timeout)]


def _profile_option(policy: Optional[Policy]) -> List[str]:
    if policy is None:
        return []
    if isinstance(policy, Mapping):
        return ['--profile', json.dumps({'sandbox': {'extends': 'default', **policy}})]
    return ['--profile', os.fspath(policy)]


def _timeout_option(timeout: Optional[Timeout]) -> List[str]:
    if timeout is None:
        return []
    if isinstance(timeout, str):
        return ['--timeout', timeout]
    if isinstance(timeout, bool) or not 0 < timeout < 1e9:
        raise OptionsError(f'timeout: expected seconds or a text such as "1m", got {timeout!r}')
    return ['--timeout', f'{max(1, round(timeout * 1000))}ms']


def _input(stdin: Optional[Stdin]) -> Tuple[Optional[bytes], Union[int, IO[Any]]]:
    """What is written, and where the program reads."""
    if stdin is None:
        return None, subprocess.DEVNULL
    if isinstance(stdin, (str, bytes)):
        return stdin.encode() if isinstance(stdin, str) else stdin, subprocess.PIPE
    if (isinstance(stdin, int) and not isinstance(stdin, bool)) or hasattr(stdin, 'fileno'):
        return None, stdin
    raise OptionsError(f'stdin: expected text, bytes or a file with a descriptor, got {stdin!r}')


# ---- one run


def _run(call: _Call, stdin: Optional[Stdin]) -> Result:
    data, source = _input(stdin)
    pipe = subprocess.PIPE
    process = subprocess.Popen(call.argv, env=call.env, cwd=call.cwd, stdin=source, stdout=pipe, stderr=pipe)
    try:
        stdout, stderr = process.communicate(data)
    finally:
        _end(process)
    return _result_of(stdout, stderr, process.returncode)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing happens if it has ended. It reads and writes nothing more, so that nothing delays it."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            try:
                stream.close()
            except OSError:
                pass  # what was not written yet is of no interest
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _run_async(call: _Call, stdin: Optional[Stdin]) -> Result:
    data, source = _input(stdin)
    process = await _start_async(call, source)
    try:
        stdout, stderr = await process.communicate(data)
    except asyncio.CancelledError:
        await asyncio.shield(_end_async(process))
        raise
    except BaseException:
        _signal(process.terminate)
        raise
    return _result_of(stdout, stderr, process.returncode)


async def _start_async(call: _Call, source: Any) -> asyncio.subprocess.Process:
    """A cancelled start would kill the program, which could not end its sandbox. So a cancelled task waits for the start."""
    pipe = subprocess.PIPE
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *call.argv, env=call.env, cwd=call.cwd, stdin=source, stdout=pipe, stderr=pipe
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await asyncio.shield(_end_async(starting.result()))
        raise


async def _end_async(process: asyncio.subprocess.Process) -> None:
    _signal(process.terminate)
    # Read to the end: the program may be writing its result.
    try:
        await asyncio.wait_for(process.communicate(), _GRACE_SECONDS)
    except asyncio.TimeoutError:
        _signal(process.kill)
        await process.wait()


def _signal(send: Any) -> None:
    try:
        send()
    except ProcessLookupError:
        pass  # it has ended


async def _in_thread(call: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, call)


def _result_of(stdout: bytes, stderr: bytes, status: Optional[int]) -> Result:
    try:
        printed = json.loads(stdout)
    except ValueError:
        raise _told(stderr, status) from None
    result = _parsed(printed)
    if result.error is not None:
        raise result.error
    return result


def _parsed(printed: Dict[str, Any]) -> Result:
    """Fields may be missing: a result of ``batch`` has fewer, and newer programs print more."""
    streams = [printed.get(name, '') for name in ('stdout', 'stderr')]
    is_binary = printed.get('encoding') == 'base64'
    stdout, stderr = (base64.b64decode(text) if is_binary else text.encode() for text in streams)
    names = Denial.__dataclass_fields__
    result = Result(
        ok=printed['ok'],
        exit_code=printed.get('exitCode'),
        signal=printed.get('signal'),
        reason=printed.get('reason', 'setup'),
        stdout=stdout.decode(errors='replace'),
        stderr=stderr.decode(errors='replace'),
        message=printed.get('message', ''),
        denials=tuple(Denial(**{name: row[name] for name in names}) for row in printed.get('denials', [])),
        hints=tuple(printed.get('hints', [])),
        warnings=tuple(printed.get('warnings', [])),
        stdout_bytes=stdout,
        stderr_bytes=stderr,
        json=printed,
    )
    error = printed.get('error')
    if error is not None:
        code = error.get('code', 'SETUP_FAILED')
        object.__setattr__(result, 'error', SandboxError(code, error['message'], error.get('hint', ''), result))
    return result


_MESSAGE = re.compile(r'^llm-do: error ([A-Z_]+): (.*?)(?:^llm-do: hint: (.*?))?\Z', re.MULTILINE | re.DOTALL)


def _told(stderr: bytes, status: Optional[int]) -> SandboxError:
    """What the program said instead of a result."""
    text = stderr.decode(errors='replace').strip()
    found = _MESSAGE.search(text)
    if found is None:
        return SandboxError('BACKEND_FAILED', f'llm-do ended with {status} and without a result: {text}')
    code, message, hint = found.groups(default='')
    return SandboxError(code, message.strip(), hint.strip())


# ---- a batch


def _batch(call: _Call, lines: str) -> Iterator[Result]:
    with tempfile.TemporaryFile() as tasks, tempfile.TemporaryFile() as told:
        tasks.write(lines.encode())
        tasks.seek(0)
        process = subprocess.Popen(
            call.argv, env=call.env, cwd=call.cwd, stdin=tasks, stdout=subprocess.PIPE, stderr=told
        )
        assert process.stdout is not None
        count = 0
        try:
            for line in process.stdout:
                yield _parsed(json.loads(line))
                count += 1
            status = process.wait()
        finally:
            _end(process)
        if count < lines.count('\n'):
            told.seek(0)
            raise _told(told.read(), status)


# ---- the keeper of a sandbox

_KEEPER = """
name=$1; shift
"$0" "$@" </dev/null || exit
read -r line
exec "$0" stop "$name" >/dev/null 2>&1
"""


def _keep(name: str, call: _Call) -> subprocess.Popen[bytes]:
    """Its own session: Ctrl-C reaches this process alone, which then ends the sandbox."""
    pipe = subprocess.PIPE
    program, *words = call.argv
    argv = ['/bin/sh', '-c', _KEEPER, program, name, *words]
    keeper = subprocess.Popen(
        argv, env=call.env, cwd=call.cwd, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    assert keeper.stdout is not None and keeper.stderr is not None
    try:
        if keeper.stdout.readline() != b'':
            return keeper
        raise _told(keeper.stderr.read(), keeper.wait())
    except BaseException:
        _stop(keeper, os.getpid())
        raise


def _stop(keeper: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return  # a child made by fork(): the sandbox belongs to its parent
    try:
        keeper.communicate(b'\n')
    except (BrokenPipeError, ValueError):
        keeper.wait()
