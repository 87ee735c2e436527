/**
 * Does a worker's rule let a command run, ask for it, or block it? Decided on the host before anything is started, for the
 * user's comfort: the sandbox is as tight without any rule. Pure.
 *
 * A rule's words are compared with the command's words one by one. Nothing is interpreted: `git` is not `/usr/bin/git`, and a
 * program that starts others (`env`, `sh -c`, `find -exec`) is known by its own name only.
 *
 * native/client/rules.c judges by the same rules what it understands, and leaves the rest to this file.
 */
import { SHELL_WORDS } from '../contract.ts'
import { quoteText } from '../text/units.ts'
import { locationText } from './problem.ts'
import { divide, hiddenCharacter } from './shell-words.ts'
import type { Decision, Rule, Shell } from './worker.ts'

export interface Verdict {
  readonly decision: Decision
  /** The decider, for the audit: `rule "git log"`, `default`, `no rule`, `policy`. */
  readonly by: string
  /** Why, for people, with the file and line where there is one. */
  readonly why: string
  /** The operator could let the text of -c use shell syntax, and then no rule would block it. */
  readonly needsShellSyntax?: true
}

/** How the audit names a rule. */
export const nameOf = ({ pattern }: Rule): string => `rule ${quoteText(pattern)}`
/** ... and what decides where no rule matches. */
export const DEFAULT = 'default'

export function matches(rule: Rule, argv: readonly string[]): boolean {
  if (rule.match === 'exact' && rule.tokens.length !== argv.length) return false
  return rule.tokens.every((token, index) => token === argv[index])
}

/** The verdict of the rules about an argument vector. */
export function decide(shell: Shell, argv: readonly string[]): Verdict {
  const [program = ''] = argv
  const hidden = hiddenCharacter(program)
  if (hidden !== undefined) return blocked(`the name of the program holds ${hidden}, which does not show as what it is`)
  const rule = shell.rules.find((candidate) => matches(candidate, argv))
  if (rule !== undefined) {
    const by = nameOf(rule)
    return { decision: rule.decision, by, why: `${locationText(rule.from)} ${by} says ${rule.decision}` }
  }
  if (shell.default === undefined) {
    return {
      decision: 'block',
      by: 'no rule',
      why: 'no rule of the worker names this command, and there is no default',
    }
  }
  const { value, from } = shell.default
  return { decision: value, by: DEFAULT, why: `${locationText(from)} no rule matches, and the default says ${value}` }
}

/** Signs by which a shell does more than start one program with the words that are seen. */
const SYNTAX = /[|&;<>()$`{}\n\r]/
/** Signs after which text runs that no rule has seen. */
const SUBSTITUTION = /[$`(){}]/
/** Kept as they are: a redirection in quotes is none. */
const QUOTED = String.raw`"(?:\\.|[^"\\])*"|'[^']*'|\\.`
/** The number of a descriptor: digits that are a word of their own, up to the sign. */
const DESCRIPTOR = String.raw`(?:(?<=^|[\s|&;<>()])\d+)?`
/** `2>&1`, alone between blanks or separators: its ampersand ends no command. */
const DUPLICATION = new RegExp(String.raw`${QUOTED}|(?<=^|[\s|&;])\d*[<>]&(?:\d+|-)(?=$|[\s|&;])`, 'gs')
/** Any redirection with its file; which of them a shell knows differs, so each is taken for one. */
const REDIRECTION = new RegExp(
  String.raw`${QUOTED}|${DESCRIPTOR}(?:&>>?|<<<|<<-?|<>|>>|>\||[<>]&?)[ \t]*(?:${QUOTED}|[^\s|&;<>()"'\\])*`,
  'gs',
)
/** An ampersand that shells do not read alike. */
const UNCLEAR = /[<>]&|&>/
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/
/** Operators by which a shell starts another command. */
const OF_SHELL: ReadonlySet<string> = new Set(SHELL_WORDS)

/** The verdict of the rules about the text of `-c`. */
export function decideScript(input: {
  readonly shell: Shell
  readonly script: string
  /** The operator lets the text use shell syntax. */
  readonly allowShellSyntax: boolean
}): Verdict {
  const { shell, script, allowShellSyntax } = input
  const hidden = hiddenCharacter(script, allowShellSyntax ? '\n\t' : '')
  if (hidden !== undefined) return blocked(`the text of -c holds ${hidden}, which does not show as what it is`)
  if (SYNTAX.test(script)) {
    const verdict = decideParts(shell, script)
    if (allowShellSyntax) return verdict
    return blockedSyntax(`the text of -c holds the shell sign ${quoteText(SYNTAX.exec(script)?.[0] ?? '')}`, verdict)
  }
  return decideSimple({ shell, text: script, allowShellSyntax })
}

/** @param allowed what the rules would say where the text may use shell syntax */
function blockedSyntax(why: string, allowed: Verdict): Verdict {
  return { ...blocked(why), ...(allowed.decision === 'block' ? {} : { needsShellSyntax: true }) }
}

function decideSimple(input: {
  readonly shell: Shell
  readonly text: string
  readonly allowShellSyntax: boolean
}): Verdict {
  const division = divide(input.text)
  if (!division.ok) return blocked(`the text of -c: expected ${division.expected}, got ${division.got}`)
  const [first = ''] = division.tokens
  if (first === '') return blocked('the text of -c names no command')
  const verdict = decide(input.shell, division.tokens)
  if (!ASSIGNMENT.test(first) && !OF_SHELL.has(first)) return verdict
  const why = `begins with the shell's own ${quoteText(first)}`
  if (!input.allowShellSyntax) return blockedSyntax(`the text of -c ${why}`, verdict)
  return verdict.decision === 'run' && verdict.by === DEFAULT ? question(`${why}, which hides a command`) : verdict
}

const question = (why: string): Verdict => ({ decision: 'ask', by: 'shell syntax', why: `the text of -c ${why}` })

const STRICTNESS: Readonly<Record<Decision, number>> = { run: 0, ask: 1, block: 2 }

const QUOTED_ONLY = new RegExp(QUOTED, 'gs')

const without = (text: string, redirections: RegExp): string =>
  text.replaceAll(redirections, (found) => (/^["'\\]/.test(found) ? found : ' '))

const partsOf = (text: string): readonly string[] =>
  text
    .split(/[|&;\n\r]+/)
    .map((part) => part.trim())
    .filter((part) => part !== '')

/**
 * Every command of a list or pipe is decided alone, with its redirections and without, and the strictest answer counts; what no rule can see
 * makes it a question.
 */
function decideParts(shell: Shell, script: string): Verdict {
  const known = without(script, DUPLICATION)
  const asWritten = partsOf(known)
  const bare = [...partsOf(without(known, REDIRECTION)), ...asWritten.map((part) => without(part, REDIRECTION).trim())]
  const texts = [...new Set([...asWritten, ...bare.filter((text) => text !== '')])]
  const verdicts = texts.map((text) => decideSimple({ shell, text, allowShellSyntax: true }))
  const [strictest] = [...verdicts, ...questionsAbout(script, known)].sort(
    (a, b) => STRICTNESS[b.decision] - STRICTNESS[a.decision],
  )
  return strictest ?? blocked('the text of -c names no command')
}

/** @param known the text without the redirections that all shells read alike */
function questionsAbout(script: string, known: string): readonly Verdict[] {
  return [
    ...(SUBSTITUTION.test(script)
      ? [question('holds a substitution or a group, whose commands no rule has seen')]
      : []),
    ...(UNCLEAR.test(known.replaceAll(QUOTED_ONLY, ''))
      ? [question('holds a redirection that shells read in different ways')]
      : []),
  ]
}

function blocked(why: string): Verdict {
  return { decision: 'block', by: 'policy', why }
}

/** The earlier rule that takes every command of a later one; undefined when the later one can be reached. */
export function shadowOf(rules: readonly Rule[], at: number): Rule | undefined {
  const rule = rules[at]
  return rule === undefined ? undefined : rules.slice(0, at).find((earlier) => covers(earlier, rule))
}

function covers(earlier: Rule, later: Rule): boolean {
  const begins = earlier.tokens.every((token, index) => token === later.tokens[index])
  if (earlier.match === 'prefix') return begins
  return begins && later.match === 'exact' && later.tokens.length === earlier.tokens.length
}
