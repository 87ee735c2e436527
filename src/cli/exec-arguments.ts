/**
 * The command line of `llm-do exec` -> options and command. Pure; commander parses the options, this file finds where they end.
 *
 * Finding the end comes first because it decides what belongs to the command and must not be parsed: everything after `--`,
 * or from the first word that is no option on. A value that may be left out (`--json`) is only ever written with `=`, so
 * `--json true` runs `true`. commander's passThroughOptions() does neither: it would take `true` as the value of --json, and it copies
 * the words of the command by spreading them, which overflows the stack from some 120,000 words on.
 */
import { Command } from 'commander'
import type { GivenOptions } from '../policy/option-layer.ts'
import { OPTIONS, type OptionDeclaration } from '../policy/options.ts'
import { commanderProblem, optionFor } from './commander.ts'
import { usageError } from './usage-error.ts'

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

/**
 * Where the options end. Stops behind an unknown one: commander refuses it, and nothing after it may be guessed at.
 * @returns the options as they are written, but with the value that `--json` leaves out, and where the command begins
 */
function splitWords(words: readonly string[]): { readonly own: readonly string[]; readonly commandAt: number } {
  const own: string[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? ''
    if (word === '--') return { own, commandAt: at + 1 }
    if (!word.startsWith('-') || word === '-') return { own, commandAt: at }
    const option = DECLARED.get(word)
    own.push(option?.isArgumentOptional ? `${word}=${option.standard ?? ''}` : word)
    const takesNext = word === '-c' || (option?.argument !== undefined && !option.isArgumentOptional)
    if (takesNext && at + 1 < words.length) {
      at += 1
      own.push(words[at] ?? '')
    }
  }
  return { own, commandAt: words.length }
}

const argumentOf = (flag: string): string | undefined => (flag === '-c' ? 'SCRIPT' : DECLARED.get(flag)?.argument)

function optionsOf(own: readonly string[]): {
  readonly given: GivenOptions
  readonly rest: Readonly<Record<string, unknown>>
} {
  const silent = { writeOut: () => undefined, writeErr: () => undefined }
  const command = new Command('exec').configureOutput(silent).helpOption(false).helpCommand(false)
  command.exitOverride((error) => {
    throw commanderProblem({ error, prefix: '', hint: HINT, argumentOf })
  })
  const options = OPTIONS.map((declared) => ({ declared, option: optionFor(declared, { words: own, hint: HINT }) }))
  for (const { option } of options) command.addOption(option)
  command.option('-c <value>').option('-h, --help').option('-V, --version')
  const rest = command.parse([...own], { from: 'user' }).opts()
  const pairs = options.map(({ declared, option }) => [declared.name, rest[option.attributeName()]] as const)
  return { given: Object.fromEntries(pairs.filter(([, value]) => value !== undefined)) as GivenOptions, rest }
}

/** @throws SandboxError USAGE for an unknown option (with the nearest known one), a missing value or a wrong word */
export function readCommandLine(words: readonly string[]): CommandLine {
  const { own, commandAt } = splitWords(words)
  // Without an option there is nothing to parse, and commander takes milliseconds for it.
  const { given, rest } =
    own.length === 0 ? { given: {}, rest: {} as Readonly<Record<string, unknown>> } : optionsOf(own)
  const script = rest['c']
  return {
    command: words.slice(commandAt),
    commandAt,
    given,
    help: rest['help'] === true,
    version: rest['version'] === true,
    ...(typeof script === 'string' && { script }),
  }
}

/** The command as a process gets it; words after `-c SCRIPT` are its `$0`, `$1`..., as with sh. */
export function commandOf({ script, command }: CommandLine): readonly string[] {
  if (script !== undefined) return ['/bin/sh', '-c', script, ...command]
  if (command.length > 0) return command
  throw usageError('no command to run.', 'llm-do exec [options] -- COMMAND [ARG...]')
}
