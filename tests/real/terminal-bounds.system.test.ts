/** A user who does not read the terminal, or types without end, does not keep a run from its end. */
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

/** What stands around the runner, `"$@"`. Nothing reads the far end of `pipe`, which is a FIFO. */
const AROUND = {
  'input without end': 'yes | { run "$@" >/dev/null; }',
  'output without a reader': 'exec 9<>pipe; run "$@" </dev/null >&9',
  'output without a reader that another process fills': 'exec 9<>pipe; yes >&9 & run "$@" </dev/null >&9; kill $!',
  'another process reads the same input': 'yes | { cat >/dev/null & run "$@" >/dev/null; kill $!; }',
} as const

const RUN = 'run() { "$@" 2>said; echo "$?" >end; }'

/** What the run said, and its status: where the terminal delayed the end, the test would not end. */
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
  // Each limit with the terminal that nobody reads, and the timeout with every terminal: what is around is the same for all of them.
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
