/** A blank sandbox gets its directories with its command: the walls that depend on when they are mounted stand as in a cold run. */
import { roomOf } from '../../src/doctor/contract-types.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { describeWith } from '../support/needs.ts'
import { tryInBlank } from './blank.ts'

/** All other rows: blank.user.deep.system.test.ts. */
const OF_MOUNTS = new Set(['files', 'processes'])

describeWith(['unshare', 'userns'], 'the contract in a blank sandbox', () => {
  tryInBlank(CONTRACT.filter((row) => OF_MOUNTS.has(roomOf(row))))
})
