/**
 * How a call ends whose run was cancelled by a signal.
 * Edge: signals.
 */
import { leaveStreams } from './stdio.ts'

/** Not SIGQUIT, which dumps core. */
export const END_SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Ends this process by that signal, if it is one of ours. Process 1 of a container stays: it has its status. */
export function endBy(signal: NodeJS.Signals | null | undefined): void {
  const by = END_SIGNALS.find((name) => name === signal)
  if (by === undefined) return
  leaveStreams()
  process.removeAllListeners(by)
  process.kill(process.pid, by)
}
