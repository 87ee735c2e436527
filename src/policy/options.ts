/**
 * Every option of the command line, declared once: the command line is built from it, the environment twins are read by it,
 * the manual is printed from it. An option that is policy says so by the values it stands for. Pure.
 */
import { quoteText, quoteValue } from '../unit.ts'
import { addSaid, type Spoken } from './add-said.ts'
import type { PolicyLayer } from './layer.ts'
import type { Layer } from './policy.ts'
import type { SandboxInput, ZoneInput } from './schema.ts'
import { listWords } from './value.ts'

export const OPTION_GROUPS = ['Policy', 'Files', 'Network', 'Limits', 'Inside', 'Backend', 'Workers', 'Output'] as const
export type OptionGroup = (typeof OPTION_GROUPS)[number]

export interface OptionDeclaration {
  /** Long name without dashes. */
  readonly name: string
  /** What stands for the value in the usage; absent = a switch. */
  readonly argument?: string
  /** The value may be left out (`--json`), and is then written with `=`. */
  readonly isArgumentOptional: boolean
  /** May be given more than once; every value counts. */
  readonly repeats: boolean
  readonly group: OptionGroup
  /** One line; absent = that of its key. Unit and default are those of the key then, too: see explained.ts. */
  readonly help?: string
  readonly unit?: string
  /** As a person would write it. */
  readonly standard?: string
  /** The only values, where they are words and the policy does not check them. */
  readonly choices?: readonly string[]
  /** Dotted policy key; absent = the option is about the run, not about the policy. */
  readonly key?: string
  /** Its twin; several values are separated by newlines. */
  readonly environment: string
  /** What a value says as policy, or why it says nothing. */
  readonly says?: (text: string) => Spoken
}

/** What was given: `true` for a switch (and for an optional value left out), a list for what repeats. Keys are option names. */
export type GivenOptions = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

type Declared = Pick<OptionDeclaration, 'name' | 'group'> & Partial<OptionDeclaration>

function declare(option: Declared): OptionDeclaration {
  return { isArgumentOptional: false, repeats: false, environment: environmentName(option.name), ...option }
}

/** `allow-host` -> `LLM_DO_EXEC_ALLOW_HOST`. */
function environmentName(name: string): string {
  return `LLM_DO_EXEC_${name.toUpperCase().replaceAll('-', '_')}`
}

/** An option whose text is the value of one key, unchanged: the schema reads it as it reads a file. */
const scalar = (option: Declared & { readonly key: string }): OptionDeclaration =>
  declare({ ...option, says: (text) => ({ values: nested(option.key, text) }) })

/** An option without value that sets one key to true. */
const flag = (option: Declared & { readonly key: string }): OptionDeclaration =>
  declare({ ...option, says: (text) => ({ values: nested(option.key, text === 'true') }) })

function nested(key: string, value: unknown): SandboxInput {
  const [first = '', ...rest] = key.split('.')
  return { [first]: rest.length === 0 ? value : nested(rest.join('.'), value) } as SandboxInput
}

const words = (text: string): string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')

/** In the order of the manual. */
export const OPTIONS: readonly OptionDeclaration[] = [
  declare({ name: 'profile', argument: 'NAME|FILE', group: 'Policy', help: 'Base policy.', standard: 'default' }),
  declare({
    name: 'require',
    argument: 'WORD,...',
    group: 'Policy',
    key: 'require',
    repeats: true,
    says: (text) => ({ values: { require: words(text) as never } }),
  }),
  flag({ name: 'best-effort', group: 'Policy', key: 'bestEffort' }),

  declare({
    name: 'ro',
    argument: 'SRC[:TARGET]',
    group: 'Files',
    key: 'zones',
    repeats: true,
    help: 'Show a file or directory read-only.',
    says: (text) => unnamedZone(text, 'ro'),
  }),
  declare({
    name: 'rw',
    argument: 'SRC[:TARGET]',
    group: 'Files',
    key: 'zones',
    repeats: true,
    help: 'Show a file or directory that may be changed.',
    says: (text) => unnamedZone(text, 'rw'),
  }),
  declare({
    name: 'zone',
    argument: 'NAME=SRC[:TARGET][:ro|rw]',
    group: 'Files',
    key: 'zones',
    repeats: true,
    help: 'A zone with a name, at /NAME unless TARGET says otherwise; ro unless it says rw.',
    says: namedZone,
  }),
  declare({
    name: 'tmpfs',
    argument: 'TARGET[:SIZE]',
    group: 'Files',
    key: 'zones',
    repeats: true,
    help: 'An empty directory in memory (50m unless SIZE says otherwise).',
    says: tmpfsZone,
  }),
  flag({ name: 'same-path', group: 'Files', key: 'samePath' }),
  declare({
    name: 'protect-not',
    argument: 'NAME',
    group: 'Files',
    key: 'protectNot',
    repeats: true,
    help: 'Let a protected name of the built-in list be written in rw zones; .git: git directories, *: every name.',
    says: (text) => ({ values: { protectNot: [text] } }),
  }),

  scalar({
    name: 'net',
    argument: 'none|restricted|host',
    group: 'Network',
    key: 'network.mode',
    help: 'What the command can reach: nothing but itself, the hosts that are allowed, or all that this host reaches.',
    standard: 'none',
  }),
  declare({
    name: 'allow-host',
    argument: 'HOST[:PORT]',
    group: 'Network',
    key: 'network.allow',
    repeats: true,
    help: 'A host that may be reached (*.HOST: all below it); means --net restricted.',
    says: (text) => ({ values: { network: { allow: words(text) } } }),
  }),

  scalar({ name: 'memory', argument: 'SIZE', group: 'Limits', key: 'resources.memory' }),
  scalar({ name: 'cpus', argument: 'N', group: 'Limits', key: 'resources.cpu' }),
  scalar({ name: 'pids', argument: 'N', group: 'Limits', key: 'resources.pids' }),
  scalar({ name: 'timeout', argument: 'TIME', group: 'Limits', key: 'resources.timeout' }),
  scalar({ name: 'cpu-time', argument: 'TIME', group: 'Limits', key: 'resources.cpuTime' }),
  scalar({ name: 'output', argument: 'SIZE', group: 'Limits', key: 'resources.output' }),
  scalar({ name: 'tmp', argument: 'SIZE', group: 'Limits', key: 'resources.tmp' }),
  scalar({ name: 'cgroup-parent', argument: 'DIR', group: 'Limits', key: 'cgroupParent' }),

  declare({
    name: 'env',
    argument: 'NAME[=VALUE]',
    group: 'Inside',
    key: 'env',
    repeats: true,
    help: 'A variable with a value, or one taken over from the caller.',
    says: variable,
  }),
  scalar({ name: 'workdir', argument: 'DIR', group: 'Inside', key: 'workdir' }),
  flag({ name: 'tty', group: 'Inside', key: 'tty' }),
  flag({ name: 'ssh-agent', group: 'Inside', key: 'sshAgent' }),

  scalar({ name: 'backend', argument: 'auto|namespace|docker|wasm|process', group: 'Backend', key: 'backend' }),
  scalar({ name: 'engine', argument: 'auto|bwrap|unshare', group: 'Backend', key: 'engine' }),
  scalar({ name: 'image', argument: 'IMAGE', group: 'Backend', key: 'image' }),
  scalar({ name: 'runtime', argument: 'NAME', group: 'Backend', key: 'runtime' }),
  scalar({ name: 'seccomp', argument: 'default|strict|nested|off|FILE', group: 'Backend', key: 'seccomp' }),
  scalar({ name: 'pool', argument: 'auto|off', group: 'Backend', key: 'pool' }),

  declare({ name: 'worker', argument: 'FILE|NAME', group: 'Workers', help: 'Run under the rules of this worker.' }),
  declare({
    name: 'workshop',
    argument: 'FILE',
    group: 'Workers',
    help: 'The workshop that says where the worker runs.',
  }),
  declare({
    name: 'approval',
    argument: 'prompt|approve_all|reject_all',
    group: 'Workers',
    standard: 'prompt',
    choices: ['prompt', 'approve_all', 'reject_all'],
    help: "Who answers when a worker's rule asks.",
  }),
  declare({
    name: 'allow-shell-syntax',
    group: 'Workers',
    help: "Let -c use shell metacharacters under a worker's rules.",
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
  declare({ name: 'plan', group: 'Output', help: 'Print the plan and run nothing.' }),
  declare({ name: 'argv', group: 'Output', help: 'With --plan: print the exact process.' }),
  declare({ name: 'why', argument: 'KEY', group: 'Output', help: 'With --plan: print who set KEY.' }),
  declare({ name: 'audit', argument: 'FILE', group: 'Output', help: 'Append one JSON line per run.' }),
  declare({ name: 'log', group: 'Output', help: 'Say on stderr how the command was isolated.' }),
]

/**
 * The layer of the command line.
 * @param given by option name; options that are not policy are passed over
 * @param cwd absolute; what host paths are relative to
 */
export function flagLayer(given: GivenOptions, cwd: string): PolicyLayer {
  return layerOfOptions({ given, cwd, layer: 'flag', source: 'command line', placeName: ({ name }) => `--${name}` })
}

/** The layer of options from anywhere; `placeName` is how a message calls one. */
export function layerOfOptions(input: {
  readonly given: GivenOptions
  readonly cwd: string
  readonly layer: Layer
  readonly source: string
  readonly placeName: (option: OptionDeclaration) => string
}): PolicyLayer {
  const { given, cwd, layer, source, placeName } = input
  const spoken = OPTIONS.flatMap((option) => {
    const place = placeName(option)
    return textsOf(given[option.name]).flatMap((text) =>
      option.says === undefined ? [] : [{ place, spoken: option.says(text) }],
    )
  })
  const said = spoken.reduce(addSaid, { values: {}, places: {}, problems: [] })
  return { layer, source, directory: cwd, ...said }
}

function textsOf(value: GivenOptions[string]): readonly string[] {
  if (value === undefined) return []
  return typeof value === 'object' ? value : [String(value)]
}

/** Takes a final `:ro` or `:rw` off. */
function splitMode(text: string): { readonly rest: string; readonly mode?: 'ro' | 'rw' } {
  const match = /^(.*):(ro|rw)$/s.exec(text)
  return match === null ? { rest: text } : { rest: match[1] ?? '', mode: match[2] as 'ro' | 'rw' }
}

/**
 * SRC[:TARGET]. A target begins with a slash, so the last `:/` divides and a source may have other colons;
 * a source with `:/` in it can only be named in a profile.
 */
function splitTarget(text: string): { readonly hostPath: string; readonly target?: string } {
  const at = text.lastIndexOf(':/')
  return at < 0 ? { hostPath: text } : { hostPath: text.slice(0, at), target: text.slice(at + 1) }
}

function unnamedZone(text: string, mode: 'ro' | 'rw'): Spoken {
  const { rest, mode: written } = splitMode(text)
  const { hostPath, target } = splitTarget(rest)
  if (hostPath === '') return { problem: `expected SRC[:TARGET], got ${quoteValue(text)}.` }
  if (written !== undefined && written !== mode) {
    return { problem: `expected a zone that is ${mode}, got ${quoteText(text)}. Did you mean --${written}?` }
  }
  return zone({ mode, hostPath, ...(target === undefined ? {} : { target }) })
}

function namedZone(text: string): Spoken {
  const at = text.indexOf('=')
  const { rest, mode } = splitMode(text.slice(at + 1))
  const { hostPath, target } = splitTarget(rest)
  if (at < 1 || hostPath === '') return { problem: `expected NAME=SRC[:TARGET][:ro|rw], got ${quoteValue(text)}.` }
  return zone({ name: text.slice(0, at), mode: mode ?? 'ro', hostPath, ...(target === undefined ? {} : { target }) })
}

function tmpfsZone(text: string): Spoken {
  const match = /^(\/[^:]*)(?::([^/:]+))?$/s.exec(text)
  if (match === null) return { problem: `expected TARGET[:SIZE] with an absolute TARGET, got ${quoteValue(text)}.` }
  const [, target = '', size] = match
  return zone({ mode: 'tmpfs', target, ...(size === undefined ? {} : { size }) })
}

const zone = (input: ZoneInput): Spoken => ({ values: { zones: [input] } })

/** The value is not looked at: it may be a secret, and whatever it holds is the command's. */
function variable(text: string): Spoken {
  const at = text.indexOf('=')
  if (at < 0) return { values: { env: { inherit: [text] } } }
  if (at === 0) return { problem: 'expected NAME[=VALUE], got no name.' }
  return { values: { env: { set: { [text.slice(0, at)]: text.slice(at + 1) } } } }
}

/** A choice that is not one of its words, as a finished line; undefined when all is well. For options that are not policy. */
export function wrongChoice(option: OptionDeclaration, place: string, value: string): string | undefined {
  const { choices } = option
  return choices === undefined || choices.includes(value)
    ? undefined
    : `${place}: expected ${listWords(choices)}, got ${quoteValue(value)}.`
}
