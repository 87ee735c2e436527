/** The contract's rows about resources, and the same attacks without our chain. */
import { testRoom } from './rows.ts'

testRoom('resources')
