/** Result -> the one byte that a parent process gets. */
import { EXIT_CANCELLED, EXIT_KILLED, EXIT_PROTECTED, EXIT_TIMEOUT } from '../contract.ts'
import { exitStatusOf } from '../error.ts'
import type { Reason, Result } from './result.ts'
import { signalNumber } from './signals.ts'

/** Whatever wait status the command had at its end: it may have caught SIGTERM, or have ended by itself beyond the limit. As status.c has it. */
const KILLED: ReadonlySet<Reason> = new Set(['cpu-time', 'disk', 'memory', 'lost'])

/** Exit status of our own process for a result, 0-255; what it loses (137 or SIGKILL?) stands in the result. */
export function exitStatus({ reason, exitCode, signal, error }: Result): number {
  // The caller relies on the record or the answer that could not be written, more than on how the command ended.
  if (error?.code === 'OUTPUT_FAILED') return exitStatusOf(error.code)
  if (reason === 'timeout') return EXIT_TIMEOUT
  if (reason === 'cancelled') return EXIT_CANCELLED
  if (KILLED.has(reason)) return EXIT_KILLED
  if (reason === 'protected') return EXIT_PROTECTED
  if (error !== undefined) return exitStatusOf(error.code)
  if (signal !== null) return 128 + signalNumber(signal)
  return exitCode ?? EXIT_KILLED
}
