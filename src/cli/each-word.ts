/** Verbs that take several runs: each is done, whatever becomes of the others, and each has its line. */
import { SandboxError } from '../error.ts'
import { errorLines } from '../report/text.ts'
import { writeStderr } from './stdio.ts'
import { FAILED } from './subcommand.ts'

/** @param act returns its line for people @returns the exit status */
export async function eachWord(words: readonly string[], act: (word: string) => Promise<string>): Promise<number> {
  const ends = await Promise.allSettled(words.map(act))
  const lines = ends.flatMap((end) => {
    if (end.status === 'fulfilled') return [`llm-do: ${end.value}`]
    if (end.reason instanceof SandboxError) return errorLines(end.reason)
    throw end.reason
  })
  await writeStderr(lines)
  return ends.every(({ status }) => status === 'fulfilled') ? 0 : FAILED
}
