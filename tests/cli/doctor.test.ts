import { expect, test } from 'vitest'
import { contractStatus } from '../../src/cli/commands/doctor.ts'
import type { Verdict } from '../../src/doctor/contract-types.ts'

const row = (verdict: Verdict) => ({ verdict })
const [HOLDS, CANNOT, BROKEN] = [
  row({ kind: 'holds' }),
  row({ kind: 'cannot', why: 'an old kernel' }),
  row({ kind: 'broken', why: 'a hole' }),
]

test.each([
  [[HOLDS, CANNOT], false, 0],
  [[HOLDS, BROKEN, HOLDS], false, 1],
  [[BROKEN], true, 130],
])('the self-test of the doctor with %j, stopped: %s, has status %i', (results, isStopped, status) => {
  expect(contractStatus(results, isStopped)).toBe(status)
})
