/** The rows of the adversary that share one sandbox, with the default engine and filter: seconds, before each landing. */
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { callers } from '../support/users.ts'
import { isShared, tryCell } from './matrix.ts'
import { ATTACKS } from './table.ts'
import { compilePrograms } from './world.ts'

const USERS = callers()

describeWith(['gcc', 'git', 'unshare', 'userns'], 'the adversary in short', () => {
  test.each(USERS)('harms nothing as %s', { timeout: 60_000 }, async (user) => {
    const programs = compilePrograms()
    try {
      const cell = { backend: 'unshare', filter: 'default', user } as const
      const quick = ATTACKS.filter(isShared)
      const found = await tryCell(quick, { cell, programs: programs.directory })
      expect(found.filter(({ kind }) => kind !== 'held')).toEqual([])
    } finally {
      programs.remove()
    }
  })
})
