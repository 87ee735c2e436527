/** A command that gets a terminal of its own, with a person in front of ours (programs/terminal.py). */
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { programFor } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { placeWith, tell } from './place.ts'

const HARNESS = join(import.meta.dirname, '../programs/terminal.py')

interface Step {
  /** Text that the screen shows before this step. */
  readonly until: string
  readonly type?: string
  /** Rows and columns. */
  readonly resize?: readonly [number, number]
  /** Number of a signal to the runner. */
  readonly signal?: number
}

interface Seen {
  readonly status: number | null
  readonly signal: number | null
  readonly screen: string
  /** The caller's terminal is as it was. */
  readonly restored: boolean
  /** It was out of line mode in between: keys went to the command. */
  readonly raw: boolean
}

async function sit(argv: readonly string[], steps: readonly Step[] = []): Promise<Seen> {
  const home = await placeWith()
  const asked = {
    argv: [programFor(currentUser()), ...argv],
    cwd: await placeWith(),
    env: { PATH: process.env.PATH, HOME: home, TERM: 'xterm', LANG: 'C.UTF-8' },
    rows: 33,
    columns: 101,
    steps,
  }
  const { stdout } = await execa('python3', [HARNESS], { input: JSON.stringify(asked) })
  return JSON.parse(stdout) as Seen
}

const AT_EASE = { signal: null, restored: true }

describeWith(['bwrap', 'userns', 'python'], 'with --tty the command', () => {
  test('has a terminal of the size of the caller’s', async () => {
    // It waits for a key: how the terminal is meanwhile can be seen only while it is there.
    const script = 'stty size; test -t 0 && test -t 1 && test -t 2 && echo all; echo $TERM; read key; exit 5'
    const seen = await sit(['--tty', '-c', script], [{ until: 'xterm', type: '\r' }])
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

  test('may catch Ctrl-C and go on', async () => {
    const script = 'trap "echo caught; exit 7" INT; echo ready; while :; do sleep 0.1; done'
    const seen = await sit(['--tty', '-c', script], [{ until: 'ready', type: '\u0003' }])
    expect(seen).toMatchObject({ ...AT_EASE, status: 7, screen: expect.stringContaining('caught') })
  })

  test('leaves the caller’s terminal as it was when the runner is stopped', async () => {
    const seen = await sit(
      ['--tty', '--', 'sh', '-c', 'stty raw -echo; echo ready; sleep 20'],
      [{ until: 'ready', signal: 15 }],
    )
    expect(seen).toMatchObject({ ...AT_EASE, status: 130, raw: true })
  })

  test('is ended at the deadline, and the terminal is as it was', async () => {
    const seen = await sit(['--tty', '--timeout', '500ms', '--', 'sleep', '20'])
    expect(seen).toMatchObject({ ...AT_EASE, status: 124, raw: true })
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

  test('Ctrl-C at the terminal cancels the run', async () => {
    const seen = await sit(['-c', 'echo ready; exec sleep 20'], [{ until: 'ready', type: '\u0003' }])
    expect(seen).toMatchObject({ ...AT_EASE, status: 130 })
  })
})

describeWith(['bwrap', 'userns'], 'with --tty and no terminal around', () => {
  test('a pipe is typed into it', async () => {
    const told = await tell(['--tty', '--', 'sh', '-c', 'test -t 0 && read word && echo "<$word>"'], {
      stdin: 'hello\n',
    })
    expect(told).toMatchObject({ status: 0, out: expect.stringContaining('<hello>') })
  })
})
