/** Limits that differ with the user: root has a cgroup, others often a watchdog or a resource limit. */
import { expect, test } from 'vitest'
import { guestDirectory } from '../support/driver.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { runHere, textHere } from './in-process.ts'

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

/** @param held seconds for which the memory is held; hidden memory is held for longer than a loaded machine needs to find it */
async function hide(limit: string, words: readonly string[], held = 3) {
  const limits = ['--memory', limit, '--timeout', '60s', '--pids', '300', '--env', `HOLD_SECONDS=${held}`]
  const argv = [
    ...limits,
    '--engine',
    'unshare',
    '--ro',
    `${guestDirectory()}:/tool`,
    '--',
    '/tool/hide-memory',
    ...words,
  ]
  return await textHere(argv)
}

describeWith(['userns', 'one-user'], 'the memory limit', () => {
  test.each([
    ['passing', '300', '200', '900'],
    ['copying', '300', '0', '0'],
    ['leader', '300'],
    ['thread', '300'],
  ])('ends a command that hides memory: %s %s %s %s', async (...words) => {
    expect(await hide('64m', words, 30)).toMatchObject({
      status: 137,
      out: '',
      err: expect.stringContaining('memory limit'),
    })
  })

  test.each([
    ['a crowd of processes with open files', ['crowd', '0', '200', '50'], 0],
    ['one copy after another of a large process', ['copies', '300'], 300],
  ] as const)('leaves a command alone with %s', async (_, words, mib) => {
    expect(await hide('512m', words)).toMatchObject({ status: 0, out: `held ${mib} MiB\n`, err: '' })
  })

  testWith('root', 'of root bounds detached System V segments', async () => {
    expect(await hide('512m', ['segment', '300'])).toMatchObject({ status: 0, out: 'held 300 MiB\n' })
    const { status, out, err } = await hide('64m', ['segment', '300'], 30)
    expect({ out, isHeld: status === 137 || err.includes('shmget: No space left on device') }).toEqual({
      out: '',
      isHeld: true,
    })
  })
})

describeWith('userns', 'the memory limit of every user', () => {
  test('ends a command that cannot be inspected', async () => {
    expect(await hide('64m', ['undumpable', '300'], 30)).toMatchObject({ status: 137, out: '' })
    expect(await hide('512m', ['undumpable', '300'], 0)).toMatchObject({ status: 0, out: 'held 300 MiB\n' })
  })
})
