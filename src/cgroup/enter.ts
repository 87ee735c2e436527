/**
 * Moving a process into a group, to see whether one may be moved there.
 * Edge: a short-lived shell.
 */
import { type Answer, ask } from '../ask.ts'

/** Moves a process of its own into a group and lets it end. @returns why it could not be moved, undefined when it was */
export type Enter = (group: string) => Promise<string | undefined>

/** A shell that has not moved by then never will. */
const PATIENCE_MS = 10_000

const ENTERED = 'entered\n'
const ENTER = 'echo 0 >"$1/cgroup.procs" && echo entered'

export const enterByShell: Enter = async (group) => whyNotEntered(await enterAnd('', [group]))

/** Moves there and goes on to be a program that is asked something. @returns `told`: what it said, empty when it failed */
export async function enterAndAsk(
  group: string,
  question: readonly string[],
): Promise<{ readonly refused: string | undefined; readonly told: string }> {
  const answer = await enterAnd(' && shift && exec "$@"', [group, ...question])
  return { refused: whyNotEntered(answer), told: answer.ok ? answer.stdout.slice(ENTERED.length) : '' }
}

function enterAnd(next: string, words: readonly string[]): Promise<Answer> {
  return ask({ file: '/bin/sh', argv: ['-c', `${ENTER}${next}`, 'sh', ...words], patienceMs: PATIENCE_MS })
}

/** Whatever became of the process afterwards: it was in. */
function whyNotEntered({ stdout, why }: Answer): string | undefined {
  return stdout.startsWith(ENTERED) ? undefined : lastWordsOf(why)
}

const lastWordsOf = (text: string): string => text.trim().split(': ').at(-1) ?? ''
