/** The contract's rows about syscalls, and the same attacks without our chain. */
import { testRoom } from './rows.ts'

testRoom('syscalls')
