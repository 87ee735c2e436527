/** A command with a separate terminal, and a person at our terminal (programs/terminal.py). */
import { mkdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { cliWords, programFor } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { directoryWith } from './directory.ts'

const HARNESS = join(import.meta.dirname, '../programs/terminal.py')

interface Step {
  /** Text that the screen shows before this step. */
  readonly until: string
  /** It was seen out of line mode before this step. */
  readonly untilRaw?: boolean
  readonly type?: string
  /** Rows and columns. */
  readonly resize?: readonly [number, number]
  /** Number of a signal to the runner. */
  readonly signal?: number
}

interface TerminalRun {
  readonly status: number | null
  readonly signal: number | null
  readonly screen: string
  /** The caller's terminal is as it was. */
  readonly restored: boolean
  /** It was out of line mode in between: keys went to the command. */
  readonly raw: boolean
}

async function sit(argv: readonly string[], steps: readonly Step[] = []): Promise<TerminalRun> {
  return sitAt(await directoryWith(), [programFor(currentUser()), ...argv], steps)
}

/** In one place the second run is the client's. */
async function sitAt(cwd: string, argv: readonly string[], steps: readonly Step[] = []): Promise<TerminalRun> {
  const home = join(cwd, '..', `${basename(cwd)}-home`)
  // A plain user's plans are kept only where there is a runtime directory: without, no run goes by the client.
  const runtime = join(home, 'runtime')
  await mkdir(runtime, { recursive: true, mode: 0o700 })
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const request = {
    argv,
    cwd,
    env: { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: runtime, TERM: 'xterm', LANG: 'C.UTF-8' },
    rows: 33,
    columns: 101,
    steps,
  }
  const { stdout } = await execa('python3', [HARNESS], { input: JSON.stringify(request) })
  return JSON.parse(stdout) as TerminalRun
}

const AT_EASE = { signal: null, restored: true }

describeWith(['bwrap', 'userns', 'python'], 'with --tty the command', () => {
  test('has a terminal of the size of the caller’s', async () => {
    // It waits for a key: how the terminal is meanwhile can be seen only while it is there.
    const script = 'stty size; test -t 0 && test -t 1 && test -t 2 && echo all; echo $TERM; read key; exit 5'
    const seen = await sit(['--tty', '--rw', '.', '-c', script], [{ until: 'xterm', type: '\r' }])
    expect(seen).toEqual({ ...AT_EASE, status: 5, raw: true, screen: '33 101\r\nall\r\nxterm\r\n\r\n' })
  })

  test('hears when the size changes', async () => {
    const script = 'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.1; done'
    const seen = await sit(['--tty', '-c', script], [{ until: 'ready', resize: [40, 132] }])
    expect(seen).toMatchObject({ ...AT_EASE, status: 0, screen: expect.stringContaining('40 132') })
  })

  test('gets keys and echoes them itself', async () => {
    const script = 'read -p "name? " name; echo "<$name>"'
    const seen = await sit(['--tty', '--', 'bash', '-c', script], [{ until: 'name? ', type: 'Ann\r' }])
    expect(seen).toMatchObject({ ...AT_EASE, status: 0, screen: 'name? Ann\r\n<Ann>\r\n' })
  })

  test('is interrupted by Ctrl-C as on any terminal', async () => {
    const seen = await sit(
      ['--tty', '--', 'sh', '-c', 'echo ready; exec sleep 20'],
      [{ until: 'ready', type: '\u0003' }],
    )
    expect(seen).toMatchObject({ ...AT_EASE, status: 130 })
  })

  test('has no way to the caller’s terminal', async () => {
    const seen = await sit(['--tty', '-c', 'tty; ls -1 /dev/pts'])
    expect(seen).toMatchObject({ ...AT_EASE, status: 0, screen: '/dev/pts/0\r\n0\r\nptmx\r\n' })
  })
})

describeWith(['bwrap', 'userns', 'python'], 'without --tty the command', () => {
  test('writes to the caller’s terminal and cannot control it', async () => {
    const seen = await sit(['-c', 'test -t 1 && echo terminal; cat < /dev/tty; echo $?'])
    expect(seen).toMatchObject({ ...AT_EASE, status: 0, raw: false })
    expect(seen.screen).toMatch(/terminal\r\n.*No such device or address\r\n[12]\r\n/s)
  })
})

/** The state without the runner: a blind terminal that no other process may open, and reads that fail. */
const SPOIL = `import fcntl, os, termios
modes = termios.tcgetattr(0)
modes[3] &= ~(termios.ECHO | termios.ICANON)
termios.tcsetattr(0, termios.TCSANOW, modes)
fcntl.ioctl(0, termios.TIOCEXCL)
fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_NONBLOCK | os.O_APPEND)
print("spoiled", flush=True)`

describeWith(['userns', 'python'], 'the caller’s terminal', () => {
  const spoilAnd = (then: string) => ['sh', '-c', `python3 -c '${SPOIL}'; ${then}`]
  // A command that exits alone first waits for a key, which is typed when its terminal has been seen: reads fail until then.
  const whenSeen = (then: string) => `until read key; do sleep 0.02; done; ${then}`
  const seen = [{ until: '', untilRaw: true, type: '\r' }]

  test('is spoiled by a command that runs without us', async () => {
    expect(await sitAt(await directoryWith(), ['/bin/sh', ...spoilAnd('exit 3').slice(1)])).toMatchObject({
      status: 3,
      restored: false,
    })
  })

  test.each([
    ['ends', [], whenSeen('exit 3'), seen, { status: 3 }],
    ['is ended at the deadline', ['--timeout', '3s'], 'sleep 20', [], { status: 124 }],
    ['is cancelled by SIGTERM', [], 'sleep 20', [{ until: 'spoiled', signal: 15 }], { status: null, signal: 15 }],
    ['captures nothing but its input', ['--json'], whenSeen('exit 3'), seen, { status: 3 }],
  ] as const)('is given back as it was when the command %s', async (_, options, then, steps, ended) => {
    const directory = await directoryWith()
    for (const way of ['by node', 'by the client']) {
      const run = await sitAt(directory, [programFor(currentUser()), ...options, '--', ...spoilAnd(then)], steps)
      expect({ way, ...run }).toMatchObject({ way, restored: true, signal: null, raw: true, ...ended })
    }
  })

  // Node puts its terminal back whatever happens, so this is about the client, which is the second to run.
  test('is left alone while another program of the same job uses it', async () => {
    const directory = await directoryWith()
    const other =
      'import sys, termios, tty; tty.setraw(2, termios.TCSANOW); sys.stdin.read(); m = termios.tcgetattr(2); print("raw", not m[3] & termios.ICANON, end=" ")'
    const runner = `'${programFor(currentUser())}' -- sh -c 'sleep 1; stty -echo'`
    // Its plan is new, and then it is known.
    for (const way of ['node', 'client']) {
      const { screen } = await sitAt(directory, ['/bin/sh', '-c', `${runner} | python3 -c '${other}'`])
      expect([way, screen]).toEqual([way, expect.stringContaining('raw True')])
    }
  })
})

describeWith(['bwrap', 'userns'], 'with --tty and no terminal around', () => {
  const CAT = ['--timeout', '20s', '--tty', '--', 'sh', '-c', 'stty -echo; test -t 0 && cat && echo "<end>"']
  const LINES = `${'line\n'.repeat(20_000)}last`
  test.each<[what: string, stdin: string, text: string]>([
    ['of more than a terminal takes at once', 'cat lines |', LINES],
    ['of a file', '<lines', LINES],
    ['of a stdin that is closed', '<&-', ''],
  ])('the end %s ends what reads it, by both ways', async (_, stdin, text) => {
    const cwd = await directoryWith({ lines: LINES })
    const HOME = await directoryWith()
    const env = { PATH: process.env.PATH, HOME, XDG_RUNTIME_DIR: join(HOME, 'runtime'), LANG: 'C.UTF-8' }
    await mkdir(env.XDG_RUNTIME_DIR, { mode: 0o700 })
    const [program, ...words] = [programFor(currentUser()), ...CAT]
    const line = stdin.endsWith('|') ? `${stdin} "$@"` : `exec "$@" ${stdin}`
    for (const _way of ['node', 'client']) {
      const { stdout, exitCode } = await execa('/bin/sh', ['-c', line, 'sh', program, ...words], {
        cwd,
        env,
        extendEnv: false,
        reject: false,
        stripFinalNewline: false,
      })
      // Typed before the echo is off, it is seen once more.
      expect([exitCode, stdout.replaceAll('\r', '').endsWith(`${text}<end>\n`)]).toEqual([0, true])
    }
  })
})

describeWith(['userns', 'python'], 'a person at a terminal whose command fails', () => {
  test.each([
    ['hears nothing where nothing was refused', [], 'exit 3', ''],
    ['reads the log', ['--log'], 'exit 3', expect.stringMatching(/^.*isolat.*\r\n$/i)],
  ])('%s', async (_, flags, script, screen) => {
    const cwd = await directoryWith()
    const words = [programFor(currentUser()), ...flags, '-c', script]
    // The second run is the client's.
    for (const run of [1, 2]) expect({ run, ...(await sitAt(cwd, words)) }).toMatchObject({ run, status: 3, screen })
  })
})

describeWith(['userns', 'python'], 'a person at a terminal whose command writes what is read-only', () => {
  const HINT = /^llm-do: hint: (\S+) is read-only in the sandbox; to write it: (.*)\r$/m
  test.each([
    ['a redirection', ['-c', 'echo 1 > made']],
    ['a compiler', ['--', 'gcc', 'main.c', '-o', 'made']],
    ['a program that writes', ['--', 'touch', 'made']],
  ])('reads the flag that lets it: %s', async (_, command) => {
    const cwd = await directoryWith({ 'main.c': 'int main(void) { return 0; }\n' })
    const runner = programFor(currentUser())
    // The second run is the client's.
    for (const run of [1, 2]) {
      const { screen } = await sitAt(cwd, [runner, ...command])
      const [, path, flag = ''] = HINT.exec(screen) ?? []
      expect({ run, path }).toEqual({ run, path: '/workspace/made' })
      expect(await sitAt(cwd, [runner, ...flag.split(' '), ...command])).toMatchObject({ status: 0 })
      await rm(join(cwd, 'made'))
    }
  })

  test.each([
    ['a search without a match', 'grep nomatch file'],
    ['a refusal that is not ours', 'rm nosuch'],
    ['an end of its own after a write that is open', 'echo 1 > /tmp/made; exit 3'],
  ])('hears nothing after %s', async (_, script) => {
    const cwd = await directoryWith({ file: 'text\n' })
    for (const run of [1, 2]) {
      const { screen } = await sitAt(cwd, [programFor(currentUser()), '-c', script])
      expect({ run, screen }).toEqual({ run, screen: expect.not.stringContaining('llm-do:') })
    }
  })
})

/* A user who does not read the terminal, or types without end, does not keep a run from its end. */
/** The surroundings of the runner, `"$@"`. Nothing reads the far end of `pipe`, which is a FIFO. */
const AROUND = {
  'input without end': 'yes | { run "$@" >/dev/null; }',
  'output without a reader': 'exec 9<>pipe; run "$@" </dev/null >&9',
  'output without a reader that another process fills': 'exec 9<>pipe; yes >&9 & run "$@" </dev/null >&9; kill $!',
  'another process reads the same input': 'yes | { cat >/dev/null & run "$@" >/dev/null; kill $!; }',
} as const

const RUN = 'run() { "$@" 2>said; echo "$?" >end; }'

/** Output and status of the run: where the terminal delayed the end, the test would not end. */
async function end(around: string, words: readonly string[]) {
  const cwd = await temporaryDirectory()
  const env = { PATH: process.env.PATH, HOME: cwd, LANG: 'C.UTF-8' }
  const script = `mkfifo -m 666 pipe; ${RUN}; ${around} 2>/dev/null; cat end said`
  const { stdout } = await execa('bash', ['-c', script, 'bash', ...words], { cwd, env, extendEnv: false })
  const [status = '', ...lines] = stdout.split('\n')
  return { status: Number(status), lines: lines.join('\n') }
}

/** Deaf and greedy: in raw mode no typed byte is lost, so the buffers fill up. The run ends at a limit, or never. */
const HOG = `import sys, termios, time, tty
if sys.stdin.isatty(): tty.setraw(0, termios.TCSANOW)
time.sleep(0.3)
held = bytearray(400 << 20)
time.sleep(1e9)`
const TALKS = ['--rw', '.', '--', 'sh', '-c', 'stty raw -echo 2>/dev/null; yes & : >ready; sleep infinity']
/** Stops what it starts when its command is ready. */
const STOPPED = ['sh', '-c', '"$@" <&0 & until test -e ready; do sleep 0.05; done; kill -TERM $!; wait $!', 'sh']

const LIMITS = {
  'the memory limit': [cliWords(['--tty', '--memory', '64m', '--', 'python3', '-c', HOG]), 137, 'killed at the memory'],
  'the timeout': [cliWords(['--tty', '--timeout', '1s', ...TALKS]), 124, 'stopped after 1s'],
  'a signal': [[...STOPPED, ...cliWords(['--tty', ...TALKS])], 143, 'cancelled by SIGTERM'],
} as const

describeWith(['userns', 'python'], 'with --tty a run ends at', () => {
  // Each limit with the terminal that is never read, and the timeout with every terminal: the surroundings are the same for all of them.
  const ROWS = Object.entries(LIMITS).flatMap(([limit, row]) =>
    Object.entries(AROUND)
      .filter(([name]) => limit === 'the timeout' || name === 'output without a reader')
      .map(([name, around]) => ({ limit, name, around, row })),
  )
  test.each(ROWS)('$limit, although $name', async ({ around, row: [words, status, said] }) => {
    expect(await end(around, words)).toEqual({ status, lines: expect.stringContaining(said) })
  })
})

describeWith(['userns', 'python'], 'through a terminal', () => {
  test('2 MiB go both ways unchanged, and then the end of input; from a plan that is new and from one that is known', async () => {
    const home = await temporaryDirectory()
    const env = { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8' }
    const bulk = join(import.meta.dirname, '../programs/terminal-bulk.py')
    for (let round = 0; round < 2; round++) {
      const words = [bulk, ...cliWords(['--tty', '--'])]
      const { stdout } = await execa('python3', words, { cwd: home, env, extendEnv: false })
      expect(JSON.parse(stdout)).toEqual({ status: 0, bytes: 2 << 20, same: true, rest: 'end [4]' })
    }
  })

  test('a reader may take longer than the command: nothing of what it printed is lost', async () => {
    const cwd = await temporaryDirectory()
    const script = '"$@" </dev/null | { while [ ! -e over ]; do sleep 0.05; done; wc -c; }'
    const words = cliWords(['--tty', '--rw', '.', '--', 'sh', '-c', 'stty -onlcr; seq 8000; : >over'])
    const env = { PATH: process.env.PATH, HOME: cwd, LANG: 'C.UTF-8' }
    const { stdout } = await execa('bash', ['-c', script, 'bash', ...words], { cwd, env, extendEnv: false })
    expect(stdout).toBe('38893')
  })
})
