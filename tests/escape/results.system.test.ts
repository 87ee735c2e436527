/** The contract's rows about results, and the same attacks without our chain. */
import { testRoom } from './rows.ts'

testRoom('results')
