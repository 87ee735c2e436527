/**
 * Moving a process into a group, to see whether one may be there.
 * Edge: a short-lived shell.
 */
import { runProgram } from '../os/run-program.ts'

/** Why a process could not be in a group. */
export interface NotEntered {
  readonly why: string
  /** The next one may be: it was not refused, but slow. */
  readonly isPassing: boolean
}

/** Puts a new process into a group for a moment. @returns undefined when it was there */
export type Enter = (group: string) => Promise<NotEntered | undefined>

/** A shell that has not moved by then never will. */
const PATIENCE_MS = 10_000

export const enterByShell: Enter = async (group) => {
  const words = ['-c', 'echo 0 >"$1/cgroup.procs"', 'sh', group]
  const entered = await runProgram({ file: '/bin/sh', argv: words, patienceMs: PATIENCE_MS })
  return entered.ok ? undefined : { why: lastWordsOf(entered.why), isPassing: !entered.inTime }
}

const lastWordsOf = (text: string): string => text.trim().split(': ').at(-1) ?? ''
