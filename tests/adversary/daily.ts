/** Tries each row with the default engine and filter, and once without the wall, where it does harm. */
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import type { Attack, Cell } from './attack.ts'
import { type CellSite, hasControl, isShared, tryCell, tryControl } from './matrix.ts'

const user = currentUser()
export const CELL: Cell = { backend: 'unshare', filter: 'default', user }

/** The verdicts that are neither `held` nor `refused`. */
export async function harmedIn(site: CellSite, attacks: readonly Attack[]) {
  const found = await tryCell(attacks, site)
  return found.filter(({ kind }) => kind === 'harmed' || kind === 'untried')
}

/** One test for each row with a separate sandbox, and one control for every row. */
export function testAttacks(attacks: readonly Attack[]): void {
  describeWith(['git', 'unshare', 'userns'], 'the adversary', () => {
    const alone = attacks.filter((attack) => !isShared(attack) && !attack.isDeep && (attack.on?.(CELL) ?? true))
    test.each(alone)('$id harms nothing', async (attack) => {
      expect(await harmedIn({ cell: CELL, isHere: true }, [attack])).toEqual([])
    })
  })

  describeWith(['git', 'bwrap', 'userns'], 'without the wall', () => {
    test.each(attacks.filter((attack) => hasControl(attack, user)))('$id does harm', async (attack) => {
      expect(await tryControl(attack, { cell: CELL, isHere: true })).toBeDefined()
    })
  })
}
