/**
 * Signal names and their Linux numbers (signal(7)). An own table, because a result means the same on every platform:
 * the command always runs on a Linux kernel, also when the caller sits on macOS or Windows.
 */

const NUMBERS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGSTKFLT: 16,
  SIGCHLD: 17,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGTTIN: 21,
  SIGTTOU: 22,
  SIGURG: 23,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGVTALRM: 26,
  SIGPROF: 27,
  SIGWINCH: 28,
  SIGIO: 29,
  SIGPWR: 30,
  SIGSYS: 31,
}

/** First real-time signal that a program can use with glibc; SIGRTMIN in signal(7). */
const SIGRTMIN = 34

/**
 * The number of a signal given by name: `SIGKILL`, `SIGRTMIN+3`, or `SIG40` for one without a name.
 * @returns 0 for a word that names no signal
 */
export function signalNumber(name: string): number {
  const known = NUMBERS[name]
  if (known !== undefined) return known
  const realTime = /^SIGRTMIN(?:\+(\d+))?$/.exec(name)
  if (realTime) return SIGRTMIN + Number(realTime[1] ?? 0)
  return Number(/^SIG(\d+)$/.exec(name)?.[1] ?? 0)
}
