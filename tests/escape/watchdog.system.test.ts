import { expect, test } from 'vitest'
import { textHere } from '../real/in-process.ts'
import { guestDirectory } from '../support/driver.ts'
import { describeWith, testWith } from '../support/needs.ts'

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

describeWith('userns', 'the memory limit', () => {
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
