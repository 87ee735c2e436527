/** Limits that differ with the user: root has a cgroup, others often a watchdog or a resource limit. */
import { expect, test } from 'vitest'
import { guestDirectory } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'
import { runHere } from './in-process.ts'

describeWith('userns', 'the limit of processor time', () => {
  test('ends a command that uses more, with its children, and no other', async () => {
    const spin = 'i=0; while :; do i=$((i + 1)); done'
    expect(await runHere(['--cpu-time', '300ms', '-c', `(${spin}) & ${spin}`])).toMatchObject({
      ok: false,
      reason: 'cpu-time',
      // On a busy machine the tenth of a second after SIGTERM may be over first.
      signal: expect.stringMatching(/^SIG(TERM|KILL)$/),
    })
    expect(await runHere(['--cpu-time', '20s', '-c', 'sleep 1; exit 3'])).toMatchObject({ reason: 'exit', exitCode: 3 })
  })
})

describeWith('userns', 'the limit of memory', () => {
  test('ends a command that cannot be inspected', async () => {
    // For longer than a loaded machine needs to find it.
    const holding = (limit: string, seconds: number) =>
      runHere([
        ...['--memory', limit, '--env', `HOLD_SECONDS=${seconds}`, '--ro', `${guestDirectory()}:/tool`],
        ...['--', '/tool/hide-memory', 'undumpable', '300'],
      ])
    expect(await holding('64m', 15)).toMatchObject({ reason: 'memory', stdout: '' })
    expect(await holding('512m', 0)).toMatchObject({ exitCode: 0, stdout: 'held 300 MiB\n' })
  })
})

describeWith('userns', 'a program that runs out of processes', () => {
  /** Starts sleepers until it cannot, or until it has enough; the shell is one process more. */
  const sleepers = (count: number) =>
    runHere(['--pids', '8', '-c', `for i in $(seq ${count}); do sleep 60 & done; exit 3`])
  const hint = expect.stringContaining('raise --pids or resources.pids')

  test('gets a reason where the kernel counts refusals, and a hint everywhere', async () => {
    const result = await sleepers(20)
    expect(result).toMatchObject({ ok: false, reason: result.limits.pids?.by === 'cgroup2' ? 'pids' : 'exit' })
    expect(result.hints).toContainEqual(hint)
  })

  test('gets neither while it has some left', async () => {
    const { reason, exitCode, hints } = await sleepers(3)
    expect({ reason, exitCode }).toEqual({ reason: 'exit', exitCode: 3 })
    expect(hints).not.toContainEqual(hint)
  })
})
