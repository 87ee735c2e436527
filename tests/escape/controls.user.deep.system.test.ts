/** The controls of the contract's rows, as both users. */
import { describeWith } from '../support/needs.ts'
import { testControls } from './controls.ts'

describeWith(['bwrap', 'userns'], 'without the chain', testControls)
