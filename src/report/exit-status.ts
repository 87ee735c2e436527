/** Result -> the one byte that a parent process gets. */
import { exitStatusOf } from '../error.ts'
import type { Result } from './result.ts'
import { signalNumber } from './signals.ts'

/** Exit status of our own process for a result, 0-255; what it loses (137 or SIGKILL?) stands in the result. */
export function exitStatus({ reason, exitCode, signal, error }: Result): number {
  if (reason === 'timeout') return 124
  if (reason === 'cancelled') return 130
  if (reason === 'lost') return 128 + signalNumber('SIGKILL')
  if (reason === 'protected') return 126
  if (error !== undefined) return exitStatusOf(error.code)
  if (signal !== null) return 128 + signalNumber(signal)
  // A limit that stopped the command without a wait status to show for it counts as the kill it was.
  return exitCode ?? 128 + signalNumber('SIGKILL')
}
