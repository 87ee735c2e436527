/**
 * `llm-do exec` words -> options and command. Pure; commander reads the options, this file finds where they end.
 *
 * Finding the end comes first because it decides what belongs to the command and must not be looked at: everything after `--`,
 * or from the first word that is no option on. A value that may be left out (`--json`) is only ever written with `=`, so
 * `--json true` runs `true`.
 */
import { Command, CommanderError, Option } from 'commander'
import type { GivenOptions } from '../policy/option-layer.ts'
import { OPTIONS, type OptionDeclaration, wrongChoice } from '../policy/options.ts'
import { usageError } from './verb.ts'

export interface CommandLine {
  /** Empty when only `-c`, or nothing at all, says what to run. */
  readonly command: readonly string[]
  /** Where the command begins among the words. */
  readonly commandAt: number
  /** Of `-c`. */
  readonly script?: string
  readonly help: boolean
  readonly version: boolean
  readonly given: GivenOptions
}

const HINT = 'llm-do exec --help'

/** Options of the command line itself: no policy, no twin in the environment. */
export const OWN_OPTIONS = [
  { flags: '-c', argument: 'SCRIPT', help: 'Run SCRIPT by /bin/sh -c.' },
  { flags: '-h, --help', help: 'Print this text.' },
  { flags: '-V, --version', help: 'Print the version.' },
] as const

const DECLARED = new Map<string, OptionDeclaration>(OPTIONS.map((option) => [`--${option.name}`, option]))

/** Values that begin with two dashes are far more often a forgotten value than meant. */
function readValue(name: string, argument: string, value: string | undefined): string {
  if (value !== undefined && !value.startsWith('--')) return value
  const got = value === undefined ? 'nothing' : `"${value}"`
  throw usageError(
    `${name}: expected ${argument}, got ${got}.`,
    value === undefined ? HINT : `${name}=${value}   # if it is meant`,
  )
}

interface Split {
  /** Options in the form `--name=value`, `-c`, `value`. */
  readonly own: readonly string[]
  readonly commandAt: number
}

/** Takes the options off the front. Stops at an unknown one: commander refuses it, and nothing after it may be guessed at. */
export function splitWords(words: readonly string[]): Split {
  const own: string[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? ''
    if (word === '--') return { own, commandAt: at + 1 }
    if (!word.startsWith('-') || word === '-') return { own, commandAt: at }
    const [name = '', written] = word.startsWith('--') ? cut(word) : [word]
    const argument = name === '-c' ? 'SCRIPT' : DECLARED.get(name)?.argument
    const isOptional = DECLARED.get(name)?.isArgumentOptional ?? false
    if (argument === undefined || written !== undefined) own.push(word)
    else if (isOptional) own.push(`${name}=${DECLARED.get(name)?.standard ?? ''}`)
    else {
      at += 1
      own.push(...(name === '-c' ? ['-c', scriptOf(words[at])] : [`${name}=${readValue(name, argument, words[at])}`]))
    }
  }
  return { own, commandAt: words.length }
}

function cut(word: string): readonly [string, string?] {
  const at = word.indexOf('=')
  return at === -1 ? [word] : [word.slice(0, at), word.slice(at + 1)]
}

/** A script may begin as it likes. */
function scriptOf(value: string | undefined): string {
  if (value === undefined) throw usageError('-c: expected SCRIPT, got nothing.', HINT)
  return value
}

/** Placeholder of commander for a value; ours hold `|` and `,`, which mean something to it. */
const VALUE = '<value>'

const continued = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
]

function commanderOption({ name, argument, repeats }: OptionDeclaration): Option {
  const option = new Option(argument === undefined ? `--${name}` : `--${name} ${VALUE}`)
  return repeats ? option.argParser(continued) : option
}

function parser(): Command {
  const silent = { writeOut: () => undefined, writeErr: () => undefined }
  const command = new Command('exec').exitOverride().configureOutput(silent).helpOption(false).addHelpCommand(false)
  for (const option of OPTIONS) command.addOption(commanderOption(option))
  return command.option(`-c ${VALUE}`).option('-h, --help').option('-V, --version')
}

/** `error: unknown option '--memry'\n(Did you mean --memory?)` -> one line of ours. */
function usageOf(error: CommanderError): string {
  return error.message.replace(/^error: /, '').replaceAll('\n', ' ')
}

function optionsOf(own: readonly string[]): Readonly<Record<string, unknown>> {
  const command = parser()
  try {
    return command.parse([...own], { from: 'user' }).opts()
  } catch (error) {
    if (error instanceof CommanderError) throw usageError(`${usageOf(error)}.`, HINT)
    throw error
  }
}

function givenOf(options: Readonly<Record<string, unknown>>): GivenOptions {
  const attribute = (option: OptionDeclaration) => commanderOption(option).attributeName()
  const pairs = OPTIONS.map((option) => [option.name, options[attribute(option)]] as const)
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined)) as GivenOptions
}

function refuseWrongChoices(given: GivenOptions): void {
  for (const option of OPTIONS) {
    const value = given[option.name]
    const problem = typeof value === 'string' ? wrongChoice(option, `--${option.name}`, value) : undefined
    if (problem !== undefined) throw usageError(problem, HINT)
  }
}

/** @throws SandboxError USAGE for an unknown option (with the nearest known one), a missing value or a wrong word */
export function readCommandLine(words: readonly string[]): CommandLine {
  const { own, commandAt } = splitWords(words)
  // Without an option there is nothing to parse, and commander takes milliseconds for it.
  const options = own.length === 0 ? {} : optionsOf(own)
  const given = own.length === 0 ? {} : givenOf(options)
  refuseWrongChoices(given)
  const script = options['c']
  return {
    command: words.slice(commandAt),
    commandAt,
    given,
    help: options['help'] === true,
    version: options['version'] === true,
    ...(typeof script === 'string' && { script }),
  }
}

/** The command as a process gets it; words after `-c SCRIPT` are its `$0`, `$1`..., as with sh. */
export function commandOf({ script, command }: CommandLine): readonly string[] {
  if (script !== undefined) return ['/bin/sh', '-c', script, ...command]
  if (command.length > 0) return command
  throw usageError('no command to run.', 'llm-do exec [options] -- COMMAND [ARG...]')
}
