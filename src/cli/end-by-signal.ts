/**
 * Ends a call by the signal that cancelled its run.
 * Edge: signals.
 */
import { leaveStreams } from './stdio.ts'

/** Not SIGQUIT, which dumps core. */
export const END_SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Ends this process by that signal, if that is one of the two. Process 1 of a container stays: it has its status. */
export function endBy(signal: NodeJS.Signals | null | undefined): void {
  const by = END_SIGNALS.find((name) => name === signal)
  if (by === undefined) return
  leaveStreams()
  process.removeAllListeners(by)
  process.kill(process.pid, by)
}
