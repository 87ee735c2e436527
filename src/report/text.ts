/**
 * Result and error -> lines for people, on stderr. Nothing is printed when nothing is off. Every line starts with `llm-do: `,
 * so that it cannot be taken for a line of the command, and no character of it moves a cursor or hides another one.
 */
import type { SandboxError } from '../error.ts'
import { neutralise } from '../text/invisible.ts'
import type { Denial, Result } from './result.ts'

export { neutralise }

const MARK = 'llm-do: '

function line(text: string): string {
  return `${MARK}${neutralise(text)}`
}

/** One line each: a line break in a hint comes from a path. Its rest would read as a hint of the program. */
const hintLines = (hints: readonly string[]): string[] => hints.map((hint) => line(`hint: ${hint}`))

/** The message without the problems that some errors repeat in it, one indented line each. */
function headOf({ message, problems }: SandboxError): string {
  return problems.reduce((head, problem) => head.replace(`\n  ${problem}`, ''), message)
}

/** A sandbox that failed: the error, everything that is wrong, what to do about it. */
export function errorLines(error: SandboxError): readonly string[] {
  const { code, message, problems, hint } = error
  return [
    line(`error ${code}: ${headOf(error)}`),
    // The message is often the first problem itself, and the number of the others.
    ...problems.filter((problem) => !message.startsWith(problem)).map((problem) => line(`  ${problem}`)),
    ...hintLines(hint === '' ? [] : [hint]),
  ]
}

/** Denials that people read of one run. */
const SHOWN = 5

/** Denials that no hint covers, one line each. */
function denialLines({ ok, denials, hints }: Result): string[] {
  if (ok) return []
  const untold = denials.filter(
    ({ fix, key }) => !hints.some((hint) => (fix !== '' && hint.includes(fix)) || (key !== '' && hint.includes(key))),
  )
  const more = untold.length - SHOWN
  return [
    ...untold.slice(0, SHOWN).map((denial) => line(denialText(denial))),
    ...(more > 0 ? [line(`denied: ${more} more; --json lists them all`)] : []),
  ]
}

export function denialText({ operation, target, count, fix }: Denial): string {
  const times = count > 1 ? ` (${count} times)` : ''
  return `denied: ${operation} ${target}${times}${fix === '' ? '' : `; to allow it: ${fix}`}`
}

export const warningLines = (warnings: readonly string[]): readonly string[] =>
  warnings.map((warning) => line(`warning: ${warning}`))

/** A run in words; no lines at all for a command that simply ran, however it ended. */
export function resultLines(result: Result): readonly string[] {
  const { error, message, warnings, hints, cow } = result
  const head = error === undefined ? message : `error ${error.code}: ${error.message}`
  return [
    ...warningLines(warnings),
    ...(head === '' ? [] : [line(head)]),
    ...denialLines(result),
    ...hintLines(hints),
    ...(cow === undefined ? [] : [line(cow.message)]),
  ]
}
