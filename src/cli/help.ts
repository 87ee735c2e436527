/** Help on one screen of 80 columns, from the declarations. Pure. */

import { EXPLAINED_OPTIONS, type ExplainedOption } from '../policy/option-help.ts'
import { OPTION_GROUPS } from '../policy/options.ts'
import { wrapped } from '../text/wrapped.ts'
import { OWN_OPTIONS } from './exec-arguments.ts'
import { DECLARED, type SubcommandDeclaration, usageOf, VERB_GROUPS } from './subcommands.ts'

const WIDTH = 80
/** Where the meaning begins. */
const COLUMN = 26
/** Column where it begins on a separate line. */
const INDENT = 12

/** `--memory SIZE`, `--json[=native|shell|task]`. */
function leftOf({ name, argument, isArgumentOptional }: ExplainedOption): string {
  if (argument === undefined) return `--${name}`
  return isArgumentOptional ? `--${name}[=${argument}]` : `--${name} ${argument}`
}

/** Up to where it goes into detail; the manual has all of it. */
const upTo = (text: string, end: RegExp) => (text.split(end)[0] ?? text).replace(/\.$/, '').trim()

/** Defaults that say nothing: a switch is off, a list is empty. */
const UNSAID = new Set([undefined, 'false', '[]'])

/** Forms of the meaning, the longest first. A meaning that only lists the values adds nothing to the argument. */
function meanings({ argument = '', help, standard }: ExplainedOption): readonly string[] {
  const goesThroughValues = argument.includes('|') && argument.split('|').includes(upTo(help, /:/))
  const clause = goesThroughValues ? '' : upTo(help, argument.includes('|') ? /[;:]| \(|\. / : /;| \(|\. /)
  const phrase = upTo(clause, /,/)
  const byDefault = UNSAID.has(standard) ? '' : ` (${standard})`
  return [`${clause}${byDefault}`, `${phrase}${byDefault}`, clause, phrase].map((text) => text.trim())
}

/** One line, or two when nothing else fits. */
function row(left: string, rights: readonly string[]): string {
  const start = `  ${left}`.padEnd(COLUMN - 2)
  const fitting = rights.find((right) => start.length + 2 + right.length <= WIDTH)
  return fitting === undefined ? `  ${left}\n${' '.repeat(INDENT)}${rights[0]}` : `${start}  ${fitting}`
}

function groupLines(group: string): readonly string[] {
  const options = EXPLAINED_OPTIONS.filter((option) => option.group === group)
  const rare = options.filter(({ isRare }) => isRare === true)
  const common = options.filter((option) => !rare.includes(option))
  return [
    `${group}:`,
    ...common.map((option) => row(leftOf(option), meanings(option))),
    ...(rare.length === 0
      ? []
      : wrapped(['  also', ...rare.map(({ name }) => `--${name}`)], { width: WIDTH, indent: '    ' })),
  ]
}

const ownLines = OWN_OPTIONS.map((option) =>
  row('argument' in option ? `${option.flags} ${option.argument}` : option.flags, [upTo(option.help, /\.$/)]),
)

/** `llm-do exec --help`. */
export function execUsage(): string {
  return [
    'Usage: llm-do exec [options] -- COMMAND [ARG...]     (also: llm-do-exec)',
    'Run a command in a Linux sandbox that sees only the files and hosts you allow.',
    ...OPTION_GROUPS.flatMap(groupLines),
    ...ownLines,
    'Sizes: 512m, 2G, 512MiB. Times: 500ms, 30s, 5m. In brackets: the default.',
    'Examples:',
    '  llm-do exec -- ls -l',
    '  llm-do exec --rw . --timeout 5m --json -- make test',
    'More: man llm-do-exec; docs/guide and docs/reference; llm-do doctor',
    '',
  ].join('\n')
}

/** `llm-do learn --help`. */
export const LEARN_USAGE = `Usage: llm-do learn [options of exec] -- COMMAND [ARG...] > PROFILE.yaml
Runs COMMAND again and again, watched and without a trace on the host, until it succeeds, and prints the smallest profile for it.
It is granted what it asks for, each directory and each host by name, but no place of credentials: only for a command that you trust.
Options are those of llm-do exec, --profile for what it starts from among them.
`

/** `llm-do --help`. */
export function programUsage(): string {
  return [
    'Usage: llm-do COMMAND',
    'Run commands in sandboxes that see only the files and hosts you allow.',
    ...VERB_GROUPS.flatMap((group) => [
      '',
      `${group}:`,
      ...DECLARED.filter((declaration) => declaration.group === group).map(verbRow),
    ]),
    '',
    'Examples:',
    '  llm-do exec -- ls -l',
    '  llm-do doctor',
    'More: llm-do COMMAND --help, man llm-do-exec',
    '',
  ].join('\n')
}

/** A usage that is longer than the column is left to the help of the verb. */
function verbRow(declaration: SubcommandDeclaration): string {
  const { name, help } = declaration
  const usage = `${name} ${usageOf(declaration, true)}`.trim()
  const isShort = usage.length <= COLUMN - 4
  return row(isShort ? usage : name, [upTo(help, /\.$/), upTo(help, / \(|;/), upTo(help, /,/)])
}
