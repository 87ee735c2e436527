/**
 * The key of a cached plan, as one list of words. native/client/call.c makes the same list from its own view of the caller;
 * the file is used only where both are equal, word by word. Pure.
 */
import { KEY_ANY_VARIABLES, KEY_CALLER, KEY_PLACE, KEY_VARIABLE_PREFIX, KEY_VARIABLES } from '../contract.ts'
import { fnv1a64 } from '../os/checksum.ts'
import { OPTIONS, takesNextWord } from '../policy/options.ts'
import { shellCallAt } from './shell-call.ts'

/** How the caller wrote the command, as far as the client can tell it by the names of the options. */
export interface Invocation {
  /** The words before the command; of a variable's value (`--env NAME=VALUE`) only that there is one. */
  readonly options: readonly string[]
  /** The variables of the key, `NAME=VALUE`, in their order. */
  readonly variables: readonly string[]
  /** The plan is for all variables whose names no layer of the policy knows. */
  readonly isForAnyVariables?: boolean
  /** KEY_ANY_PROGRAM for all that share a plan. */
  readonly program: string
}

export interface KeyInputs {
  readonly version: string
  /** Directory of the package. */
  readonly root: string
  readonly uid: number
  readonly gid: number
  readonly bootId: string
  /** The line `0::` of /proc/self/cgroup. */
  readonly cgroup: string
  /** The line `CapEff:` of /proc/self/status. */
  readonly capabilities: string
  readonly userNamespace: string
  readonly mountNamespace: string
  readonly cwd: string
  /** stdin and stderr are terminals. */
  readonly isAtTerminal: boolean
  /** stdout is one, too. */
  readonly hasTerminal: boolean
  readonly invocation: Invocation
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Values of the words of KEY_CALLER and KEY_PLACE. */
const wordsByName = (inputs: KeyInputs): Readonly<Record<(typeof KEY_CALLER | typeof KEY_PLACE)[number], string>> => ({
  version: inputs.version,
  root: inputs.root,
  uid: String(inputs.uid),
  gid: String(inputs.gid),
  boot: inputs.bootId,
  cgroup: inputs.cgroup,
  capabilities: inputs.capabilities,
  'user-namespace': inputs.userNamespace,
  'mount-namespace': inputs.mountNamespace,
  directory: inputs.cwd,
  terminal: String(Number(inputs.isAtTerminal) + Number(inputs.hasTerminal)),
})

export function keyWords(inputs: KeyInputs): readonly string[] {
  const { invocation } = inputs
  const options = invocation.isForAnyVariables === true ? withoutNames(invocation.options) : invocation.options
  const variables = variablesOf(inputs.env)
  const named = wordsByName(inputs)
  return [
    ...[...KEY_CALLER, ...KEY_PLACE].map((name) => named[name]),
    invocation.program,
    String(options.length),
    ...options,
    String(variables.length),
    ...variables,
  ]
}

/** Variables that decide about a plan, `NAME=VALUE`, in the order of their bytes. */
function variablesOf(env: KeyInputs['env']): readonly string[] {
  return Object.entries(env)
    .filter(([name, value]) => value !== undefined && concernsUs(name))
    .map(([name, value]) => `${name}=${value}`)
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

function concernsUs(name: string): boolean {
  return KEY_VARIABLES.some((variable) => variable === name) || name.startsWith(KEY_VARIABLE_PREFIX)
}

/** The caller's words as the client divides them. */
export interface Division {
  /** The words before the command. */
  readonly options: readonly string[]
  /** As a process gets it. */
  readonly command: readonly string[]
  /** Of `-c`. */
  readonly script?: string
}

/** Node reads one of our options that follows a script. */
const OWN_OPTION = /^--[a-z]/

const BEFORE_VALUE = new Set(OPTIONS.filter(takesNextWord).map(({ name }) => `--${name}`))
const ALONE = new Set(OPTIONS.filter((option) => !takesNextWord(option)).map(({ name }) => `--${name}`))

/** Number of words of our option there, its value included; 0 for any other word, and for an option without its value. */
function optionWords(words: readonly string[], at: number): number {
  const word = words[at] ?? ''
  const name = word.split('=', 1)[0] ?? ''
  if (ALONE.has(name)) return 1
  if (!BEFORE_VALUE.has(name)) return 0
  if (name !== word) return 1
  return at + 1 < words.length ? 2 : 0
}

/**
 * The command begins behind our options, after `--`, or where a shell's words with a script begin. The same as call_split in
 * native/client/call.c, which knows their names alone.
 * @returns undefined where it cannot tell, so that nothing is cached
 */
export function divisionOf(words: readonly string[], hasBash: boolean): Division | undefined {
  let end = 0
  for (let taken = optionWords(words, 0); taken > 0; taken = optionWords(words, end)) end += taken
  const options = words.slice(0, end)
  const word = words[end] ?? ''
  const command = words.slice(word === '--' ? end + 1 : end)
  if (word === '--' || !/^-./s.test(word)) return command.length > 0 ? { options, command } : undefined
  const call = shellCallAt(words, end, hasBash)
  const script = call?.flag === undefined ? undefined : words[call.scriptAt]
  if (call === undefined || script === undefined || OWN_OPTION.test(words[call.scriptAt + 1] ?? '')) return undefined
  return { options, command: [call.shell, ...command], script }
}

export const invocationOf = ({ options, command }: Division): Invocation => ({
  ...withoutValues(options),
  program: command[0] ?? '',
})

const VARIABLE_OPTION = '--env'

/**
 * The values of variables are the command's: no plan depends on one, and one may be a secret. A word that only looks like a variable
 * (`--workdir --env A=B`) is taken for one here, too; before a plan is left, this is compared with what the full parser has read.
 */
export function withoutValues(words: readonly string[]): Pick<Invocation, 'options' | 'variables'> {
  const split = words.map((word, at) => splitVariable(word, words[at - 1]))
  return {
    options: split.map(({ option }) => option),
    variables: split.flatMap(({ variable }) => variable ?? []),
  }
}

/** Adjacent variables are one word, whatever their names and number. */
function withoutNames(options: readonly string[]): readonly string[] {
  const marked = options.flatMap((option, at) => {
    if (isVariableOf(option, options[at - 1])) return [KEY_ANY_VARIABLES]
    return option === VARIABLE_OPTION && isVariableOf(options[at + 1], option) ? [] : [option]
  })
  return marked.filter((option, at) => option !== KEY_ANY_VARIABLES || marked[at - 1] !== KEY_ANY_VARIABLES)
}

/** Is it what is left of a variable without its value? */
function isVariableOf(option: string | undefined, before: string | undefined): boolean {
  return option !== undefined && splitVariable(option, before).variable !== undefined
}

/** The same as variable_at in native/client/call.c. */
function splitVariable(word: string, before: string | undefined): { option: string; variable?: string } {
  const from = before === VARIABLE_OPTION ? 0 : `${VARIABLE_OPTION}=`.length
  const isVariable = from === 0 || word.startsWith(`${VARIABLE_OPTION}=`)
  const equals = isVariable ? word.indexOf('=', from) : -1
  return equals > from ? { option: word.slice(0, equals + 1), variable: word.slice(from) } : { option: word }
}

/** Whether these are the variables that the full parser has read, given as it gives them. */
export function areVariables({ variables }: Invocation, read: readonly string[]): boolean {
  const valued = read.filter((text) => text.includes('='))
  return valued.length === variables.length && valued.every((text, at) => text === variables[at])
}

/** Name of the file for a key. */
export function keyName(words: readonly string[]): string {
  return fnv1a64(Buffer.from(words.map((word) => `${word}\0`).join('')))
}
