/** The contract's rows about network, and the same attacks without our chain. */
import { testRoom } from './rows.ts'

testRoom('network')
