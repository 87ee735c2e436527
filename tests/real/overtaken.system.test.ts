/**
 * A runner that the machine keeps waiting learns of an end after the moment in which it would have had to stop the run. What it is told
 * then decides: a command that had ended was stopped by nobody.
 */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'

/** Of the runner's waits: before, at and after the reports that the command has begun and ended. */
const WAITS = [4, 5, 6] as const
/** A run that ends by itself is over long before, on a busy machine too. */
const DEADLINE = '3s'
/** Longer than the deadline. */
const STALL_US = 4_000_000

/** Longer than a run takes; no deadline is near. */
const LOOK_US = 1_000_000

const ENDS = [
  { what: 'a missing command', command: ['nope'], status: 127 },
  { what: 'a failure', command: ['sh', '-c', 'exit 3'], status: 3 },
  { what: 'the deadline', command: ['sleep', '30'], status: 124 },
] as const

describeWith(['strace', 'userns'], 'a runner that wakes up too late', () => {
  test('tells how the command ended', async () => {
    const cwd = await directoryWith()
    const env = { HOME: await directoryWith() }
    // Only the second run of its kind is carried out by the traced process itself.
    await runCli(['--timeout', DEADLINE, '--', 'true'], { cwd, env })
    const cases = ENDS.flatMap((end) => WAITS.map((wait) => ({ ...end, wait })))
    const told = async ({ what, command, wait }: (typeof cases)[number]) => {
      const stall = `inject=poll:delay_exit=${STALL_US}:when=${wait}`
      const through = ['strace', '-o', '/dev/null', '-e', 'trace=poll', '-e', stall]
      const { status } = await runCli(['--timeout', DEADLINE, '--', ...command], { cwd, env, through })
      return { what, wait, status }
    }
    // They wait for their stalls side by side.
    expect(await Promise.all(cases.map(told))).toEqual(cases.map(({ what, wait, status }) => ({ what, wait, status })))
  })

  // Where the sandbox does not wait for the runner, all of it may be over before the runner looks for the first time.
  test.each(['unshare'])('reports a run that ended before the runner first looked, with engine %s', async (engine) => {
    const cwd = await directoryWith()
    await execa('git', ['init', '-q'], { cwd }) // Protected, so that a sweeper is started.
    const env = { HOME: await directoryWith() }
    const words = ['--engine', engine, '--rw', '.', '--', 'sh', '-c', 'exit 3']
    expect(await runCli(words, { cwd, env })).toMatchObject({ status: 3 })
    for (const wait of [1, 2, 3]) {
      const stall = `inject=wait4:delay_enter=${LOOK_US}:when=${wait}`
      const through = ['strace', '-o', '/dev/null', '-e', 'trace=wait4', '-e', stall]
      const { status, stderr } = await runCli(words, { cwd, env, through })
      expect({ wait, status, stderr: stderr.toString() }).toEqual({ wait, status: 3, stderr: '' })
    }
  })
})
