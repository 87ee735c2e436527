/**
 * The standing adversary, where the user matters: files, the kernel and limits. Rows that share one sandbox are also tried under each filter and by
 * the other engine. table.user.deep has all cells.
 */
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { type Cell, FILTERS } from './attack.ts'
import { CELL, harmedIn, testAttacks } from './daily.ts'
import { FILE_ATTACKS } from './files.ts'
import { KERNEL_ATTACKS } from './kernel.ts'
import { LIMIT_ATTACKS } from './limits.ts'
import { isShared } from './matrix.ts'
import { ATTACKS } from './table.ts'

const CELLS: readonly Cell[] = [...FILTERS.map((filter): Cell => ({ ...CELL, filter })), { ...CELL, backend: 'bwrap' }]

testAttacks([...FILE_ATTACKS, ...KERNEL_ATTACKS.filter(isShared), ...LIMIT_ATTACKS])

describeWith(['git', 'bwrap', 'unshare', 'userns'], 'the adversary in a shared sandbox', () => {
  test.each(CELLS)('harms nothing by $backend under $filter', async (cell) => {
    expect(await harmedIn({ cell, isHere: true }, ATTACKS.filter(isShared))).toEqual([])
  })

  // These filters let the command make the mounts that this row needs.
  test.each(['off', 'file'] as const)('moves no protected path under %s', async (filter) => {
    const attacks = ATTACKS.filter(({ id }) => id === 'protected.detached')
    expect(await harmedIn({ cell: { ...CELL, filter }, isHere: true }, attacks)).toEqual([])
  })
})
