/** The state that `exec --in NAME --keep-state` carries from one command to the next, and attacks on it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { cliWords, environmentOf } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { callers, currentUser, type User } from '../support/users.ts'
import { backgroundOf } from './background.ts'

async function keepingOf(as: User, ...words: readonly string[]) {
  const background = await backgroundOf(as)
  const name = await background.start(...words, '--', 'sleep', '300')
  const { enter } = background
  const kept = (...command: readonly string[]) => enter(name, ['--keep-state', ...command], '')
  /** A command without a state: the control. */
  const plain = (script: string) => enter(name, ['--', 'bash', '-c', script], '')
  const where = async () => (await kept('-c', 'pwd')).out.trim()
  return { ...background, name, kept, plain, where }
}

const UNCHANGED = expect.stringMatching(/^llm-do: warning: --keep-state: the earlier state remains, because the shell/)

/** A whole state as the sandbox reads it, written by a command. */
const forged = (directory: string, shell = '') =>
  `{ printf '0022\\n\\0${directory}\\n\\0FORGED=1\\0\\0${shell}\\nLLM_DO_STATE=whole\\n'; } >&60`

describeWith('userns', 'a command that keeps its state', () => {
  describe.each(callers())('of %s', (as) => {
    test('starts where the last one ended, with its variables, functions, aliases and options', async () => {
      const { kept, plain, where } = await keepingOf(as)
      const leaves = [
        `cd /tmp; umask 077; export A="it's" B=$'two\\nlines' C=$'\\xff' BASH_ENV=/tmp/own; readonly B; LOCAL=1`,
        `f() { echo "f $1"; }; with-dash() { cat <<'END'\n' quoted\nEND\n}; export -f f`,
        `shopt -s expand_aliases extglob; alias hi='echo hi'; set -o pipefail; g() { [[ $1 == @(a|b) ]] && echo g; }`,
        `unset USER; echo 'echo own file' >/tmp/own; exit 7`,
      ].join('\n')
      expect(await kept('-c', leaves)).toEqual({ status: 7, out: '', err: '' })
      const shows = `pwd; umask; echo "$A $B" "\${LOCAL-none}" "\${USER-none}" $SHLVL; f 1; with-dash; g b\nhi\nset +o | grep pipefail`
      expect(await kept('--', 'sh', '-c', shows)).toEqual({
        status: 0,
        out: "own file\n/tmp\n0077\nit's two\nlines none none 1\nf 1\n' quoted\ng\nhi\nset -o pipefail\n",
        err: '',
      })
      // A program starts with it, without descriptors of it, and changes nothing; nor does what has no part in it.
      const program =
        'chdir "/"; opendir D, "/proc/self/fd"; print join(" ", sort grep /\\d/, readdir D), " $ENV{C} $ENV{BASH_ENV}"'
      expect((await kept('--json', '--', 'perl', '-e', `${program}; print STDERR unpack("H*", $ENV{C})`)).out).toMatch(
        /"stdout":"MCAxIDIgM.*,"stderr":"ZmY="/,
      )
      expect((await plain('pwd; echo $(printenv A || echo none); type -t f; cd /; export A=other')).out).toBe(
        '/workspace\nnone\n',
      )
      expect((await kept('--env', 'A=given', '--workdir', '/usr', '-c', 'echo "$A"; pwd')).out).toContain(
        'given\n/usr\n',
      )
      expect((await kept('-lc', 'f 2; cd /')).out).toContain('f 2\n')
      expect([await where(), (await kept('-c', 'no-such-command')).status]).toEqual(['own file\n/', 127])
      const reset = ['--keep-state=reset', '-c', 'pwd; echo $(printenv A || echo none); type f']
      expect((await kept(...reset)).out).toMatch(/^\/workspace\nnone\n$/)
      expect(await where()).toBe('/workspace')
    })

    test('goes on from the earlier state where it left none, and says so', async () => {
      const { kept, where } = await keepingOf(as)
      await kept('-c', 'cd /usr')
      const left = [
        ['cd /tmp; exec true', { status: 0, err: UNCHANGED }],
        ['cd /tmp; trap : EXIT', { status: 0, err: UNCHANGED }],
        ['cd /tmp; exec 60>&-', { status: 0, err: UNCHANGED }],
        ['cd /tmp; printf 0022 >&60', { status: 0, err: UNCHANGED }],
        [`cd /tmp; ${forged('/tmp')}`, { status: 0, err: UNCHANGED }],
        [`${forged('tmp')}; trap - EXIT`, { status: 0, err: UNCHANGED }],
        [
          'cd /tmp; for i in $(seq 12); do export V$i=$(head -c 100000 /dev/zero | tr "\\0" x); done',
          { status: 0, err: expect.stringContaining('larger than 1 MiB') },
        ],
        ['cd /tmp; kill -KILL $$', { status: 137 }],
        ['cd /tmp; set -n', { status: 0, err: UNCHANGED }],
      ] as const
      for (const [line, end] of left) expect(await kept('-c', line), line).toMatchObject(end)
      // A shell that is asked to end may still write one; a writer that never stops keeps no timeout from it.
      for (const line of ['trap "exit 0" TERM; cd /tmp; sleep 300 & wait', 'cd /tmp; cat /dev/zero >&60'])
        expect((await kept('--timeout', '300ms', '-c', line)).status).toBe(124)
      expect(await where()).toBe('/usr')
      const { out } = await kept('--json', '-c', 'exec true')
      expect((JSON.parse(out) as { warnings: string[] }).warnings).toEqual([
        expect.stringMatching(/^--keep-state: the earlier/),
      ])
    })
  })
})

describeWith(['userns', 'one-user'], 'the state of commands in a sandbox', () => {
  const as = currentUser()

  test('cannot say for the sandbox what it is, and does not leave it', async () => {
    const { kept, plain, llmDo } = await keepingOf(as)
    await kept('-c', 'export LLM_DO_SANDBOX=forged LLM_DO_SANDBOX_MORE=1 LD_PRELOAD=/tmp/none.so PATH=/tmp:$PATH')
    const own = (await plain('env | grep ^LLM_DO_SANDBOX')).out
    expect(own).toContain('LLM_DO_SANDBOX=')
    expect((await kept('--', 'env')).out.match(/^LLM_DO_SANDBOX.*\n/gm)?.join('')).toBe(own)
    // The control: what is the command's to set reached it, and the one that has asked for it alone.
    expect((await kept('-c', 'echo $LD_PRELOAD $PATH')).out).toMatch(/^\/tmp\/none.so \/tmp:/)
    expect((await plain('echo $(printenv LD_PRELOAD || echo none)')).out).toBe('none\n')
    expect((await llmDo(['exec', '--', 'sh', '-c', 'echo $(printenv LD_PRELOAD || echo none)'])).out).toBe('none\n')
  })

  test('is refused with the way out where its directory is gone or bash cannot read it', async () => {
    const { kept, plain, where } = await keepingOf(as)
    // The name of the directory is the command's: it must not print a line like ours, or move the cursor.
    await kept('-c', 'd=$(printf \'/tmp/gone\\nllm-do: hint: \\033[31m\'); mkdir "$d"; cd "$d"; export A=1')
    await plain('rmdir /tmp/gone*')
    expect(await kept('-c', 'pwd')).toMatchObject({
      status: 125,
      err: expect.stringMatching(
        /error SETUP_FAILED: .*\/tmp\/gone\\x0allm-do: hint: \\x1b\[31m: No such file or directory\n.*--keep-state=reset\n$/,
      ),
    })
    expect((await kept('--workdir', '/usr', '-c', 'echo $A; pwd')).out).toBe('1\n/usr\n')
    await kept('-c', `${forged('/usr', 'f() { (')}; trap - EXIT`)
    expect(await kept('-c', 'echo ran')).toMatchObject({
      status: 125,
      out: '',
      err: expect.stringMatching(/^llm-do: the kept state cannot be read; --keep-state=reset forgets it\n/),
    })
    expect((await kept('--', 'pwd')).out).toBe('/usr\n')
    expect((await kept('--keep-state=reset', '-c', 'cd /tmp')).status).toBe(0)
    expect(await where()).toBe('/tmp')
  })

  test('may hold functions in the place of commands, which do not reach what keeps it', async () => {
    const { kept, where } = await keepingOf(as)
    const functions = ['cd', 'pwd', 'printf', 'umask', 'env', 'trap', 'exit', 'source', 'set'].map(
      (word) => `${word}() { echo mine; }`,
    )
    await kept('-c', `cd /usr; ${functions.join('; ')}`)
    expect((await kept('-c', 'cd /; pwd; builtin cd /tmp')).out).toBe('mine\nmine\n')
    expect((await kept('-c', 'builtin pwd; unset -f cd pwd')).out).toBe('/tmp\n')
    expect(await where()).toBe('/tmp')
  })

  test('is changed by nothing that is left of a command', async () => {
    const { cwd, start, enter } = await backgroundOf(as)
    // The sandbox's first command lives on. It takes a descriptor of the state from another one, and writes when it is asked to.
    const keeper = `
import array, os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind("/tmp/s"); open("/tmp/ready", "w")
while True:
  data, anc, *_ = s.recvmsg(4096, 4096)
  if anc: fd = array.array("i", anc[0][2])[0]; os.symlink("x", "/tmp/taken"); continue
  try: n = os.write(fd, data)
  except OSError as e: n = e.errno
  open("/tmp/wrote.new", "w").write(str(n)); os.rename("/tmp/wrote.new", "/tmp/wrote")
`
    writeFileSync(join(cwd, 'keeper.py'), `import signal; signal.signal(signal.SIGPIPE, signal.SIG_IGN)\n${keeper}`)
    const name = await start('--rw', '.', '--', 'python3', 'keeper.py')
    const kept = (line: string) => enter(name, ['--keep-state', '-c', line], '')
    const send = (code: string) =>
      `python3 -c 'import array, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); ${code}'`
    const gives = send(
      's.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [60]))], 0, "/tmp/s")',
    ).replace("python3 -c '", "python3 -c 'import os; ")
    const writes = send('s.sendto(b"0022\\n\\0/forged\\n\\0FORGED=1\\0\\0LLM_DO_STATE=whole\\n", "/tmp/s")')
    const waitFor = (file: string) => `until [ -e ${file} ] || [ -L ${file} ]; do sleep 0.01; done`
    // The control: as long as the command lives, this writer's bytes count.
    await kept(
      `${waitFor('/tmp/ready')}; ${gives}; ${waitFor('/tmp/taken')}; ${writes}; ${waitFor('/tmp/wrote')}; trap - EXIT`,
    )
    expect((await enter(name, ['--keep-state', '--', 'env'], '')).err).toContain('/forged: No such file')
    const gone = `rm -f /tmp/taken /tmp/wrote; cd /usr; ${gives}; ${waitFor('/tmp/taken')}`
    await enter(name, ['--keep-state=reset', '-c', gone], '')
    await enter(name, ['-c', `${writes}; ${waitFor('/tmp/wrote')}`], '')
    const shows = 'cat /tmp/wrote; pwd; echo $(printenv FORGED || echo none)'
    expect((await kept(`${shows}; setsid sh -c "sleep 300; cd /; :" &`)).out).toBe('32/usr\nnone\n')
    expect((await kept('cat /proc/[0-9]*/comm; pwd')).out).toMatch(/^((?!sleep)[\s\S])*\/usr\n$/)
  })

  test('is that of the command which ended last', async () => {
    const { cwd, name, kept, where } = await keepingOf(as)
    const [file = '', ...words] = cliWords(
      ['exec', '--in', name, '--keep-state', '-c', 'cd /usr; echo there; read -r line'],
      { as, program: 'llm-do' },
    )
    const first = spawn(file, words, {
      cwd,
      env: { ...environmentOf(as), HOME: cwd },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    await once(first.stdout, 'data')
    await kept('-c', 'cd /tmp; export SECOND=1')
    expect(await where()).toBe('/tmp')
    const ended = once(first, 'exit')
    first.stdin.end('end\n')
    await ended
    expect((await kept('-c', 'pwd; echo $(printenv SECOND || echo none)')).out).toBe('/usr\nnone\n')
  })

  test('outlives a fork bomb', async () => {
    const { kept, where } = await keepingOf(as, '--pids', '100')
    await kept('-c', 'cd /usr')
    const bomb =
      'cd /tmp; perl -e "while (1) { fork }" & until set -- /proc/[0-9]*; [ $# -ge 80 ]; do :; done; kill -KILL $$'
    expect((await kept('-c', bomb)).status).toBe(137)
    expect(await where()).toBe('/usr')
  })

  test('is nothing that a new sandbox has', async () => {
    const { llmDo } = await backgroundOf(as)
    for (const words of [
      ['exec', '--keep-state'],
      ['run', '--keep-state'],
    ])
      expect(await llmDo([...words, '--', 'true'])).toMatchObject({
        status: 125,
        err: expect.stringContaining('a new sandbox has no state'),
      })
  })
})
