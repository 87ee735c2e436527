/** Each row of the contract without our chain: the same attempt breaks it. */
import { expect } from 'vitest'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { tryRow } from '../../src/doctor/self-test.ts'
import { type Need, testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { CONTROLS, endProcessesOf, plainBwrap } from './plain-bwrap.ts'

export function testControls(): void {
  for (const row of CONTRACT) {
    const control = CONTROLS[row.id]
    if ('none' in control) continue
    const needs: Need[] = control.only === 'root' ? ['root'] : []
    if (row.id === 'syscalls.foreign') needs.push('foreign-calls')
    testWith(needs, `it is not so: ${row.sentence}`, async () => {
      const bases: string[] = []
      const runner = plainBwrap(control)
      try {
        const verdict = await tryRow(row, {
          engine: 'bwrap',
          landlockAbi: 8, // A row that a kernel cannot hold has no control; sockets that can be reached have.
          runner: (attempt, site) => {
            bases.push(site.base)
            return runner(attempt, site)
          },
        })
        expect(verdict, `${row.id} as ${currentUser()}`).toMatchObject({ kind: 'broken' })
      } finally {
        for (const base of bases) endProcessesOf(base)
      }
    })
  }
}
