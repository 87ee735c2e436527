/** Every spelling of tools, toolsets, rules about commands and delegates -> the normal form. Shapes are checked already. Pure. */
import { isMapping, type Mapping } from '../../text/json.ts'
import { quoteText } from '../../text/units.ts'
import { at, below, checkShape, type Reading, refuse, warn } from '../reading.ts'
import { APPROVAL_WORDS, type ApprovalWord, shellShape } from '../schema.ts'
import { divide } from '../shell-words.ts'
import type { Decision, Requested, Rule, Shell, SourceLocation, ToolModel, Worker } from '../worker.ts'

const TOOL_KEYS = ['tools', 'allowed-tools', 'allowed_tools'] as const
const DENIED_KEYS = ['disallowed-tools', 'disallowedTools'] as const
const SHELL_TOOLS: ReadonlySet<string> = new Set(['Bash', 'bash', 'Shell', 'shell'])
const DELEGATE_KEYS = ['delegates-to', 'delegates_to', 'allow_workers'] as const
const DELEGATE_SETS: ReadonlySet<string> = new Set(['delegation', 'workers'])
const DELEGATE_OPTIONS = ['allow_workers', 'allowed_workers'] as const
const DELEGATE_TOOLS: ReadonlySet<string> = new Set(['Task', 'Agent'])
/** Front matter of these files has toolsets: without any there are no tools. */
const OPT_IN_FILE = /\.(worker|agent|ya?ml)$/

interface WrittenRule {
  readonly pattern?: string
  readonly approval_required?: boolean
  readonly approval?: ApprovalWord
  readonly allowed?: boolean
}

interface WrittenShell {
  readonly rules?: readonly WrittenRule[] | undefined
  readonly default?: WrittenRule | ApprovalWord | undefined
}

const named = (approval: ApprovalWord, ...patterns: readonly string[]) =>
  patterns.map((pattern): WrittenRule => ({ pattern, approval }))
/** Rules of a shell toolset that lists none. */
const TOOLSET_RULES: ReadonlyMap<string, readonly WrittenRule[]> = new Map([
  ['shell', []],
  [
    'shell_readonly',
    [
      ...named('allow', 'ls', 'cat', 'head', 'tail', 'wc', 'sort', 'uniq', 'find', 'grep'),
      ...named('allow', 'git log', 'git diff', 'git show', 'git status'),
    ],
  ],
  ['shell_file_ops', [...named('allow', 'ls'), ...named('ask', 'mv')]],
])

interface Tool {
  readonly name: string
  /** The text in parentheses. */
  readonly argument?: string
  readonly from: SourceLocation
}

interface Toolset {
  readonly name: string
  readonly options: unknown
  readonly from: SourceLocation
}

interface Tools {
  readonly model: ToolModel
  readonly listed: readonly Tool[]
  readonly denied: readonly Tool[]
  readonly sets: readonly Toolset[]
}

export function adaptTools(
  reading: Reading,
  value: Mapping,
): Pick<Worker, 'tools' | 'toolModel' | 'toolsets' | 'delegates' | 'shell'> {
  const hasList = TOOL_KEYS.some((key) => value[key] !== undefined)
  const tools: Tools = {
    model: modelOf(reading.file, hasList, value['toolsets'] !== undefined),
    listed: TOOL_KEYS.flatMap((key) => toolsAt(reading, key, value[key])),
    denied: DENIED_KEYS.flatMap((key) => toolsAt(reading, key, value[key])),
    sets: toolsetsOf(reading, value['toolsets']),
  }
  const shell = shellOf(reading, value, tools)
  return {
    ...(hasList && { tools: tools.listed.map(toolText) }),
    toolModel: tools.model,
    toolsets: tools.sets.map(({ name }) => name),
    delegates: delegatesOf(reading, value, tools),
    shell,
  }
}

function modelOf(file: string, hasList: boolean, hasSets: boolean): ToolModel {
  if (hasSets) return 'opt-in'
  if (hasList) return 'listed'
  return OPT_IN_FILE.test(file) ? 'opt-in' : 'inherit'
}

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.map(String) : value === undefined || value === null ? [] : [String(value)]

const toolText = ({ name, argument }: Omit<Tool, 'from'>) => (argument === undefined ? name : `${name}(${argument})`)

function toolsAt(reading: Reading, key: string, value: unknown): readonly Tool[] {
  const from = at(reading, key)
  return textsOf(value)
    .flatMap(divideTools)
    .map((word) => {
      const [, name = word, argument] = /^([^()]+)\((.*)\)$/s.exec(word) ?? []
      if (!/^[\w.*:/-]{1,128}$/.test(name))
        refuse(reading, from, { expected: 'tools such as Read or Bash(git diff:*)', got: quoteText(name) })
      return { name, ...(argument !== undefined && { argument: argument.trim() }), from }
    })
}

/** At commas and blanks outside parentheses. */
function divideTools(text: string): readonly string[] {
  let depth = 0
  const marked = [...text].map((character) => {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    return depth === 0 && /[\s,]/.test(character) ? '\0' : character
  })
  return marked
    .join('')
    .split('\0')
    .filter((word) => word !== '')
}

function toolsetsOf(reading: Reading, value: unknown): readonly Toolset[] {
  const setsIn = (key: string, sets: Mapping) =>
    Object.entries(sets).map(([name, options]) => ({ name, options, from: at(reading, `${key}.${name}`) }))
  if (isMapping(value)) return setsIn('toolsets', value)
  return (Array.isArray(value) ? value : []).flatMap((entry: string | Mapping, index) =>
    typeof entry === 'string'
      ? [{ name: entry, options: null, from: at(reading, `toolsets.${index}`) }]
      : setsIn(`toolsets.${index}`, entry),
  )
}

/** Rules in the order of the file: toolsets, the older keys, listed tools. Denied tools come first. */
function shellOf(reading: Reading, value: Mapping, { model, listed, denied, sets }: Tools): Shell | null {
  const { shell_rules: rules, shell_default: fallback } = value as {
    readonly shell_rules?: WrittenShell['rules']
    readonly shell_default?: WrittenShell['default']
  }
  const isShell = ({ name }: Tool) => SHELL_TOOLS.has(name)
  const parts: readonly Shell[] = [
    ...sets.flatMap((set) => toolsetShell(reading, set)),
    ...(rules === undefined && fallback === undefined
      ? []
      : [readShell(reading, { rules, default: fallback }, { rules: 'shell_rules', default: 'shell_default' })]),
    ...listed.filter(isShell).map((tool) => ({ rules: [toolRule(tool, 'run')] })),
    // Without a list nothing says that commands may run: a person decides.
    ...(model === 'inherit'
      ? [{ rules: [], default: { value: 'ask', from: { file: reading.file, key: 'tools' } } } as const]
      : []),
  ]
  if (model === 'inherit')
    warn(
      reading,
      'W_INHERIT',
      { file: reading.file, key: 'tools' },
      'it lists no tools, which means all of them; every command is asked for. Say tools: [...] or tools: [].',
    )
  const blocked = denied.filter(isShell)
  const strictest = strictness(value['tool_rules'])
  if (parts.length === 0 || strictest === 'block' || blocked.some(({ argument }) => argument === undefined)) return null
  const [last] = parts.flatMap((part) => part.default ?? [])
  const shell = {
    rules: [...blocked.map((tool) => toolRule(tool, 'block')), ...parts.flatMap((part) => part.rules)],
    ...(last !== undefined && { default: last }),
  }
  warnAboutRules(reading, shell)
  return strictest === 'ask' ? asking(shell) : shell
}

function toolsetShell(reading: Reading, { name, options, from }: Toolset): readonly Shell[] {
  const standard = TOOLSET_RULES.get(name)
  if (standard === undefined) return []
  const place = below(from.key)
  const isRead = checkShape(reading, { value: options, shape: shellShape, place }) !== undefined
  if (!isRead) return []
  const { rules, default: fallback } = (options ?? {}) as WrittenShell
  const keys = { rules: rules === undefined ? undefined : place('rules'), default: place('default') }
  return [readShell(reading, { rules: rules ?? standard, default: fallback }, keys, from)]
}

/**
 * @param keys dotted, of the file
 * @param from the place of rules that the file does not list
 */
function readShell(
  reading: Reading,
  { rules = [], default: fallback }: WrittenShell,
  keys: { readonly rules: string | undefined; readonly default: string },
  from?: SourceLocation,
): Shell {
  const place = at(reading, keys.default)
  const value = fallback === undefined ? undefined : decisionOf(reading, place, fallback)
  return {
    rules: rules.flatMap((rule, index) =>
      readRule(
        reading,
        from !== undefined && keys.rules === undefined ? from : at(reading, `${keys.rules}.${index}`),
        rule,
      ),
    ),
    ...(value !== undefined && { default: { value, from: place } }),
  }
}

/** The last word `*` means anything. */
function readRule(reading: Reading, from: SourceLocation, rule: WrittenRule): readonly Rule[] {
  const { pattern = '' } = rule
  const decision = decisionOf(reading, from, rule)
  const division = divide(pattern)
  const problem = !division.ok
    ? division
    : division.tokens.length === 0
      ? { expected: 'at least one word', got: 'none' }
      : undefined
  if (problem !== undefined) refuse(reading, { ...from, key: `${from.key}.pattern` }, problem)
  const words = division.ok ? division.tokens : []
  const tokens = words.at(-1) === '*' ? words.slice(0, -1) : words
  return problem !== undefined || decision === undefined ? [] : [{ pattern, tokens, match: 'prefix', decision, from }]
}

/** `allowed: false` blocks; a rule without any of the three words asks. Words that contradict each other are refused. */
function decisionOf(reading: Reading, from: SourceLocation, written: WrittenRule | ApprovalWord): Decision | undefined {
  const rule = typeof written === 'string' ? { approval: written } : written
  const { approval, approval_required: required, allowed } = rule
  const word = approval && APPROVAL_WORDS[approval]
  const flag = required === undefined ? undefined : required ? 'ask' : 'run'
  const other = flag !== undefined && word !== flag ? `approval_required: ${String(required)}` : 'allowed: false'
  if (word !== undefined && ((flag ?? word) !== word || (allowed === false && word !== 'block'))) {
    refuse(reading, from, { expected: `${other} and approval to agree`, got: `approval: ${approval}` })
    return undefined
  }
  return allowed === false ? 'block' : (word ?? flag ?? 'ask')
}

/** `Bash` is every command, `Bash(x:*)` and `Bash(x *)` are commands that begin with x, `Bash(x)` is exactly x. */
function toolRule(tool: Tool, decision: Decision): Rule {
  const { argument = '*', from } = tool
  const text = argument.replace(/^:?\*$|(:\*|\s\*)$/, '')
  const division = divide(text)
  // Text that no shell could divide matches no command, except where it blocks: then it blocks all of them.
  const tokens = division.ok ? division.tokens : decision === 'block' ? [] : [text]
  const match = text !== argument || !division.ok ? 'prefix' : 'exact'
  return { pattern: toolText(tool), tokens, match, decision, from }
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
    ...(fallback !== undefined && { default: { ...fallback, value: stricter(fallback.value) } }),
  }
}

function warnAboutRules(reading: Reading, { rules, default: fallback }: Shell): void {
  if (rules.length === 0 && fallback === undefined) {
    const message = 'the shell has no rules and no default, so it blocks every command.'
    warn(reading, 'W_NO_RULES', { file: reading.file, key: 'toolsets' }, message)
  }
  for (const { pattern, tokens, from } of rules)
    if (tokens.some((token) => token.length > 1 && token.includes('*'))) {
      const message = `rule ${quoteText(pattern)}: a star inside a word stands for itself; only a last word * means anything.`
      warn(reading, 'W_PATTERN', from, message)
    }
}

/** One list of the workers that may be called, whichever key names them. */
function delegatesOf(reading: Reading, value: Mapping, { listed, sets }: Tools): readonly Requested<string>[] {
  const namesAt = (place: string, names: unknown) =>
    (Array.isArray(names) ? textsOf(names) : textsOf(names).flatMap((text) => text.split(',')))
      .map((name) => ({ value: name.trim(), from: at(reading, place) }))
      .filter((name) => name.value !== '')
  const requests = [
    ...DELEGATE_KEYS.flatMap((key) => namesAt(key, value[key])),
    ...sets.flatMap(({ name, options, from }) =>
      DELEGATE_SETS.has(name) && isMapping(options)
        ? DELEGATE_OPTIONS.flatMap((key) => namesAt(`${from.key}.${key}`, options[key]))
        : [],
    ),
    ...listed
      .filter(({ name }) => DELEGATE_TOOLS.has(name))
      .flatMap(({ argument = '*', from }) => argument.split(',').map((name) => ({ value: name.trim(), from }))),
  ]
  const unique = requests.filter((one, index) => requests.findIndex((other) => other.value === one.value) === index)
  for (const { value: name, from } of unique)
    if (name !== '*' && !/^[A-Za-z0-9_][\w .:/-]{0,127}$/.test(name))
      refuse(reading, from, { expected: 'names of workers', got: quoteText(name) })
  return unique
}
