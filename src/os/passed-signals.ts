/**
 * Signals that are the command's, as native/lib/passed-signals.c has them: none of them ends a run. SIGUSR1 is one, by which Node would start
 * its debugger; NODE_WITHOUT_DEBUGGER (native/contract.yaml) keeps it from that in the moment before our handler stands.
 *
 * Edge: signals of this process.
 */
export const PASSED_SIGNALS = [
  'SIGHUP',
  'SIGUSR1',
  'SIGUSR2',
  'SIGALRM',
  'SIGVTALRM',
  'SIGPROF',
  'SIGIO',
  'SIGPWR',
  'SIGSTKFLT',
] as const satisfies readonly NodeJS.Signals[]

/** Calls `take` with each signal that comes. @returns ends that */
export type LentSignals = (take: (signal: NodeJS.Signals) => void) => () => void

const ignore = (): void => undefined

/** Called before anything else of our programs: a signal without a handler ends Node, or opens its debugger. */
export function holdSignals(): void {
  // Without a command SIGHUP ends our program, as every other.
  for (const signal of PASSED_SIGNALS) if (signal !== 'SIGHUP') process.on(signal, ignore)
}

/** @param onHangUp called for a SIGHUP that comes while no command is there to take it */
export function lendSignals(onHangUp: (signal: 'SIGHUP') => void): {
  readonly signals: LentSignals
  readonly end: () => void
} {
  const takers = new Set<(signal: NodeJS.Signals) => void>()
  const on = (signal: NodeJS.Signals): void => {
    if (takers.size === 0 && signal === 'SIGHUP') onHangUp(signal)
    for (const take of takers) take(signal)
  }
  for (const signal of PASSED_SIGNALS) process.on(signal, on)
  return {
    signals: (take) => {
      takers.add(take)
      return () => void takers.delete(take)
    },
    end: () => {
      for (const signal of PASSED_SIGNALS) process.off(signal, on)
    },
  }
}
