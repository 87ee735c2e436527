/** The contract's rows about processes, and the same attacks without our chain. */
import { testRoom } from './rows.ts'

testRoom('processes')
