/**
 * The end of a run that no native program has reported: plain processes, wasm modules, a container without our init. The same rules as
 * native/lib/status.c, which reports all others; tests/ends.ts has the cases of both. Pure.
 */
import { EXIT_KILLED, EXIT_PROTECTED, EXIT_TIMEOUT, type Reason, SIGNALS } from '../contract.ts'
import { exitStatusOf } from '../error.ts'
import type { Ending, Outcome } from './outcome.ts'

/** @returns `SIG34` for a signal without a name, as those of real time are */
export const signalName = (number: number): string => SIGNALS[number - 1] ?? `SIG${number}`

/**
 * Linux numbers, also on macOS and Windows: the command runs on a Linux kernel.
 * @returns 0 for a word that names no signal
 */
export function signalNumber(name: string): number {
  const at = (SIGNALS as readonly string[]).indexOf(name)
  return at >= 0 ? at + 1 : Number(/^SIG(\d+)$/.exec(name)?.[1] ?? 0)
}

/** Reasons for which the wait status does not matter: the command may have caught SIGTERM, or have exited beyond the limit. */
const KILLED: ReadonlySet<Reason> = new Set(['cpu-time', 'disk', 'memory', 'lost'])

/** The exit status of our own process follows from the rest. */
export function withExitStatus<T extends Omit<Ending, 'exitStatus'> & Pick<Outcome, 'failure' | 'cancelledBy'>>(
  outcome: T,
): T & Ending {
  return { ...outcome, exitStatus: exitStatus(outcome) }
}

/** A run is cancelled by this signal, unless the caller has named another one. */
const CANCEL_SIGNAL = 'SIGTERM'

function exitStatus({
  reason,
  exitCode,
  signal,
  failure,
  cancelledBy = '',
}: Omit<Ending, 'exitStatus'> & Pick<Outcome, 'failure' | 'cancelledBy'>): number {
  if (reason === 'timeout') return EXIT_TIMEOUT
  // A command that handled the signal has the last word.
  if (reason === 'cancelled') return exitCode ?? 128 + (signalNumber(cancelledBy) || signalNumber(CANCEL_SIGNAL))
  if (reason === 'protected') return EXIT_PROTECTED
  if (KILLED.has(reason)) return EXIT_KILLED
  if (reason === 'setup') return exitStatusOf(failure?.code ?? 'SETUP_FAILED')
  if (signal !== null) return 128 + signalNumber(signal)
  return exitCode ?? EXIT_KILLED
}

/** The reason of a command that ended on its own, or seemed to: counters and the system call filter may know better. */
export function ownReason(
  { exitCode, signal, events }: Pick<Outcome, 'exitCode' | 'signal' | 'events'>,
  isFiltered: boolean,
): Reason {
  if (signal === 'SIGSYS' && isFiltered) return 'seccomp'
  if (signal === 'SIGKILL' && (events?.oomKill ?? 0) > 0) return 'memory'
  if (exitCode !== 0 && (events?.pidsMax ?? 0) > 0) return 'pids'
  return signal === null ? 'exit' : 'signal'
}

/** Ends that our own supervision of a process knows. */
export const REASON_OF_CAUSE = { deadline: 'timeout', cancelled: 'cancelled' } as const
