/**
 * Moving a process into a group, to see whether one may be there.
 * Edge: a short-lived shell.
 */
import { ask } from '../ask.ts'

/** Has a process of its own in a group for a moment. @returns why it could not be there, undefined when it was */
export type Enter = (group: string) => Promise<string | undefined>

/** A shell that has not moved by then never will. */
const PATIENCE_MS = 10_000

export const enterByShell: Enter = async (group) => {
  const words = ['-c', 'echo 0 >"$1/cgroup.procs"', 'sh', group]
  const entered = await ask({ file: '/bin/sh', argv: words, patienceMs: PATIENCE_MS })
  return entered.ok ? undefined : lastWordsOf(entered.why)
}

const lastWordsOf = (text: string): string => text.trim().split(': ').at(-1) ?? ''
