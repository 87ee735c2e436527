/**
 * Command lines of subcommands, by commander: declaration and words -> action, flags and operands. Pure. commander finds errors
 * and near misses; here its errors become ours, one line each with a hint. exec finds the end of its options without commander, see
 * exec-arguments.ts.
 */
import { Argument, Command, CommanderError, type Option } from 'commander'
import type { ExplainedOption } from '../policy/option-help.ts'
import type { GivenOptions } from '../policy/option-layer.ts'
import { listWords } from '../text/choices.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { quoteText } from '../text/units.ts'
import { commanderProblem, optionFor } from './commander.ts'
import { withoutFlags } from './exec-arguments.ts'
import {
  type ArgumentDeclaration,
  type FlagDeclaration,
  isTakenBy,
  type SubcommandDeclaration,
  usageOf,
} from './subcommands.ts'
import { usageError } from './usage-error.ts'

export interface Arguments {
  /** `show` of `workers show`. */
  readonly action?: string
  readonly operands: readonly string[]
  /** Long name without dashes -> value; a switch is true. */
  readonly flags: GivenOptions
}

/**
 * @param options those of exec; only needed where the declaration has `execOptions`
 * @throws SandboxError USAGE
 */
export function parseArguments(
  declaration: SubcommandDeclaration,
  words: readonly string[],
  options: readonly ExplainedOption[] = [],
): Arguments | { readonly help: string } {
  const { own, rest } = ownWords(declaration, words)
  const found: { help: string; parsed: Arguments } = { help: '', parsed: { operands: [], flags: {} } }
  const root = commandFor({ declaration, path: declaration.name, words: own, options, found })
  try {
    root.parse([...own], { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError && error.code === 'commander.helpDisplayed') return { help: found.help }
    throw error
  }
  const { parsed } = found
  return { ...parsed, operands: [...parsed.operands, ...rest] }
}

/** A command line of exec is not for commander, which would take words of the command for flags. */
function ownWords({ name, flags = [], actions = [], ...declaration }: SubcommandDeclaration, words: readonly string[]) {
  const action = actions.find((one) => one.name === words[0])
  if ((action ?? declaration).takesCommandLine !== true) return { own: words, rest: [] }
  if (action === undefined) return withoutFlags(words, { path: name, flags })
  const divided = withoutFlags(words.slice(1), { path: `${name} ${action.name}`, flags: action.flags ?? [] })
  return { ...divided, own: [action.name, ...divided.own] }
}

interface Building {
  readonly declaration: SubcommandDeclaration
  /** As it is typed: `workers show`. */
  readonly path: string
  readonly words: readonly string[]
  /** Of exec. */
  readonly options: readonly ExplainedOption[]
  /** Filled in while commander parses: it reports by callbacks. */
  readonly found: { help: string; parsed: Arguments }
}

function commandFor(building: Building): Command {
  const { declaration, path, words, options, found } = building
  const { actions = [], arguments: operands = [], flags = [], takesCommandLine = false } = declaration
  const writeOut = (text: string) => {
    found.help += text
  }
  const command = new Command(declaration.name)
    .description(declaration.help)
    .configureHelp({ commandUsage: () => `llm-do ${path} ${usageOf(declaration)}`.trimEnd() })
    .helpOption('-h, --help', 'Print this text.')
    .helpCommand(false)
    .allowExcessArguments(false)
    .configureOutput({ writeOut, writeErr: () => undefined, getOutHelpWidth })
    .exitOverride((error) => refuse({ error, declaration, path, options, command }))
  if (declaration.execOptions !== undefined) command.addHelpText('after', SHARED_OPTIONS)
  if (takesCommandLine) command.addHelpText('after', ALL_OPTIONS)
  for (const operand of operands) command.addArgument(argumentFor(path, operand))
  const hint = `llm-do ${path} ${usageOf(declaration)}`
  const ownOptions = [...flags.map(flagFor(words, hint)), ...execOptionsOf(building)]
  for (const { option } of ownOptions) command.addOption(option)
  for (const action of actions)
    command.addCommand(commandFor({ ...building, declaration: action, path: `${path} ${action.name}` }))
  if (actions.length > 0 && declaration.isActionOptional !== true) return command
  return command.action(() => {
    const given = command.opts()
    const pairs = ownOptions.map(({ name, option }) => [name, given[option.attributeName()]] as const)
    const isAction = path.includes(' ')
    found.parsed = {
      ...(isAction && { action: declaration.name }),
      operands: [...command.args],
      flags: Object.fromEntries(pairs.filter(([, value]) => value !== undefined)) as GivenOptions,
    }
  })
}

const getOutHelpWidth = () => 80

interface NamedOption {
  readonly name: string
  readonly option: Option
}

function argumentFor(path: string, { name, isOptional, repeats, choices }: ArgumentDeclaration): Argument {
  const word = repeats ? `${name}...` : name
  const argument = new Argument(isOptional ? `[${word}]` : `<${word}>`)
  if (choices === undefined) return argument
  return argument.argParser((value: string) => {
    if (choices.includes(value)) return value
    const expected = `${path}: expected ${listWords(choices)}, got "${value}".`
    throw usageError(`${expected}${didYouMean(value, choices)}`, `llm-do ${path} ${choices.join('|')}`)
  })
}

const flagFor =
  (words: readonly string[], hint: string) =>
  (flag: FlagDeclaration): NamedOption => ({
    name: flag.name,
    option: optionFor(flag, { words, hint }),
  })

const ALL_OPTIONS = '\nAlso the options of llm-do exec: llm-do exec --help\n'
const SHARED_OPTIONS = '\nAlso the options of llm-do exec that set the policy: llm-do exec --help\n'

/** The help of exec has them. */
function execOptionsOf({ declaration, words, options }: Building): readonly NamedOption[] {
  return options.filter(isTakenBy(declaration)).map((option) => ({
    name: option.name,
    option: optionFor(option, { words, hint: 'llm-do exec --help' }).hideHelp(),
  }))
}

const argumentIn =
  (options: readonly Pick<FlagDeclaration, 'name' | 'argument'>[]) =>
  (flag: string): string | undefined =>
    options.find(({ name }) => `--${name}` === flag)?.argument

interface Failure {
  readonly error: CommanderError
  readonly declaration: SubcommandDeclaration
  readonly path: string
  readonly options: readonly ExplainedOption[]
  readonly command: Command
}

/** @throws SandboxError USAGE; CommanderError when it is only the end of `--help` */
function refuse(failure: Failure): never {
  const { error, declaration, path, options, command } = failure
  if (error.code === 'commander.helpDisplayed') throw error
  const hint = `llm-do ${path} ${usageOf(declaration)}`.trimEnd()
  const usage = usageOf(declaration, true)
  const { arguments: operands = [], actions = [] } = declaration
  const names = actions.map(({ name }) => name)
  const word = command.args[operands.length] ?? ''
  switch (error.code) {
    case 'commander.help':
    case 'commander.missingArgument':
      throw usageError(`${path}: expected ${usage}, got ${command.args.map(quoteText).join(' ') || 'nothing'}.`, hint)
    case 'commander.unknownCommand':
    case 'commander.excessArguments':
      throw actions.length === 0
        ? usageError(`${path}: unexpected word "${word}".`, hint)
        : usageError(`${path}: expected ${usage}, got "${word}".${didYouMean(word, names)}`, hint)
    default:
      throw commanderProblem({
        error,
        prefix: `${path}: `,
        hint,
        argumentOf: argumentIn([...(declaration.flags ?? []), ...options]),
      })
  }
}
