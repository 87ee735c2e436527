/** Options and errors of commander in our terms. Pure. */
import { type CommanderError, Option } from 'commander'
import type { SandboxError } from '../error.ts'
import { wrongChoice } from '../text/choices.ts'
import { usageError } from './usage-error.ts'

/** commander's placeholder of a value; ours hold `|` and `,`, which mean something to it. */
const VALUE = '<value>'

/** @param words the command line, to see how a value was written */
export function optionFor(
  declared: {
    readonly name: string
    readonly short?: string
    readonly argument?: string
    readonly choices?: readonly string[]
    readonly repeats?: boolean
    readonly help?: string
  },
  { words, hint }: { readonly words: readonly string[]; readonly hint: string },
): Option {
  const { name, short, argument, choices, repeats = false, help } = declared
  const flag = `--${name}`
  if (argument === undefined) return switchOption(flag, help)
  const flags = short === undefined ? flag : `-${short}, ${flag}`
  return new Option(`${flags} ${VALUE}`, help).argParser<unknown>((value, before) => {
    // A value that begins with two dashes is far more often a forgotten value than meant.
    if (value.startsWith('--') && !words.includes(`${flag}=${value}`))
      throw usageError(`${flag}: expected ${argument}, got "${value}".`, `${flag}=${value}   # if it is meant`)
    const problem = wrongChoice(choices, flag, value)
    if (problem !== undefined) throw usageError(problem, hint)
    return repeats ? [...((before as readonly string[] | undefined) ?? []), value] : value
  })
}

/** `--no-workspace` is a switch like every other: commander would take it for the end of one called `--workspace`. */
function switchOption(flag: string, help?: string): Option {
  const option = new Option(flag, help)
  option.negate = false
  return option
}

/**
 * An error of commander about an option as one of our lines, e.g. of `error: unknown option '--memry'\n(Did you mean --memory?)`.
 * @param place comes first unless the message begins with the option
 */
export function commanderProblem(input: {
  readonly error: CommanderError
  readonly prefix: string
  readonly hint: string
  readonly argumentOf: (flag: string) => string | undefined
}): SandboxError {
  const { error, prefix, hint, argumentOf } = input
  const flag = /'(-[\w-]+)/.exec(error.message)?.[1] ?? ''
  if (error.code === 'commander.optionMissingArgument')
    return usageError(`${flag}: expected ${argumentOf(flag) ?? 'a value'}, got nothing.`, hint)
  return usageError(`${prefix}${error.message.replace(/^error: /, '').replaceAll('\n', ' ')}.`, hint)
}
