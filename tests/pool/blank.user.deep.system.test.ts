/** The whole contract in blank sandboxes. */
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { describeWith } from '../support/needs.ts'
import { tryInBlank } from './blank.ts'

describeWith(['unshare', 'userns'], 'the whole contract in a blank sandbox', () => tryInBlank(CONTRACT))
