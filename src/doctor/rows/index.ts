/** Every row of the contract, in the order of the rooms. Pure. */
import type { Row } from '../contract-types.ts'
import { FILE_ROWS } from './files.ts'
import { NETWORK_ROWS, SYSCALL_ROWS } from './network.ts'
import { PROCESS_ROWS } from './processes.ts'
import { FALLBACK_ROWS, RESOURCE_ROWS, RESULT_ROWS } from './results.ts'

export const CONTRACT: readonly Row[] = [
  ...FILE_ROWS,
  ...PROCESS_ROWS,
  ...NETWORK_ROWS,
  ...SYSCALL_ROWS,
  ...RESOURCE_ROWS,
  ...RESULT_ROWS,
  ...FALLBACK_ROWS,
]
