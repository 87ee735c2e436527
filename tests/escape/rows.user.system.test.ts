/**
 * Each row of the contract holds, and without our chain the same attempt breaks it. doctor/threat-model.deep tries the rows with the
 * other engine.
 */
import { expect } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { runInSandbox, tryRow } from '../../src/doctor/self-test.ts'
import { describeWith, type Need, testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { CONTROLS, endProcessesOf, plainBwrap } from './plain-bwrap.ts'
import { expectedKind } from './rows.ts'

describeWith(['unshare', 'userns'], 'with unshare', () => {
  for (const row of CONTRACT)
    testWith('unshare', row.sentence, async () => {
      const { landlockAbi } = await observeForDoctor(process.env)
      const verdict = await tryRow(row, { engine: 'unshare', landlockAbi, runner: runInSandbox })
      expect(verdict, row.id).toMatchObject({ kind: expectedKind(row, landlockAbi) })
    })
})

describeWith(['bwrap', 'userns'], 'without the chain', () => {
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
})
