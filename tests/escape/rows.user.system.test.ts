/**
 * Each row of the contract holds, and without our chain the same attempt breaks it. doctor/threat-model.deep tries the rows with the
 * other engine.
 */
import { beforeAll, expect } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { roomOf } from '../../src/doctor/contract-types.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { runInSandbox, tryRow } from '../../src/doctor/self-test.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { testControls } from './controls.ts'
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

// controls.user.deep tries them as the plain user, too.
describeWith(['bwrap', 'userns', 'one-user'], 'without the chain', testControls)
