/**
 * The command line of `llm-do exec` -> options and command. Pure; commander parses the options, this file finds where they end.
 *
 * Finding the end comes first because it decides what belongs to the command and must not be parsed: everything after `--`,
 * from the first word on that is not an option, or from the options of a shell on (`-lc SCRIPT`, launch-cache/shell-call.ts). An optional value (`--json`) is only ever written with `=`, so
 * `--json true` runs `true`. commander's passThroughOptions() does neither: it would take `true` as the value of --json, and it copies
 * the words of the command by spreading them, which overflows the stack from some 120,000 words on.
 */
import { Command } from 'commander'
import { SandboxError } from '../error.ts'
import { type ShellCall, shellCallAt } from '../launch-cache/shell-call.ts'
import type { GivenOptions } from '../policy/option-layer.ts'
import { OPTIONS, type OptionDeclaration, takesNextWord } from '../policy/options.ts'
import { shellWord } from '../report/hints.ts'
import { commanderProblem, optionFor } from './commander.ts'
import { type Foreign, foreignLine, foreignOptionAt, isImage } from './foreign-options.ts'
import type { FlagDeclaration, Verb } from './subcommands.ts'
import { usageError } from './usage-error.ts'

export interface CommandLine {
  /** As a process gets it; empty when nothing says what to run. */
  readonly command: readonly string[]
  /** A shell that the words were written for: the first word of the command, which the caller has not written. */
  readonly shell?: string
  /** Where the other words of the command are among those of the caller, `[from, to)`. */
  readonly commandAt: readonly (readonly [from: number, to: number])[]
  /** Where the first options end. */
  readonly optionsEnd: number
  /** Of `-c`. */
  readonly script?: string
  readonly help: boolean
  readonly version: boolean
  readonly given: GivenOptions
}

const EXEC: Verb = { path: 'exec', flags: [] }
const helpOf = ({ path }: Verb): string => `llm-do ${path} --help`

/** Options of the command line itself: no policy, no twin in the environment. */
export const OWN_OPTIONS = [
  { flags: '-c', argument: 'SCRIPT', help: 'Run SCRIPT as sh -c does (-lc: as bash -lc).' },
  { flags: '-h, --help', help: 'Print this text.' },
  { flags: '-V, --version', help: 'Print the version.' },
] as const

const DECLARED = new Map<string, OptionDeclaration>(OPTIONS.map((option) => [`--${option.name}`, option]))

interface OwnOptions {
  /** Places of the words that are flags of the verb. */
  readonly ofVerb: readonly number[]
  /** As they are written, but with the value that `--json` leaves out, and in our words where they are another program's. */
  readonly own: readonly string[]
  /** Options of other programs. */
  readonly foreign: readonly Foreign[]
  readonly end: number
}

const nameIn = (word: string): string => word.split('=')[0] ?? word

interface Reading {
  readonly words: readonly string[]
  readonly flags: readonly FlagDeclaration[]
  readonly isEnd: (word: string, at: number) => boolean
}

/** Goes on behind an unknown option: commander refuses it. */
function ownOptions({ words, flags, isEnd }: Reading, from: number): OwnOptions {
  const own: string[] = []
  const ofVerb: number[] = []
  const foreign: Foreign[] = []
  let at = from
  for (; at < words.length && !isEnd(words[at] ?? '', at); at += 1) {
    const word = words[at] ?? ''
    const flag = flags.find(({ name, short }) => nameIn(word) === `--${name}` || word === `-${short}`)
    if (flag !== undefined) {
      const last = flag.argument === undefined || word.includes('=') || at + 1 === words.length ? at : at + 1
      for (; at <= last; at += 1) ofVerb.push(at)
      at = last
      continue
    }
    const other = DECLARED.has(nameIn(word)) ? undefined : foreignOptionAt(words, at)
    if (other !== undefined) {
      foreign.push(other)
      if ('words' in other.meaning) own.push(...other.meaning.words)
      at += other.length - 1
      continue
    }
    const option = DECLARED.get(word)
    own.push(option?.isArgumentOptional ? `${word}=${option.standard ?? ''}` : word)
    if (option === undefined || !takesNextWord(option) || at + 1 >= words.length) continue
    at += 1
    own.push(words[at] ?? '')
  }
  return { own, ofVerb, foreign, end: at }
}

type Division = Pick<CommandLine, 'commandAt' | 'optionsEnd' | 'shell' | 'script'> & Omit<OwnOptions, 'end'>

/** Where the options end and the command begins. @throws SandboxError USAGE for `-c` without a script */
function divide(words: readonly string[], hasBash: boolean, verb: Verb): Division {
  const isEnd = (word: string, at: number) =>
    word === '--' || word === '-' || !word.startsWith('-') || shellCallAt(words, at, hasBash) !== undefined
  const { end, ...before } = ownOptions({ words, flags: verb.flags, isEnd }, 0)
  const call = shellCallAt(words, end, hasBash)
  if (call !== undefined) return withShell(words, before, call, verb)
  return { ...before, optionsEnd: end, commandAt: [[words[end] === '--' ? end + 1 : end, words.length]] }
}

/** Options may follow a script; all else there is the script's, `--` too, as with sh. */
function withShell(words: readonly string[], before: Omit<OwnOptions, 'end'>, call: ShellCall, verb: Verb): Division {
  const { shell, from, scriptAt, flag } = call
  const script = words[scriptAt]
  if (script === undefined) throw usageError(`${flag}: expected SCRIPT, got nothing.`, helpOf(verb))
  const isOfScript = (word: string) => flag === undefined || !/^--[a-z]/.test(word)
  const after = ownOptions({ words, flags: verb.flags, isEnd: isOfScript }, scriptAt + 1)
  const commandAt: Division['commandAt'] = [
    [from, scriptAt + 1],
    [after.end, words.length],
  ]
  const own = [...before.own, ...after.own]
  const ofVerb = [...before.ofVerb, ...after.ofVerb]
  const foreign = [...before.foreign, ...after.foreign]
  return { own, ofVerb, foreign, optionsEnd: from, shell, commandAt, ...(flag !== undefined && { script }) }
}

const HELP: FlagDeclaration = { name: 'help', short: 'h', help: '' }

/** The words of a subcommand that are its flags, and the others: the command line of `exec`, of which readCommandLine gets them. */
export function withoutFlags(
  words: readonly string[],
  verb: Verb,
): { readonly own: readonly string[]; readonly rest: readonly string[] } {
  const { ofVerb } = divide(words, false, { ...verb, flags: [...verb.flags, HELP] })
  return { own: ofVerb.map((at) => words[at] ?? ''), rest: words.filter((_, at) => !ofVerb.includes(at)) }
}

const argumentOf = (flag: string): string | undefined => DECLARED.get(flag)?.argument

function optionsOf(
  own: readonly string[],
  verb: Verb,
): {
  readonly given: GivenOptions
  readonly rest: Readonly<Record<string, unknown>>
} {
  const hint = helpOf(verb)
  const silent = { writeOut: () => undefined, writeErr: () => undefined }
  const command = new Command('exec').configureOutput(silent).helpOption(false).helpCommand(false)
  command.exitOverride((error) => {
    throw commanderProblem({ error, prefix: '', hint, argumentOf })
  })
  const options = OPTIONS.map((declared) => ({ declared, option: optionFor(declared, { words: own, hint }) }))
  for (const { option } of options) command.addOption(option)
  for (const flag of verb.flags) command.addOption(optionFor(flag, { words: own, hint })) // for near misses
  command.option('-h, --help').option('-V, --version')
  const rest = command.parse([...own], { from: 'user' }).opts()
  const pairs = options.map(({ declared, option }) => [declared.name, rest[option.attributeName()]] as const)
  return { given: Object.fromEntries(pairs.filter(([, value]) => value !== undefined)) as GivenOptions, rest }
}

/**
 * @param hasBash whether bash is there to run what asks for it
 * @throws SandboxError USAGE for an unknown option (with the nearest known one), a missing value or a wrong word
 */
export function readCommandLine(words: readonly string[], hasBash: boolean, around: Around = {}): CommandLine {
  const { verb = EXEC } = around
  const { own, foreign, ofVerb: _, ...division } = divide(words, hasBash, { ...verb, flags: [] })
  const { shell, commandAt } = division
  const ofCommand = commandAt.flatMap(([from, to]) => words.slice(from, to))
  if (foreign.length > 0) {
    const isSeparated = shell !== undefined || words[division.optionsEnd] === '--'
    throw foreignProblem({ ...around, foreign, own, isShell: shell !== undefined, command: ofCommand, isSeparated })
  }
  // Without an option there is nothing to parse, and commander takes milliseconds for it.
  const { given, rest } =
    own.length === 0 ? { given: {}, rest: {} as Readonly<Record<string, unknown>> } : optionsOf(own, verb)
  return {
    ...division,
    command: [...(shell === undefined ? [] : [shell]), ...ofCommand],
    given,
    help: rest['help'] === true,
    version: rest['version'] === true,
  }
}

/** A hint that is longer is not read. */
const LONGEST_HINT = 300

export interface Around {
  /** `exec` where it is left out. */
  readonly verb?: Verb
  /** Words of `llm-do run`, which come before all options; undefined for `exec`. */
  readonly before?: readonly string[]
  /** Whether a sandbox in the background has this name; for what was written for `docker exec`. */
  readonly isNamed?: (word: string) => boolean
}

interface ForeignLine extends Around {
  readonly foreign: readonly Foreign[]
  readonly own: readonly string[]
  readonly isShell: boolean
  /** The command follows `--`: the first word is the program, not an image. */
  readonly isSeparated: boolean
  readonly command: readonly string[]
}

/** The same command line in our words, where all of it can be said. */
function foreignProblem(line: ForeignLine): SandboxError {
  const { foreign, own, isShell, isSeparated, command } = line
  const background = foreign.flatMap(({ meaning }) => ('background' in meaning ? [meaning.background] : []))
  // Under `docker run` a command that is waited for has a terminal or is forgotten; `--` before it is our own way of writing.
  const isForgotten = !isSeparated && foreign.some(({ name }) => name === '--rm')
  const isWaitedFor = isForgotten || foreign.some(({ name }) => /^(?:-[it]+|--interactive)$/.test(name))
  const isBackground = background.length > 0 || (line.before !== undefined && !isWaitedFor)
  const [image = '', ...rest] = command
  const isInside = isWaitedFor && !isSeparated && line.isNamed?.(image) === true
  const verb = isBackground
    ? ['run', ...background.flat(), ...(line.before ?? [])]
    : ['exec', ...(isInside ? ['--in', image] : [])]
  const hasImage = isInside || (!isSeparated && isImage(foreign, image))
  const words = [
    ...verb,
    ...own.filter((word) => !isBackground || word !== '--tty'),
    ...(isShell ? [] : ['--']),
    ...(hasImage ? (rest.length === 0 ? ['sh'] : rest) : command),
  ]
  const problems = [
    ...foreign.map((option) => foreignLine(option, shellWord)),
    ...(isInside ? [`${image}: a sandbox in the background is named by --in ${image}.`] : []),
    ...(hasImage && !isInside
      ? [`${image}: leave out the image: the programs of this machine are there; or --image ${image}.`]
      : []),
  ]
  const call = `llm-do ${words.map(shellWord).join(' ')}`
  const isWhole = foreign.every(({ meaning }) => !('unserved' in meaning)) && call.length <= LONGEST_HINT
  return new SandboxError('USAGE', problems[0] ?? '', { problems, hint: isWhole ? call : helpOf(line.verb ?? EXEC) })
}

/** @throws SandboxError USAGE where nothing says what to run */
export function commandOf({ command }: CommandLine, { path } = EXEC): readonly string[] {
  if (command.length > 0) return command
  throw usageError('no command to run.', `llm-do ${path} [options] -- COMMAND [ARG...]`)
}
