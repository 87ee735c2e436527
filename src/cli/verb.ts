/** What every subcommand is made of, and how it reads its own few words. */
import { SandboxError } from '../error.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import type { Call } from './call.ts'

/** Runs with the words after its name; answers with the exit status. A SandboxError becomes a message and 125. */
export type Verb = (call: Call) => Promise<number>

/** Exit status of a check that found something: `audit verify`, `doctor`. */
export const FOUND_PROBLEMS = 1

export function usageError(message: string, hint: string): SandboxError {
  return new SandboxError('USAGE', message, { hint })
}

export interface Shape {
  /** As it is typed: `doctor`, `audit verify`. */
  readonly verb: string
  /** What follows it, for the hint: `[--json] FILE`. */
  readonly usage: string
  readonly flags?: readonly string[]
  /** How many words that are no flags it takes. */
  readonly operands?: readonly [least: number, most: number]
}

export interface Understood {
  readonly flags: ReadonlySet<string>
  readonly operands: readonly string[]
}

/**
 * Reads the words of a subcommand that only knows switches and operands.
 * @throws SandboxError USAGE for an unknown flag (naming the nearest), or too many or too few operands
 */
export function understand(
  words: readonly string[],
  { verb, usage, flags = [], operands: [least, most] = [0, 0] }: Shape,
): Understood {
  const end = words.indexOf('--')
  const before = end === -1 ? words : words.slice(0, end)
  const isFlag = (word: string) => word.startsWith('-') && word !== '-'
  const operands = [...before.filter((word) => !isFlag(word)), ...(end === -1 ? [] : words.slice(end + 1))]
  const hint = `llm-do ${verb}${usage === '' ? '' : ` ${usage}`}`
  const unknown = before.find((word) => isFlag(word) && !flags.includes(word))
  if (unknown !== undefined) throw usageError(`${verb}: unknown option ${unknown}.${didYouMean(unknown, flags)}`, hint)
  if (operands.length < least)
    throw usageError(`${verb}: expected ${usage}, got ${operands.length === 0 ? 'nothing' : 'less'}.`, hint)
  if (operands.length > most) throw usageError(`${verb}: unexpected word "${operands[most]}".`, hint)
  return { flags: new Set(before.filter(isFlag)), operands }
}
