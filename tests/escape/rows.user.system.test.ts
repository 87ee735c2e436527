/**
 * Each row of the contract holds, and without our chain the same attempt breaks it. doctor/threat-model.deep tries the rows with the
 * other engine.
 */
import { beforeAll, expect } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { roomOf } from '../../src/doctor/contract-types.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { runInSandbox, tryRow } from '../../src/doctor/self-test.ts'
import { describeWith, type Need, testWith } from '../support/needs.ts'
import { controlOf, endProcessesOf, plainBwrap } from './plain-bwrap.ts'
import { expectedKind } from './rows.ts'

/** The filter, the report and the refusals are the same for every user. */
const OF_ANY_USER = new Set(['syscalls', 'results', 'fallbacks'])

describeWith(['unshare', 'userns'], 'with unshare', () => {
  const machine = { landlockAbi: 0 }
  beforeAll(async () => {
    machine.landlockAbi = (await observeForDoctor(process.env)).landlockAbi
  })
  for (const row of CONTRACT)
    testWith(OF_ANY_USER.has(roomOf(row)) ? 'one-user' : 'unshare', row.sentence, async () => {
      const { landlockAbi } = machine
      const verdict = await tryRow(row, { engine: 'unshare', landlockAbi, runner: runInSandbox })
      expect(verdict, row.id).toMatchObject({ kind: expectedKind(row, landlockAbi) })
    })
})

describeWith(['bwrap', 'userns', 'one-user'], 'without the chain', () => {
  for (const row of CONTRACT) {
    const control = controlOf(row)
    if ('none' in control) continue
    const needs: Need[] = control.only === 'root' ? ['root'] : []
    if (row.id === 'syscalls.foreign') needs.push('foreign-calls')
    testWith(needs, `it is not so: ${row.sentence}`, async () => {
      const bases: string[] = []
      const attack = plainBwrap(control)
      const runner: typeof attack = (attempt, site) => {
        bases.push(site.base)
        return attack(attempt, site)
      }
      try {
        // A row that a kernel cannot hold has no control; sockets that can be reached have.
        const verdict = await tryRow(row, { engine: 'bwrap', landlockAbi: 8, runner })
        expect(verdict, row.id).toMatchObject({ kind: 'broken' })
      } finally {
        for (const base of bases) endProcessesOf(base)
      }
    })
  }
})
