/** What a worker may use: tools, toolsets, rules about commands, other workers; every spelling of each. Shapes are checked. Pure. */
import { quoteText } from '../text/units.ts'
import type { Problem } from './problem.ts'
import type { Surroundings } from './sandbox.ts'
import { APPROVAL_WORDS, shellShape } from './schema.ts'
import { lineOf, problemsOf } from './schema-problems.ts'
import { divide } from './shell-words.ts'
import type { Decision, Requested, Rule, Shell, SourceLocation, ToolModel, Warning } from './worker.ts'

type Mapping = Readonly<Record<string, unknown>>
const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

interface ToolSpec {
  readonly name: string
  /** What stands in parentheses; undefined = none. */
  readonly argument?: string
  readonly from: SourceLocation
}

interface Toolset {
  readonly name: string
  readonly options: unknown
  readonly from: SourceLocation
}

export interface Tools {
  readonly model: ToolModel
  /** As they are written; undefined when there is no list. */
  readonly listed?: readonly string[]
  readonly toolsets: readonly string[]
  readonly specs: readonly ToolSpec[]
  readonly denied: readonly ToolSpec[]
  readonly sets: readonly Toolset[]
  readonly warnings: readonly Warning[]
  readonly problems: readonly Problem[]
}

const LISTS = ['tools', 'allowed-tools', 'allowed_tools'] as const
const DENIALS = ['disallowed-tools', 'disallowedTools'] as const
/** Front matter of these has toolsets, so one without any has no tools. */
const OPT_IN_FILE = /\.(worker|agent|ya?ml)$/

export function readTools(around: Surroundings, value: Mapping): Tools {
  const given = LISTS.filter((key) => value[key] !== undefined)
  const listed = given.flatMap((key) => specsOf(around, key, value[key]))
  const denied = DENIALS.flatMap((key) => specsOf(around, key, value[key]))
  const sets = toolsetsOf(around, value['toolsets'])
  const model = modelOf({ file: around.file, isListed: given.length > 0, hasSets: value['toolsets'] !== undefined })
  return {
    model,
    ...(given.length === 0 ? {} : { listed: listed.map(shown) }),
    toolsets: sets.map(({ name }) => name),
    specs: listed,
    denied,
    sets,
    warnings: model === 'inherit' ? [inherits(around.file)] : [],
    problems: [...listed, ...denied].flatMap(specProblem),
  }
}

function modelOf(input: { readonly file: string; readonly isListed: boolean; readonly hasSets: boolean }): ToolModel {
  if (input.hasSets) return 'opt-in'
  if (input.isListed) return 'listed'
  return OPT_IN_FILE.test(input.file) ? 'opt-in' : 'inherit'
}

function inherits(file: string): Warning {
  const message =
    'it lists no tools, which means all of them; every command is asked for. Say tools: [...] or tools: [].'
  return { code: 'W_INHERIT', file, key: 'tools', message }
}

const shown = ({ name, argument }: ToolSpec) => (argument === undefined ? name : `${name}(${argument})`)

function specsOf({ file, lines }: Surroundings, key: string, value: unknown): readonly ToolSpec[] {
  if (value === undefined || value === null) return []
  const from = { file, line: lineOf(lines, key), key }
  const texts = Array.isArray(value) ? (value as readonly string[]) : [String(value)]
  return texts.flatMap(words).map((word) => ({ ...specOf(word), from }))
}

/** Divides at commas and spaces outside parentheses. */
function words(text: string): readonly string[] {
  let depth = 0
  let word = ''
  const found: string[] = []
  for (const character of text) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (depth === 0 && /[\s,]/.test(character)) {
      found.push(word)
      word = ''
    } else word += character
  }
  return [...found, word].filter((part) => part !== '')
}

function specOf(word: string): Omit<ToolSpec, 'from'> {
  const match = /^([^()]+)\((.*)\)$/s.exec(word)
  return match === null ? { name: word } : { name: match[1] ?? '', argument: (match[2] ?? '').trim() }
}

function specProblem({ name, from }: ToolSpec): readonly Problem[] {
  return /^[\w.*:/-]{1,128}$/.test(name)
    ? []
    : [{ ...from, expected: 'tools such as Read or Bash(git diff:*)', got: quoteText(name) }]
}

function toolsetsOf({ file, lines }: Surroundings, value: unknown): readonly Toolset[] {
  const locate = (key: string): SourceLocation => ({ file, line: lineOf(lines, key), key })
  if (Array.isArray(value)) {
    return value.flatMap((entry: string | Mapping, index): readonly Toolset[] =>
      typeof entry === 'string'
        ? [{ name: entry, options: null, from: locate(`toolsets.${index}`) }]
        : setsIn(entry, (name) => locate(`toolsets.${index}.${name}`)),
    )
  }
  return isMapping(value) ? setsIn(value, (name) => locate(`toolsets.${name}`)) : []
}

function setsIn(value: Mapping, locate: (name: string) => SourceLocation): readonly Toolset[] {
  return Object.entries(value).map(([name, options]) => ({ name, options, from: locate(name) }))
}

interface RawRule {
  readonly pattern?: string
  readonly approval_required?: boolean
  readonly approval?: string
  readonly allowed?: boolean
}

/** Commands that only look, which the toolset of that name lets run. */
const READING: readonly string[] = [
  'ls',
  'cat',
  'head',
  'tail',
  'wc',
  'sort',
  'uniq',
  'find',
  'grep',
  'git log',
  'git diff',
  'git show',
  'git status',
]
const BUILT_IN_RULES: Readonly<Record<string, readonly RawRule[]>> = {
  shell: [],
  shell_readonly: READING.map((pattern) => ({ pattern, approval_required: false })),
  shell_file_ops: [
    { pattern: 'ls', approval_required: false },
    { pattern: 'mv', approval_required: true },
  ],
}
const SHELL_TOOLS: ReadonlySet<string> = new Set(['Bash', 'bash', 'Shell', 'shell'])

export interface ReadShell {
  readonly shell: Shell | null
  readonly warnings: readonly Warning[]
  readonly problems: readonly Problem[]
}

interface WithTools {
  readonly around: Surroundings
  readonly value: Mapping
  readonly tools: Tools
}

/** All rules in the order of the file: toolsets, then the older keys, then the tools of a list. Denied tools come before. */
export function readShell({ around, value, tools }: WithTools): ReadShell {
  const parts = [
    ...tools.sets.filter(({ name }) => Object.hasOwn(BUILT_IN_RULES, name)).map((set) => setShell(around, set)),
    ...olderShell(around, value),
    ...tools.specs
      .filter(({ name }) => SHELL_TOOLS.has(name))
      .map((spec) => ({ rules: [toolRule(spec, 'run')], problems: [] })),
    ...(tools.model === 'inherit' ? [inherited(around.file)] : []),
  ] satisfies readonly ShellPart[]
  const denials = tools.denied.filter(({ name }) => SHELL_TOOLS.has(name))
  const problems = parts.flatMap((part) => part.problems)
  const strict = strictness(value['tool_rules'])
  const isGone = parts.length === 0 || strict === 'block' || denials.some(({ argument }) => argument === undefined)
  if (isGone) return { shell: null, warnings: [], problems }
  const shell = sumOf([...denials.map((spec) => ({ rules: [toolRule(spec, 'block')], problems: [] })), ...parts])
  return { shell: strict === 'ask' ? asking(shell) : shell, warnings: shellWarnings(around.file, shell), problems }
}

interface ShellPart {
  readonly rules: readonly Rule[]
  readonly default?: Requested<Decision>
  readonly problems: readonly Problem[]
}

function sumOf(parts: readonly ShellPart[]): Shell {
  const fallback = parts.find((part) => part.default !== undefined)?.default
  return { rules: parts.flatMap(({ rules }) => rules), ...(fallback === undefined ? {} : { default: fallback }) }
}

function setShell(around: Surroundings, { name, options, from }: Toolset): ShellPart {
  const { file, lines } = around
  const problems = problemsOf({ file, lines, value: options, shape: shellShape, key: from.key })
  if (problems.length > 0) return { rules: [], problems }
  const { rules, default: fallback } = (options ?? {}) as {
    readonly rules?: readonly RawRule[]
    readonly default?: RawRule | string
  }
  const listed = rules ?? BUILT_IN_RULES[name] ?? []
  const locate = (index: number) => (rules === undefined ? from : locationIn(around, `${from.key}.rules.${index}`))
  return shellPart({ listed, locate, fallback, fallbackLocation: locationIn(around, `${from.key}.default`) })
}

function olderShell(around: Surroundings, value: Mapping): readonly ShellPart[] {
  const { shell_rules: rules, shell_default: fallback } = value as {
    readonly shell_rules?: readonly RawRule[]
    readonly shell_default?: RawRule | string
  }
  if (rules === undefined && fallback === undefined) return []
  const locate = (index: number) => locationIn(around, `shell_rules.${index}`)
  return [shellPart({ listed: rules ?? [], locate, fallback, fallbackLocation: locationIn(around, 'shell_default') })]
}

/** The tools are not listed, so nothing says that commands may run: a person has to. */
function inherited(file: string): ShellPart {
  return { rules: [], default: { value: 'ask', from: { file, key: 'tools' } }, problems: [] }
}

const locationIn = ({ file, lines }: Surroundings, key: string): SourceLocation => ({
  file,
  line: lineOf(lines, key),
  key,
})

function shellPart(input: {
  readonly listed: readonly RawRule[]
  readonly locate: (index: number) => SourceLocation
  readonly fallback: RawRule | string | undefined
  readonly fallbackLocation: SourceLocation
}): ShellPart {
  const { listed, locate, fallback, fallbackLocation } = input
  const read = listed.map((raw, index) => readRule(raw, locate(index)))
  const last =
    fallback === undefined
      ? undefined
      : readDecision(typeof fallback === 'string' ? { approval: fallback } : fallback, fallbackLocation)
  return {
    rules: read.flatMap(({ rule }) => rule ?? []),
    ...(last?.decision === undefined ? {} : { default: { value: last.decision, from: fallbackLocation } }),
    problems: [...read.flatMap(({ problems }) => problems), ...(last?.problems ?? [])],
  }
}

function readRule(raw: RawRule, from: SourceLocation): { readonly rule?: Rule; readonly problems: readonly Problem[] } {
  const { decision, problems } = readDecision(raw, from)
  const pattern = raw.pattern ?? ''
  const division = divide(pattern)
  if (!division.ok) {
    return {
      problems: [...problems, { ...from, key: `${from.key}.pattern`, expected: division.expected, got: division.got }],
    }
  }
  if (division.tokens.length === 0) {
    return {
      problems: [...problems, { ...from, key: `${from.key}.pattern`, expected: 'at least one word', got: 'none' }],
    }
  }
  if (decision === undefined) return { problems }
  return { rule: { pattern, ...prefix(division.tokens), decision, from }, problems }
}

function prefix(tokens: readonly string[]): Pick<Rule, 'tokens' | 'match'> {
  return { tokens: tokens.at(-1) === '*' ? tokens.slice(0, -1) : tokens, match: 'prefix' }
}

/** `allowed: false` blocks whatever else is said; nothing said about approval means ask. */
function readDecision(
  raw: RawRule,
  from: SourceLocation,
): { readonly decision?: Decision; readonly problems: readonly Problem[] } {
  const word = raw.approval === undefined ? undefined : APPROVAL_WORDS[raw.approval]
  const flag = raw.approval_required === undefined ? undefined : raw.approval_required ? 'ask' : 'run'
  if (word !== undefined && ((flag !== undefined && word !== flag) || (raw.allowed === false && word !== 'block'))) {
    const other =
      flag === undefined || word === flag ? 'allowed: false' : `approval_required: ${String(raw.approval_required)}`
    return {
      problems: [{ ...from, expected: `${other} and approval to agree`, got: `approval: ${raw.approval ?? ''}` }],
    }
  }
  if (raw.allowed === false) return { decision: 'block', problems: [] }
  return { decision: word ?? flag ?? 'ask', problems: [] }
}

/** `Bash` is every command, `Bash(x:*)` and `Bash(x *)` what begins with x, `Bash(x)` exactly x. */
function toolRule({ name, argument, from }: ToolSpec, decision: Decision): Rule {
  const pattern = argument === undefined ? name : `${name}(${argument})`
  if (argument === undefined || argument === '*' || argument === ':*')
    return { pattern, tokens: [], match: 'prefix', decision, from }
  const text = argument.replace(/(:\*|\s\*)$/, '')
  const division = divide(text)
  // Text that no shell could divide matches no command, except where it blocks: then it blocks all of them.
  const tokens = division.ok ? division.tokens : decision === 'block' ? [] : [text]
  const isPrefix = text !== argument || !division.ok
  return { pattern, tokens, match: isPrefix ? 'prefix' : 'exact', decision, from }
}

/** `tool_rules.shell` of old workers can only make it stricter. */
function strictness(toolRules: unknown): 'block' | 'ask' | undefined {
  const rule = isMapping(toolRules) ? toolRules['shell'] : undefined
  if (!isMapping(rule)) return undefined
  if (rule['allowed'] === false) return 'block'
  return rule['approval_required'] === true ? 'ask' : undefined
}

function asking({ rules, default: fallback }: Shell): Shell {
  const stricter = (decision: Decision): Decision => (decision === 'run' ? 'ask' : decision)
  return {
    rules: rules.map((rule) => ({ ...rule, decision: stricter(rule.decision) })),
    ...(fallback === undefined ? {} : { default: { ...fallback, value: stricter(fallback.value) } }),
  }
}

function shellWarnings(file: string, shell: Shell): readonly Warning[] {
  const starred = shell.rules.filter(({ tokens }) => tokens.some((token) => token.length > 1 && token.includes('*')))
  const none: Warning[] =
    shell.rules.length === 0 && shell.default === undefined
      ? [
          {
            code: 'W_NO_RULES',
            file,
            key: 'toolsets',
            message: 'the shell has no rules and no default, so it blocks every command.',
          },
        ]
      : []
  return [
    ...none,
    ...starred.map(({ pattern, from }): Warning => {
      const message = `rule ${quoteText(pattern)}: a star inside a word stands for itself; only a last word * means anything.`
      return { code: 'W_PATTERN', ...from, message }
    }),
  ]
}

const DELEGATE_KEYS = ['delegates-to', 'delegates_to', 'allow_workers'] as const
const DELEGATE_SETS = ['delegation', 'workers'] as const
const DELEGATE_OPTIONS = ['allow_workers', 'allowed_workers'] as const
const DELEGATE_TOOLS: ReadonlySet<string> = new Set(['Task', 'Agent'])

export interface ReadDelegates {
  readonly delegates: readonly Requested<string>[]
  readonly problems: readonly Problem[]
}

/** One list of every worker that may be called, whichever key names it. */
export function readDelegates({ around, value, tools }: WithTools): ReadDelegates {
  const requests = [
    ...DELEGATE_KEYS.flatMap((key) => namesAt(around, key, value[key])),
    ...tools.sets
      .filter(({ name }) => (DELEGATE_SETS as readonly string[]).includes(name))
      .flatMap((set) => setDelegates(around, set)),
    ...tools.specs
      .filter(({ name }) => DELEGATE_TOOLS.has(name))
      .flatMap(({ argument, from }) => (argument ?? '*').split(',').map((name) => ({ value: name.trim(), from }))),
  ]
  const unique = requests.filter(
    ({ value: name }, index) => requests.findIndex((other) => other.value === name) === index,
  )
  return { delegates: unique, problems: unique.flatMap(delegateProblem) }
}

function setDelegates(around: Surroundings, { options, from }: Toolset): readonly Requested<string>[] {
  if (!isMapping(options)) return []
  return DELEGATE_OPTIONS.flatMap((key) => namesAt(around, `${from.key}.${key}`, options[key]))
}

function namesAt(around: Surroundings, key: string, value: unknown): readonly Requested<string>[] {
  if (value === undefined || value === null) return []
  const texts = Array.isArray(value) ? value : String(value).split(',')
  return texts
    .map((text) => ({ value: String(text).trim(), from: locationIn(around, key) }))
    .filter((request) => request.value !== '')
}

function delegateProblem({ value, from }: Requested<string>): readonly Problem[] {
  if (value === '*' || /^[A-Za-z0-9_][\w .:/-]{0,127}$/.test(value)) return []
  return [{ ...from, expected: 'names of workers', got: quoteText(value) }]
}
