/** A terminal between a command and a user who does not read, or who types without end: it delays nothing. */
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, type Need, testWith } from '../support/needs.ts'
import { currentUser, type User } from '../support/users.ts'

const USERS: readonly (readonly [User, readonly Need[]])[] =
  currentUser() === 'root' ? [['root', []] as const, ['plain', ['plain-user']] as const] : [['plain', []] as const]

/** What stands around the runner, `"$@"`. Nothing reads the far end of `pipe`, which is a FIFO. */
const AROUND = {
  'input without end': 'yes | { run "$@" >/dev/null; }',
  'output without a reader': 'exec 9<>pipe; run "$@" </dev/null >&9',
  'output without a reader that another process fills': 'exec 9<>pipe; yes >&9 & run "$@" </dev/null >&9; kill $!',
  'another process reads the same input': 'yes | { cat >/dev/null & run "$@" >/dev/null; kill $!; }',
} as const

const RUN = 'run() { from=$EPOCHREALTIME; "$@" 2>said; echo "$? $from $EPOCHREALTIME" >end; }'

interface End {
  readonly status: number
  readonly seconds: number
  readonly lines: string
}

async function end(as: User, around: string, words: readonly string[]): Promise<End> {
  const cwd = await temporaryDirectory({ owner: as })
  const home = await temporaryDirectory({ owner: as })
  const env = { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8' }
  const script = `mkfifo -m 666 pipe; ${RUN}; ${around} 2>/dev/null; cat end said`
  const { stdout } = await execa('bash', ['-c', script, 'bash', ...words], { cwd, env, extendEnv: false })
  const [first = '', ...lines] = stdout.split('\n')
  const [status, from, to] = first.split(' ').map(Number)
  return { status: status ?? -1, seconds: (to ?? 0) - (from ?? 0), lines: lines.join('\n') }
}

/** Deaf and greedy: in raw mode nothing that is typed gets lost, so the buffers fill up. */
const HOG = `import sys, termios, time, tty
if sys.stdin.isatty(): tty.setraw(0, termios.TCSANOW)
time.sleep(0.3)
held = bytearray(400 << 20)
time.sleep(60)`

describeUsers('the memory limit', async (as, around) => {
  const limits = ['--memory', '64m', '--timeout', '20s', '--', 'python3', '-c', HOG]
  const control = await end(as, AROUND['input without end'], cliWords(limits, { as }))
  const seen = await end(as, around, cliWords(['--tty', ...limits], { as }))
  expect({ with: seen.status, without: control.status }).toEqual({ with: 137, without: 137 })
  expect(seen.lines).toContain('killed at the memory limit')
  expect(seen.seconds).toBeLessThan(control.seconds + 3)
})

describeUsers('the deadline', async (as, around) => {
  const limits = ['--timeout', '1s', '--', 'sh', '-c', 'stty raw -echo 2>/dev/null; yes & sleep 60']
  const control = await end(as, AROUND['input without end'], cliWords(limits, { as }))
  const seen = await end(as, around, cliWords(['--tty', ...limits], { as }))
  expect({ with: seen.status, without: control.status }).toEqual({ with: 124, without: 124 })
  expect(seen.seconds).toBeLessThan(control.seconds + 2)
})

describeUsers('a signal', async (as, around) => {
  const words = cliWords(['--tty', '--', 'sh', '-c', 'stty raw -echo; yes & sleep 60'], { as })
  const seen = await end(as, around, ['timeout', '1', ...words])
  expect({ ...seen, isSoon: seen.seconds < 4 }).toMatchObject({ status: 124, isSoon: true })
})

function describeUsers(what: string, body: (as: User, around: string) => Promise<void>): void {
  describeWith(['userns', 'python'], `with --tty ${what} holds`, () => {
    for (const [as, needs] of USERS)
      for (const [title, around] of Object.entries(AROUND))
        testWith(needs, `as ${as}, although ${title}`, () => body(as, around))
  })
}

describeWith(['userns', 'python'], 'through a terminal', () => {
  test('8 MiB go both ways unchanged, and then the end of input; from a plan that is new and from one that is known', async () => {
    const home = await temporaryDirectory()
    const env = { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8' }
    const bulk = join(import.meta.dirname, '../programs/terminal-bulk.py')
    for (let round = 0; round < 2; round++) {
      const words = [bulk, ...cliWords(['--tty', '--'])]
      const { stdout } = await execa('python3', words, { cwd: home, env, extendEnv: false })
      expect(JSON.parse(stdout)).toEqual({ status: 0, bytes: 8 << 20, same: true, rest: 'end [4]' })
    }
  })

  test('a reader may take longer than the command: nothing of what it printed is lost', async () => {
    const cwd = await temporaryDirectory()
    const script = '"$@" </dev/null | { while [ ! -e over ]; do sleep 0.05; done; sleep 0.3; wc -c; }'
    const words = cliWords(['--tty', '--rw', '.', '--', 'sh', '-c', 'stty -onlcr; seq 8000; : >over'])
    const env = { PATH: process.env.PATH, HOME: cwd, LANG: 'C.UTF-8' }
    const { stdout } = await execa('bash', ['-c', script, 'bash', ...words], { cwd, env, extendEnv: false })
    expect(stdout).toBe('38893')
  })
})
