/** The contract's rows about files, and the same attacks without our chain. */
import { testRoom } from './rows.ts'

testRoom('files')
