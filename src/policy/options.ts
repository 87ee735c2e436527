/**
 * Every option of the command line: those that set a key of the policy come with its declaration in keys/, those about the run are
 * here. The command line is built from it, the environment twins are read by it, the manual is printed from it. Pure.
 */
import { ALL_KEYS, type NamedKey } from './keys/index.ts'
import type { FlagValues, KeyFlag, OptionGroup } from './keys/key.ts'
import { withValueAt } from './value-at.ts'

export const OPTION_GROUPS: readonly OptionGroup[] = [
  'Policy',
  'Files',
  'Network',
  'Limits',
  'Inside',
  'Backend',
  'Workers',
  'Output',
]
export type { OptionGroup }

/** `sets` is the setting of a value, or why it is refused; `standard` is as a person would write it. */
export interface OptionDeclaration
  extends Pick<KeyFlag, 'name' | 'argument' | 'group' | 'standard' | 'completes' | 'isRare' | 'sets'> {
  /** The value may be left out (`--json`), and is then written with `=`. */
  readonly isArgumentOptional: boolean
  /** May be given more than once; every value counts. */
  readonly repeats: boolean
  /** One line; absent = that of its key. Unit and default are those of the key then, too: see explained.ts. */
  readonly help?: string
  readonly unit?: string
  /** The only values, where they are words and the policy does not check them. */
  readonly choices?: readonly string[]
  /** Dotted policy key; absent = the option is about the run, not about the policy. */
  readonly key?: string
  /** Its twin; several values are separated by newlines. */
  readonly environment: string
}

type Declared = Pick<OptionDeclaration, 'name' | 'group'> & Partial<OptionDeclaration>

function declare(option: Declared): OptionDeclaration {
  return { isArgumentOptional: false, repeats: false, environment: environmentName(option.name), ...option }
}

/** `allow-host` -> `LLM_DO_EXEC_ALLOW_HOST`. */
function environmentName(name: string): string {
  return `LLM_DO_EXEC_${name.toUpperCase().replaceAll('-', '_')}`
}

/** The text of an option is the value of its key, unchanged: the schema reads it as it reads a file. A switch is true. */
function writtenBy({ argument, repeats }: KeyFlag, text: string): unknown {
  if (repeats !== undefined) return repeats === 'split' ? words(text) : [text]
  return argument === undefined ? text === 'true' : text
}

/** The values of a flag that takes several: `a,b`. Blanks around them do not count. */
const words = (text: string): readonly string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')

function optionOf({ path }: NamedKey, { part, ...flag }: KeyFlag): OptionDeclaration {
  const key = part === undefined ? path : `${path}.${part}`
  const sets = (text: string): FlagValues => ({ values: withValueAt({}, key, writtenBy(flag, text)) })
  return declare({ sets, ...flag, key, repeats: flag.repeats !== undefined })
}

const OF_KEYS = ALL_KEYS.flatMap((named) => named.key.flags.map((flag) => optionOf(named, flag)))

/** Options about the run. */
const OF_RUNS: readonly OptionDeclaration[] = [
  declare({
    name: 'profile',
    argument: 'NAME|FILE',
    completes: 'profiles',
    group: 'Policy',
    help: 'Base policy: a name, a file, or its text, which begins with {.',
    standard: 'default',
  }),
  declare({
    name: 'in',
    argument: 'NAME',
    completes: 'sandboxes',
    group: 'Backend',
    isRare: true,
    help: 'Run the command in the sandbox that llm-do run --name NAME has started.',
  }),
  declare({
    name: 'keep-state',
    argument: 'keep|reset',
    isArgumentOptional: true,
    group: 'Backend',
    standard: 'keep',
    isRare: true,
    choices: ['keep', 'reset'],
    help: 'With --in: start with the directory, variables and functions of the last such command; reset forgets them.',
  }),
  declare({
    name: 'worker',
    argument: 'FILE|NAME',
    completes: 'workers',
    group: 'Workers',
    help: 'Run under the rules of this worker.',
  }),
  declare({
    name: 'workshop',
    argument: 'FILE',
    group: 'Workers',
    help: 'The workshop that says where the worker runs.',
  }),
  declare({
    name: 'approval',
    isRare: true,
    argument: 'prompt|approve_all|reject_all',
    group: 'Workers',
    standard: 'prompt',
    choices: ['prompt', 'approve_all', 'reject_all'],
    help: "Who answers when a worker's rule asks.",
  }),
  declare({
    name: 'allow-shell-syntax',
    isRare: true,
    group: 'Workers',
    help: "Let -c use shell metacharacters under a worker's rules.",
  }),

  declare({
    name: 'apply',
    argument: 'on-success|ask|never',
    group: 'Files',
    standard: 'never',
    choices: ['on-success', 'ask', 'never'],
    help: 'What becomes of changes to --cow directories.',
  }),
  declare({
    name: 'cow-continue',
    isRare: true,
    argument: 'ID',
    completes: 'layers',
    group: 'Files',
    help: 'Go on with the changes that a run has left, in the same directories.',
  }),
  declare({
    name: 'json',
    argument: 'native|shell|task',
    isArgumentOptional: true,
    group: 'Output',
    standard: 'native',
    choices: ['native', 'shell', 'task'],
    help: 'Capture the output and print one result as JSON.',
  }),
  declare({
    name: 'plan',
    argument: 'text|json',
    isArgumentOptional: true,
    group: 'Output',
    standard: 'text',
    choices: ['text', 'json'],
    help: 'Print the plan and run nothing; json has all of it, for programs.',
  }),
  declare({ name: 'argv', isRare: true, group: 'Output', help: 'With --plan: print the exact process.' }),
  declare({ name: 'why', isRare: true, argument: 'KEY', group: 'Output', help: 'With --plan: print who set KEY.' }),
  declare({ name: 'audit', argument: 'FILE', group: 'Output', help: 'Append one JSON line per run.' }),
  declare({ name: 'log', isRare: true, group: 'Output', help: 'Say on stderr how the command was isolated.' }),
]

/** In the order of the manual. */
export const OPTIONS: readonly OptionDeclaration[] = OPTION_GROUPS.flatMap((group) =>
  [...OF_RUNS, ...OF_KEYS].filter((option) => option.group === group),
)

/** Whether its value is the next word, unless it is in the same. */
export const takesNextWord = ({ argument, isArgumentOptional }: OptionDeclaration): boolean =>
  argument !== undefined && !isArgumentOptional
