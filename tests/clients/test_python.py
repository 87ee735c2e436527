"""The Python client with the real program, which LLM_DO names. python.user.system.test.ts starts this file."""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, List

import llm_do_exec
import pytest
from llm_do_exec import OptionsError, Sandbox, SandboxError, batch, run, run_async

SOURCE = Path(llm_do_exec.__file__)
CHECKOUT = Path(os.environ['LLM_DO']).parent.parent
MIB = 1024**2
#: Ends a hang, measures nothing.
PATIENCE_SECONDS = 10


def until(what: str, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, f'waited for {what}'
        time.sleep(0.01)


def processes_with(mark: str) -> List[str]:
    """Command lines of this machine that have the word, but not that of this process."""
    found = []
    for place in Path('/proc').glob('[0-9]*/cmdline'):
        try:
            words = place.read_bytes()
        except OSError:
            continue  # it has just ended
        if mark.encode() in words.split(b'\0') and place.parent.name != str(os.getpid()):
            found.append(words.decode(errors='replace'))
    return found


@pytest.fixture
def mark(tmp_path: Path) -> str:
    return f'mark-{os.getpid()}-{tmp_path.name}'


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / 'workspace'
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the words that the program gets."""
    words = tmp_path / 'words'
    script = tmp_path / 'llm-do'
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{words}\nexec {os.environ["LLM_DO"]} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv('LLM_DO', str(script))
    return words


def endless(mark: str) -> List[str]:
    """Says in the workspace that it runs, and does not end."""
    return ['sh', '-c', 'echo >up; sleep 3600', mark]


WRITABLE = {'workspace': 'rw'}


class TestARun:
    def test_returns_how_the_command_ended(self) -> None:
        result = run(['sh', '-c', 'cat; echo oops >&2; exit 3'], stdin='b\n')
        assert (result.ok, result.exit_code, result.signal, result.reason) == (False, 3, None, 'exit')
        assert (result.stdout, result.stderr, result.stdout_bytes) == ('b\n', 'oops\n', b'b\n')
        assert result.json['schema'] == 1

    def test_reports_a_signal(self) -> None:
        result = run(['sh', '-c', 'kill -9 $$'])
        assert (result.exit_code, result.signal, result.reason) == (None, 'SIGKILL', 'signal')

    def test_reports_what_the_sandbox_refused(self) -> None:
        [denial] = run(['sh', '-c', 'echo >file']).denials
        assert (denial.operation, denial.target, denial.fix) == ('write', '/workspace/file', '--rw .')

    def test_returns_bytes_that_are_not_text(self) -> None:
        result = run(['printf', r'\377\n'])
        assert (result.stdout_bytes, result.stdout) == (b'\xff\n', '\ufffd\n')

    def test_takes_words_of_bytes_and_paths(self, workspace: Path) -> None:
        (workspace / 'file').write_text('x')
        assert run([b'printf', '%s', b'\xff', Path('file')]).stdout_bytes == b'\xfffile'

    @pytest.mark.parametrize('stdin', ['ä\n', 'ä\n'.encode()])
    def test_takes_text_and_bytes(self, stdin: str | bytes) -> None:
        assert run(['cat'], stdin=stdin).stdout == 'ä\n'

    def test_takes_a_file_and_a_descriptor(self, workspace: Path) -> None:
        (workspace / 'file').write_text('x')
        with open('file') as opened:
            assert run(['cat'], stdin=opened).stdout == 'x'
        with open('file') as opened:
            assert run(['cat'], stdin=opened.fileno()).stdout == 'x'

    def test_has_an_empty_stdin(self) -> None:
        assert run(['cat']).stdout == ''

    def test_may_leave_its_stdin_unread(self) -> None:
        assert run(['true'], stdin=bytes(8 * MIB)).ok

    def test_carries_much_in_both_directions(self) -> None:
        data = os.urandom(MIB).hex().encode() * 4
        result = run(['tee', '/dev/stderr'], stdin=data, policy={'resources': {'output': '16m'}})
        assert result.stdout_bytes == data and result.stderr_bytes == data

    def test_has_the_workspace_of_cwd(self, tmp_path: Path) -> None:
        (tmp_path / 'other').mkdir()
        (tmp_path / 'other' / 'file').write_text('x')
        assert run(['cat', 'file'], cwd=tmp_path / 'other').stdout == 'x'


class TestAPolicy:
    def test_is_a_mapping_with_paths_relative_to_cwd(self, workspace: Path) -> None:
        (workspace / 'data').mkdir()
        (workspace / 'data' / 'file').write_text('x')
        zones = [{'hostPath': './data', 'target': '/data', 'mode': 'rw'}]
        result = run(['cp', '/data/file', '/data/copy'], policy={'zones': zones, 'resources': {'memory': '200m'}})
        assert result.json['limits']['memory']['max'] == 200 * MIB
        assert (workspace / 'data' / 'copy').read_text() == 'x'

    def test_extends_a_profile(self) -> None:
        result = run(['true'], policy={'extends': 'strict', 'resources': {'pids': 9}})
        assert result.json['limits']['timeoutMs'] == 10_000

    def test_is_a_name_or_a_path(self, workspace: Path) -> None:
        (workspace / 'mine.yaml').write_text('sandbox: { extends: strict, resources: { timeout: 7s } }')
        limits = [run(['true'], policy=policy).json['limits'] for policy in ('strict', workspace / 'mine.yaml')]
        assert [row['timeoutMs'] for row in limits] == [10_000, 7_000]


class TestATimeout:
    @pytest.mark.parametrize('timeout', [0.2, '200ms'])
    def test_is_a_result(self, timeout: float | str) -> None:
        result = run(['sleep', '60'], timeout=timeout)
        assert (result.reason, result.json['limits']['timeoutMs']) == ('timeout', 200)

    def test_may_be_lifted(self) -> None:
        assert 'timeoutMs' not in run(['true'], timeout='none').json['limits']


class TestTheEnvironment:
    def test_reaches_the_command_and_no_command_line(self, said: Path) -> None:
        env = {'TOKEN': 'secret-1', 'GITHUB_TOKEN': 'secret-2', 'GOOGLE_API_KEY': 'secret-3', 'LINES_OF': 'a\nb'}
        result = run(['sh', '-c', 'echo $TOKEN $GITHUB_TOKEN $GOOGLE_API_KEY "$LINES_OF"'], env=env)
        assert result.stdout == 'secret-1 secret-2 secret-3 a\nb\n'
        assert 'TOKEN\n' in said.read_text() and 'secret' not in said.read_text()

    def test_does_not_decide_what_the_program_does(self, workspace: Path) -> None:
        env = {'LLM_DO_EXEC_TIMEOUT': '1s', 'HOME': '/nowhere', 'XDG_CONFIG_HOME': 'relative', 'PATH': '/usr/bin'}
        result = run(['sh', '-c', 'echo $LLM_DO_EXEC_TIMEOUT $HOME $XDG_CONFIG_HOME $PATH'], env=env)
        assert result.stdout == '1s /nowhere relative /usr/bin\n'
        assert result.json['limits']['timeoutMs'] == 30_000

    def test_knows_the_variables_that_decide(self) -> None:
        """In the sources of the program: ``env['NAME']`` and ``env.NAME``. Those of servers and agents decide no run."""
        others = {'WORKER_ID', 'WORKER_TOKEN_SECRET', 'SERVER_URL', 'MAX_PARALLEL_JOBS'}
        sources = (CHECKOUT / 'src').rglob('*.ts')
        named = {
            name
            for source in sources
            for pair in re.findall(r"\b(?:env|variables?)(?:[\[(]'(\w+)'|\.([A-Z_]{3,})\b)", source.read_text())
            for name in pair
            if name.isupper()
        }
        assert {'HOME', 'XDG_CONFIG_HOME', 'GOPROXY'} <= named
        assert {name for name in named - others if not llm_do_exec._DECIDING.fullmatch(name)} == set()


class TestAnError:
    def test_has_the_code_and_the_hint_of_the_program(self) -> None:
        with pytest.raises(SandboxError) as caught:
            run(['nosuch'])
        error = caught.value
        assert (error.code, error.message) == ('COMMAND_NOT_FOUND', 'nosuch: not found in the sandbox')
        assert 'check the name' in error.hint and error.result is not None and error.result.json['exitStatus'] == 127

    def test_names_the_key_of_a_policy(self) -> None:
        with pytest.raises(SandboxError, match=r'POLICY_INVALID: .*resources\.memroy.*Did you mean "memory"'):
            run(['true'], policy={'resources': {'memroy': '1g'}})

    def test_is_raised_where_the_program_prints_no_result(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        script = tmp_path / 'broken'
        script.write_text('#!/bin/sh\necho broken >&2; kill -9 $$\n')
        script.chmod(0o755)
        monkeypatch.setenv('LLM_DO', str(script))
        with pytest.raises(SandboxError, match='BACKEND_FAILED: .*broken'):
            run(['true'])

    def test_says_that_the_program_is_missing(self, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv('LLM_DO')
        # A program in the workspace is not the program, though PATH leads there.
        planted = workspace / 'llm-do'
        planted.write_text('#!/bin/sh\n')
        planted.chmod(0o755)
        monkeypatch.setenv('PATH', ':.')
        with pytest.raises(SandboxError, match='HELPER_MISSING: llm-do: not found on PATH'):
            run(['true'])
        monkeypatch.setenv('PATH', str(Path(os.environ['PYTEST_PROGRAM']).parent))
        assert run(['true']).ok
        monkeypatch.setenv('LLM_DO', 'llm-do')
        with pytest.raises(SandboxError, match='HELPER_MISSING: LLM_DO=llm-do: expected the absolute path'):
            run(['true'])

    @pytest.mark.parametrize(
        ('arguments', 'message'),
        [
            ({'cmd': 'ls -l'}, r'for a line of shell: \["sh", "-c", \'ls -l\'\]'),
            ({'cmd': []}, 'at least one word'),
            ({'cmd': ['a\0b']}, 'no NUL'),
            ({'cmd': [b'a\0b']}, 'no NUL'),
            ({'timeout': 0}, 'timeout: expected seconds'),
            ({'timeout': True}, 'timeout: expected seconds'),
            ({'timeout': float('nan')}, 'timeout: expected seconds'),
            ({'env': {'A=B': 'x'}}, 'env: expected names without'),
            ({'env': {'A': 1}}, 'env: expected names without'),
            ({'env': {'A': 'x\0y'}}, 'env: expected names without'),
            ({'stdin': ['a']}, 'stdin: expected text'),
        ],
    )
    def test_of_the_calling_program_is_a_type_error(self, said: Path, arguments: dict, message: str) -> None:
        with pytest.raises(OptionsError, match=message) as caught:
            run(**{'cmd': ['true'], **arguments})
        assert caught.value.code == 'OPTIONS_INVALID' and isinstance(caught.value, TypeError)
        assert not said.exists()


#: Programs that are interrupted while a sandbox runs. The mark is the first argument.
INTERRUPTED = {
    'a run': "run(['sh', '-c', 'echo >up; sleep 3600', sys.argv[1]], policy=WRITABLE, timeout='none')",
    'a task': "asyncio.run(run_async(['sh', '-c', 'echo >up; sleep 3600', sys.argv[1]], policy=WRITABLE))",
    'a batch': "list(batch([['sh', '-c', 'echo >up; sleep 3600', sys.argv[1]]], policy=WRITABLE, timeout='1h'))",
    'a sandbox': """
with Sandbox(policy=WRITABLE) as sandbox:
    sandbox.run(['sh', '-c', 'echo >up; sleep 3600', sys.argv[1]])
""",
    'a sandbox that nobody closes': """
sandbox = Sandbox(policy=WRITABLE).open()
sandbox.run(['sh', '-c', 'sleep 3600 & echo >up; wait', sys.argv[1]])
""",
}


class TestNothingIsLeft:
    @pytest.mark.parametrize('sent', [signal.SIGINT, signal.SIGKILL], ids=lambda sent: sent.name)
    @pytest.mark.parametrize('what', INTERRUPTED)
    def test_of_a_program_that_ends(self, what: str, sent: signal.Signals, mark: str, workspace: Path) -> None:
        head = f'import asyncio, sys\nfrom llm_do_exec import *\nWRITABLE = {WRITABLE}\n'
        words = [sys.executable, '-c', head + INTERRUPTED[what], mark]
        program = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        until('the command', (workspace / 'up').exists)
        assert [line for line in processes_with(mark) if '-c\0echo' in line or '-c\0sleep' in line]
        program.send_signal(sent)
        program.wait(PATIENCE_SECONDS)
        until('the end of all processes', lambda: processes_with(mark) == [])

    def test_of_a_cancelled_task(self, mark: str, workspace: Path) -> None:
        async def cancelled() -> None:
            task = asyncio.ensure_future(run_async(endless(mark), policy=WRITABLE))
            while not (workspace / 'up').exists():
                await asyncio.sleep(0.01)
            assert processes_with(mark)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # The program has ended, and nothing that it started runs on.
            assert processes_with(mark) == []

        asyncio.run(cancelled())

    def test_of_a_task_that_is_cancelled_as_it_starts(
        self, mark: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start = asyncio.create_subprocess_exec
        is_up = asyncio.Event()

        async def start_slowly(*words: str, **how: Any) -> asyncio.subprocess.Process:
            process = await start(*words, **how)
            while not (workspace / 'up').exists():
                await asyncio.sleep(0.01)
            is_up.set()
            await asyncio.sleep(0.1)
            return process

        async def cancelled() -> None:
            task = asyncio.ensure_future(run_async(endless(mark), policy=WRITABLE))
            await is_up.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert processes_with(mark) == []

        monkeypatch.setattr(asyncio, 'create_subprocess_exec', start_slowly)
        asyncio.run(cancelled())

    def test_of_an_exception_in_the_calling_thread(self, mark: str, workspace: Path) -> None:
        class Alarm(Exception):
            pass

        def ring(*_: object) -> None:
            raise Alarm

        before = signal.signal(signal.SIGUSR1, ring)
        try:
            threading.Thread(
                target=lambda: (
                    until('the command', (workspace / 'up').exists),
                    os.kill(os.getpid(), signal.SIGUSR1),
                )
            ).start()
            with pytest.raises(Alarm):
                run(endless(mark), policy=WRITABLE)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert processes_with(mark) == []

    def test_of_a_sandbox_that_is_collected(self, mark: str) -> None:
        sandbox = Sandbox().open()
        name = sandbox.name
        assert processes_with(name)
        del sandbox
        gc.collect()
        assert processes_with(name) == []

    def test_of_a_batch_that_is_closed(self, mark: str, workspace: Path) -> None:
        results = batch([['true'], endless(mark)], jobs=2, policy=WRITABLE, timeout='1h')
        assert next(results).ok
        until('the second command', (workspace / 'up').exists)
        results.close()  # type: ignore[attr-defined]
        assert processes_with(mark) == []

    def test_of_a_sandbox_whose_opening_is_cancelled(self) -> None:
        sandbox = Sandbox()

        async def cancelled() -> None:
            task = asyncio.ensure_future(sandbox.__aenter__())
            while not processes_with(sandbox.name):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
        assert processes_with(sandbox.name) == []


class TestASandbox:
    def test_keeps_files_and_processes_between_commands(self) -> None:
        with Sandbox(env={'A': '1'}) as sandbox:
            assert sandbox.run(['sh', '-c', 'sleep 3600 & echo $A >/tmp/file']).ok
            assert sandbox.run(['cat', '/tmp/file']).stdout == '1\n'

    def test_gives_each_command_its_options(self) -> None:
        with Sandbox() as sandbox:
            result = sandbox.run(['sh', '-c', 'pwd; cat; echo $B'], cwd='/tmp', env={'B': '2'}, stdin='x\n')
            assert result.stdout == '/tmp\nx\n2\n'
            assert sandbox.run(['sleep', '60'], timeout=0.2).reason == 'timeout'
            assert sandbox.run(['true']).ok

    def test_runs_commands_at_the_same_time(self) -> None:
        async def both() -> None:
            async with Sandbox() as sandbox:
                # Each ends only when the other has begun.
                wait = 'echo >/tmp/{}; until test -e /tmp/{}; do sleep 0.01; done'
                runs = [sandbox.run_async(['sh', '-c', wait.format(*names)]) for names in ('ab', 'ba')]
                assert [result.ok for result in await asyncio.gather(*runs)] == [True, True]

        asyncio.run(both())

    def test_lives_on_when_a_command_is_cancelled(self, mark: str, workspace: Path) -> None:
        async def cancelled() -> None:
            async with Sandbox(policy=WRITABLE) as sandbox:
                task = asyncio.ensure_future(sandbox.run_async(endless(mark)))
                while not (workspace / 'up').exists():
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert processes_with(mark) == []
                assert (await sandbox.run_async(['true'])).ok

        asyncio.run(cancelled())

    def test_does_not_end_with_a_child_of_fork(self) -> None:
        with Sandbox() as sandbox:
            child = os.fork()
            if child == 0:
                sandbox.close()
                os._exit(0)
            os.waitpid(child, 0)
            assert sandbox.run(['true']).ok

    def test_ends_although_a_child_of_fork_lives(self) -> None:
        sandbox = Sandbox().open()
        child = os.fork()
        if child == 0:
            signal.pause()
        try:
            sandbox.close()
            assert processes_with(sandbox.name) == []
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def test_is_refused_with_the_error_of_the_program(self) -> None:
        with pytest.raises(SandboxError, match='POLICY_INVALID: .*memroy') as caught:
            Sandbox(policy={'resources': {'memroy': '1g'}}).open()
        assert 'llm-do' in caught.value.hint

    def test_takes_nothing_before_and_after_it_is_open(self) -> None:
        sandbox = Sandbox()
        with pytest.raises(SandboxError, match='SANDBOX_CLOSED'):
            sandbox.run(['true'])
        with sandbox:
            assert sandbox.run(['true']).ok
        with pytest.raises(SandboxError, match='SANDBOX_CLOSED'):
            sandbox.run(['true'])
        sandbox.close()


class TestABatch:
    def test_yields_results_in_the_order_of_the_commands(self) -> None:
        commands = [['sh', '-c', f'echo $A {number}; exit {number}'] for number in range(4)]
        results = list(batch(commands, jobs=2, env={'A': 'a'}, policy='strict', timeout=20))
        assert [result.stdout for result in results] == [f'a {number}\n' for number in range(4)]
        assert [result.exit_code for result in results] == [0, 1, 2, 3]

    def test_raises_what_concerns_all(self) -> None:
        with pytest.raises(SandboxError, match='USAGE'):
            list(batch([['true']], jobs=0))

    def test_has_the_error_of_a_command_in_its_result(self) -> None:
        [result] = batch([['true']], policy={'resources': {'memroy': '1g'}})
        assert result.error is not None and 'memroy' in result.error.message


class TestTasks:
    def test_run_at_the_same_time(self, workspace: Path) -> None:
        async def both() -> None:
            wait = 'echo >{}; until test -e {}; do sleep 0.01; done; cat'
            runs = [
                run_async(['sh', '-c', wait.format(*names)], policy=WRITABLE, stdin='x') for names in ('ab', 'ba')
            ]
            assert [result.stdout for result in await asyncio.gather(*runs)] == ['x', 'x']

        asyncio.run(both())

    def test_raise_the_same_errors(self) -> None:
        with pytest.raises(SandboxError, match='COMMAND_NOT_FOUND'):
            asyncio.run(run_async(['nosuch']))
        with pytest.raises(OptionsError):
            asyncio.run(run_async('true'))


class TestTheModule:
    def test_parses_with_python_3_9(self) -> None:
        ast.parse(SOURCE.read_text(), feature_version=(3, 9))

    def test_is_annotated(self) -> None:
        assert (SOURCE.parent / 'py.typed').exists()
        for node in ast.walk(ast.parse(SOURCE.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                bare = [one.arg for one in arguments if one.annotation is None and one.arg != 'self']
                assert node.returns is not None and bare == [], node.name

    def test_imports_only_the_standard_library(self) -> None:
        imports = [node for node in ast.walk(ast.parse(SOURCE.read_text())) if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = [name for node in imports for name in ([node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])]
        assert set(names) <= sys.stdlib_module_names

    def test_has_a_word_on_everything_that_it_exports(self) -> None:
        for name in llm_do_exec.__all__:
            exported = getattr(llm_do_exec, name)
            assert not inspect.isclass(exported) and not inspect.isfunction(exported) or exported.__doc__, name
