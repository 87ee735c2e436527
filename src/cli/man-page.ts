/** The manual page, from the declarations: docs/reference/llm-do-exec.1.md, and what man(1) shows. Pure. */
import { EXPLAINED_OPTIONS, type ExplainedOption } from '../policy/option-help.ts'
import { OPTION_GROUPS } from '../policy/options.ts'
import { OWN_OPTIONS } from './exec-arguments.ts'
import { type Block, markdownPage, marked, roffPage } from './man-formats.ts'
import { DECLARED, JSON_FLAG, type SubcommandDeclaration, usageOf } from './subcommands.ts'

const EXIT_STATUSES: readonly (readonly [string, string])[] = [
  ['0-255', 'the exit code of the command'],
  ['124', 'timeout'],
  ['125', 'the sandbox failed or was refused, or the command line cannot be understood'],
  ['126', 'blocked by a rule, stopped at a protected path, or the command cannot be executed'],
  ['127', 'the command was not found'],
  ['128+N', 'signal N ended the command'],
  ['143, 130', 'cancelled by SIGTERM or SIGINT, unless the command exits on its own'],
  [
    '137',
    'a limit (memory, processor time, copy-on-write changes), signal 9, or the end of the command was lost: it may have run',
  ],
]

function optionEntry(option: ExplainedOption): Block {
  const { name, argument, isArgumentOptional, help, unit, standard, repeats } = option
  const value = argument === undefined ? '' : isArgumentOptional ? `[=${argument}]` : ` ${argument}`
  const details = [
    repeats ? 'Repeatable.' : '',
    unit === undefined || argument === undefined || unit.includes('mapping') ? '' : `Value: ${unit}.`,
    standard === undefined || standard === '[]' || standard === 'false' ? '' : `Default: ${standard}.`,
  ]
  return entry(`--${name}`, value, [help, ...details].filter((part) => part !== '').join(' '))
}

/** A subcommand with actions is one entry for each of them. */
function subcommandEntries(before: string, declaration: SubcommandDeclaration): readonly Block[] {
  const { name, help, flags = [], actions = [], isActionOptional } = declaration
  const path = `${before} ${name}`
  const own = actions.length > 0 && isActionOptional !== true ? [] : [{ ...declaration, actions: [] }]
  const details = flags.filter((flag) => flag !== JSON_FLAG).map((flag) => `--${flag.name}: ${flag.help}`)
  return [
    ...own.map((one) => entry(path, ` ${usageOf(one)}`.trimEnd(), [help, ...details].join(' '))),
    ...actions.flatMap((action) => subcommandEntries(path, action)),
  ]
}

const section = (title: string): Block => ({ kind: 'section', title })
const paragraph = (...lines: readonly string[]): Block => ({ kind: 'paragraph', lines: lines.map(marked) })

/** @param bold the name, for the eye to find it */
const entry = (bold: string, rest: string, text: string): Block => ({
  kind: 'entry',
  term: [
    { face: 'bold', text: bold },
    { face: 'roman', text: rest },
  ],
  text,
})

const BLOCKS: readonly Block[] = [
  section('NAME'),
  paragraph('llm-do-exec, llm-do - run one command in a sandbox'),
  section('SYNOPSIS'),
  paragraph('**llm-do exec** [*options*] -- *COMMAND* [*ARG*...]'),
  paragraph("**llm-do exec** [*options*] -c '*SCRIPT*' [*NAME* [*ARG*...]]"),
  paragraph('**llm-do-exec** is the same as **llm-do exec**.'),
  section('DESCRIPTION'),
  paragraph(
    'Runs COMMAND in a sandbox with an empty root. Only the mounted zones, the system directories and a few files of /etc exist inside.',
    'stdin, stdout, stderr and the exit status pass through unchanged. Messages of llm-do-exec go to stderr and begin with "llm-do: ".',
    'Options end at -- or at the first word that is not an option. Everything after that belongs to the command.',
  ),
  paragraph(
    '**llm-do-exec** works wherever a program accepts a shell and starts it as $SHELL -lc SCRIPT: an agent, make (SHELL=), npm (script-shell).',
    'Options of a shell with a c (-c, -ec, -l -c, -euo pipefail -c), and all words after them, mean what they mean to a shell:',
    'the word after SCRIPT is its $0, the next ones are $1 and so on, -- too. Only options of llm-do-exec may follow SCRIPT directly.',
    'A file runs in the same way after options with e, l or x (-e ./build.sh, -x ./build.sh). Without them it is a command.',
    '/bin/sh runs the script. If /bin/bash exists, it runs scripts with -l, -o or options that only bash supports.',
    'A login shell reads no profile: /etc/profile does not exist inside, and the home directory is empty.',
  ),
  section('OPTIONS'),
  paragraph(
    'An option of docker, bwrap, firejail, deno or srt is refused, with the same command line in options of **llm-do exec**.',
    'At a terminal (stdin and stderr), a run has a timeout only if an option, a variable or a profile other than default sets one.',
  ),
  paragraph(
    'Each option has a variable: **LLM_DO_EXEC_** and its name, as in LLM_DO_EXEC_ALLOW_HOST. An option wins over its variable, and a variable over the profile. Sizes are 1024-based (512m, 2G, 512MiB); times have a unit (500ms, 30s, 5m).',
    'In a variable, a repeatable option takes one value per line.',
  ),
  ...OWN_OPTIONS.map((option) => entry(option.flags, 'argument' in option ? ` ${option.argument}` : '', option.help)),
  ...OPTION_GROUPS.flatMap((group): readonly Block[] => [
    { kind: 'subsection', title: group },
    ...EXPLAINED_OPTIONS.filter((option) => option.group === group).map(optionEntry),
  ]),
  section('OTHER COMMANDS'),
  paragraph('With --json, a command prints JSON.'),
  ...DECLARED.filter(({ name }) => name !== 'exec').flatMap((declaration) => subcommandEntries('llm-do', declaration)),
  paragraph('Any other first word is refused.'),
  section('EXIT STATUS'),
  ...EXIT_STATUSES.map(([status, meaning]): Block => ({ kind: 'entry', term: status, text: meaning })),
  paragraph('What these leave open (exit code 137, or killed?) is exact in the result of --json.'),
  section('EXAMPLES'),
  {
    kind: 'example',
    lines: [
      'llm-do exec -- ls -l',
      'llm-do exec --rw . --timeout 5m --json -- make test',
      'llm-do exec --plan --why network.mode -- true',
    ],
  },
  section('SEE ALSO'),
  paragraph('bwrap(1), timeout(1), docs/reference/profiles.md, docs/reference/result.md, docs/reference/errors.md'),
]

const ORIGIN =
  'Generated from the declarations in src/policy/options.ts and src/cli/subcommands.ts: make golden rewrites it.'

export const manualMarkdown = (): string => markdownPage('llm-do-exec', BLOCKS, ORIGIN)

/** @param date of the release, as YYYY-MM-DD */
export const manualRoff = (release: { readonly version: string; readonly date: string }): string =>
  roffPage('llm-do-exec', BLOCKS, release)
