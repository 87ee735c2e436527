/** Words of which one has to be chosen. Pure. */
import { quoteValue } from './units.ts'

/** Words as a message lists them: `a, b or c`. */
export function listWords(words: readonly string[]): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`
}

/** A value that is none of the choices, as a finished line; undefined when all is well. */
export function wrongChoice(
  choices: readonly string[] | undefined,
  location: string,
  value: string,
): string | undefined {
  return choices === undefined || choices.includes(value)
    ? undefined
    : `${location}: expected ${listWords(choices)}, got ${quoteValue(value)}.`
}
