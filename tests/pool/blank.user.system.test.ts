/** A blank sandbox gets its directories with its command: all walls of a cold run stand in it. */
import { expect, test } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { tryRow } from '../../src/doctor/self-test.ts'
import { expectedKind } from '../escape/rows.ts'
import { describeWith } from '../support/needs.ts'
import { blankRunner } from './blank.ts'

describeWith(['unshare', 'userns'], 'the contract in a blank sandbox', () => {
  for (const row of CONTRACT)
    test(row.sentence, async () => {
      const { landlockAbi } = await observeForDoctor(process.env)
      const verdict = await tryRow(row, { engine: 'unshare', landlockAbi, runner: blankRunner })
      expect(verdict, row.id).toMatchObject({ kind: expectedKind(row, landlockAbi) })
    })
})
