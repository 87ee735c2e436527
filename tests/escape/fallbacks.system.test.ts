/** The contract's rows about fallbacks, and the same attacks without our chain. */
import { testRoom } from './rows.ts'

testRoom('fallbacks')
