/**
 * Follows a printed hint: its flags are read from the text itself and put into the command line that failed, so a hint
 * that names a flag wrongly fails the test.
 */
import { OPTIONS } from '../../src/policy/options.ts'
import { shellWord } from '../../src/text/shell-word.ts'
import { divide } from '../../src/worker/shell-words.ts'

/** A shell script, and the part of the hint that `said` has caught -> the script that follows it. */
export type Follow = (script: string, hint: string) => string

/** Characters that may follow a word at the end of a clause; a dot alone is a directory. */
const CLAUSE_END = /(?<=[^.])[,;.)]+$|(?<=\.)[,;)]+$/

/** The flags with which a text begins, each with its value, quoted for a shell. @throws Error where it begins with none, or with one that does not exist */
export function leadingFlags(text: string): string {
  const division = divide(text)
  if (!division.ok) throw new Error(`this is no text for a shell: ${text}`)
  const words = [...division.tokens]
  const flags: string[] = []
  for (let word = words.shift(); word?.startsWith('--') === true; word = words.shift()) {
    const name = word.slice(2).replace(CLAUSE_END, '')
    const option = OPTIONS.find((declared) => declared.name === name)
    if (option === undefined) throw new Error(`there is no --${name}: ${text}`)
    const value = option.argument === undefined ? undefined : (words.shift() ?? '')
    flags.push(`--${name}`, ...(value === undefined ? [] : [shellWord(value.replace(CLAUSE_END, ''))]))
    if (CLAUSE_END.test(value ?? word)) break
  }
  if (flags.length === 0) throw new Error(`no flag begins: ${text}`)
  return flags.join(' ')
}

/** Gives the flags of the hint to the first `llm-do exec`. */
export const addFlags: Follow = (script, hint) => script.replace('llm-do exec', `llm-do exec ${leadingFlags(hint)}`)

/** The same, in the place of what was there. */
export const insteadOf =
  (words: string): Follow =>
  (script, hint) =>
    addFlags(without(words)(script, hint), hint)

/** Leaves out what the hint names. */
export const without =
  (words: string): Follow =>
  (script) => {
    if (!script.includes(words)) throw new Error(`${words} is not in: ${script}`)
    return script.replace(words, '')
  }

/** Runs the hint as a command, then what failed once more. A comment ends a hint. */
export const doFirst: Follow = (script, hint) => `${hint.replace(/^sudo /, '')}\n${script}`

/** Runs the hint in the place of what failed: the three dots stand for the words that were given, whatever they would mean to a shell around. */
export const doInstead: Follow = (script, hint) => {
  const given = script.slice(script.indexOf('llm-do exec') + 'llm-do exec'.length)
  const [before, flags] = hint.split('llm-do exec')
  return `${before}llm-do exec ${(flags ?? '').replace('...', () => given)}`
}
