// Writes native/lib/contract.h and src/contract.ts from native/contract.yaml; the names of the options, which the header has, too, are
// those of src/policy/options.ts.
//
//   contract           write both
//   contract --check   say which is stale, and fail if one is
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { loadSources } from './load-sources.mjs'

const ROOT = join(import.meta.dirname, '..')
const SOURCE = 'native/contract.yaml'

/** @param {string} name `cpu-time` or `waitStatus` -> `CPU_TIME`, `WAIT_STATUS` */
const upper = (name) =>
  name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase()

const quote = (value) => (typeof value === 'string' ? JSON.stringify(value) : String(value))
const comment = (text) => (text === undefined || text === '' ? '' : ` /* ${text} */`)
const remark = ({ words, reader, about }) =>
  [words.join(' '), `read by ${reader}`, about].filter((part) => part !== undefined && part !== '').join('; ')

/** An enum whose members have numbers of the contract, or follow each other. */
function enumeration(type, prefix, names) {
  const members = names.map(({ name, value, about }) => {
    const set = value === undefined ? '' : ` = ${value}`
    return `  ${prefix}${upper(name)}${set},${comment(about)}`
  })
  return [`enum ${type} {`, ...members, '};', '']
}

const table = (macro, prefix, names, more = () => '') => [
  `#define ${macro}(ROW) \\`,
  `${names.map(({ name, about }) => `  ROW(${prefix}${upper(name)}, ${quote(name)}${more(name)})${comment(about)}`).join(' \\\n')}`,
  '',
]

/** The enum of a table: its members, from 0 on, and their number. */
const membersOf = (type, macro, last) => [
  `#define ROW(member, ...) member,`,
  `enum ${type} { ${macro}(ROW) ${last} };`,
  '#undef ROW',
  '',
]

const named = (names) => names.map((name) => ({ name }))

const words = (macro, values) => `#define ${macro} ${values.map(quote).join(', ')}`

/** In the place of an errno: a missing interpreter, which has the same one as a missing program. */
const failureTable = (failures) => [
  '#define EXEC_INTERPRETER (-1)',
  '#define EXEC_FAILURE_TABLE(ROW) \\',
  Object.entries(failures)
    .map(
      ([name, row]) =>
        `  ROW(${name === 'interpreter' ? 'EXEC_INTERPRETER' : name}, ${[row.code, row.what, row.hint].map(quote).join(', ')})`,
    )
    .join(' \\\n'),
  '',
]

/** @param options the names of our options, by whether their value is the next word */
export function header(contract, options) {
  const { verbs, frames, reasons, status, guardStatus, netVerdicts, observations, key, keyVariables, constants } =
    contract
  const verbNames = Object.keys(verbs)
  const lines = [
    `/* Made from ${SOURCE} by scripts/contract.mjs: change it there. */`,
    '#pragma once',
    '',
    ...Object.entries(constants).map(([name, { value, about }]) => `#define ${name} ${quote(value)}${comment(about)}`),
    '',
    '/* Verbs of a launch file entry: ROW(verb, name, number of words) */',
    ...table(
      'VERB_TABLE',
      'V_',
      verbNames.map((name) => ({ name, about: remark(verbs[name]) })),
      (name) => `, ${verbs[name].words.length}`,
    ),
    ...membersOf('verb', 'VERB_TABLE', 'VERBS'),
    `#define ENTRY_WORDS_MAX ${Math.max(...verbNames.map((name) => verbs[name].words.length))}`,
    '',
    '/* Kinds of frame. */',
    ...enumeration(
      'frame_kind',
      'FRAME_',
      Object.entries(frames).map(([name, { kind, about }]) => ({ name, value: kind, about })),
    ),
    '/* How a run ended. */',
    ...table('REASON_TABLE', 'REASON_', named(reasons)),
    ...membersOf('reason', 'REASON_TABLE', 'REASONS'),
    '/* Why the command was not executed: ROW(errno, code of the error, words, hint) */',
    ...failureTable(contract.execFailures),
    '/* Signals by number, from 1 on. */',
    words('SIGNAL_NAMES', contract.signals),
    '/* No message names these. */',
    `#define QUIET_SIGNALS ${contract.quietSignals.join(', ')}`,
    '/* Results of the attempts to reach a host. */',
    ...enumeration(
      'net_verdict',
      'NET_',
      Object.entries(netVerdicts).map(([name, { value, about }]) => ({ name, value, about })),
    ),
    ...table('NET_VERDICT_TABLE', 'NET_', named(Object.keys(netVerdicts))),
    '/* Kinds of refusal. */',
    ...enumeration(
      'observation',
      'OBSERVED_',
      Object.entries(observations).map(([name, { value, about }]) => ({ name, value, about })),
    ),
    ...table('OBSERVATION_TABLE', 'OBSERVED_', named(Object.keys(observations))),
    '/* Keys of the status line. */',
    ...Object.keys({ ...status, ...guardStatus }).map((name) => `#define STATUS_${upper(name)} ${quote(name)}`),
    '',
    '/* The first words of a key: who calls, then where. */',
    ...enumeration('key_word', 'KEY_', named([...key.caller, ...key.place, 'words'])),
    `#define KEY_CALLER_WORDS ${key.caller.length}`,
    words('KEY_VARIABLES', keyVariables),
    '/* One of them is in every path of a toolchain. */',
    words('TOOLCHAIN_WORDS', contract.toolchainWords),
    '/* Operators by which a shell starts another command. */',
    words('SHELL_WORDS', contract.shellWords),
    '/* Options of bash, before a script; none is one of our options. */',
    words('BASH_OPTIONS', contract.bashOptions),
    '/* Options whose value is SRC[:TARGET]. */',
    words('PLACE_OPTIONS', contract.placeOptions),
    '/* Our options whose value is the next word, unless it is in the same. */',
    words('OPTIONS_BEFORE_VALUE', options.beforeValue),
    '/* Options without a value, or with one in the same word. */',
    words('OPTIONS_ALONE', options.alone),
  ]
  return `${lines.join('\n')}\n`
}

const TS_TYPES = {
  reason: 'Reason',
  number: 'number',
  text: 'string',
  texts: 'readonly string[]',
  boolean: 'boolean',
  attempts: 'readonly Attempt[]',
  hosts: 'readonly ReachedHost[]',
  observations: 'readonly Observed[]',
}

const tsQuote = (value) => (typeof value === 'string' ? `'${value}'` : String(value))
const tsKey = (name) => (/^[a-z]\w*$/i.test(name) ? name : `'${name}'`)
const list = (name, values) => [
  `export const ${name} = [`,
  ...values.map((value) => `  ${tsQuote(value)},`),
  '] as const',
]
const mapping = (name, pairs) => [
  `export const ${name} = {`,
  ...pairs.flatMap(([key, value, about]) => [
    ...(about === undefined || about === '' ? [] : [`  /** ${about} */`]),
    `  ${tsKey(key)}: ${tsQuote(value)},`,
  ]),
  '} as const',
]

export function module(contract) {
  const { verbs, frames, reasons, status, guardStatus, netVerdicts, observations, key, keyVariables, constants } =
    contract
  const fields = (keys, mark) =>
    Object.entries(keys).map(([name, type]) => `  readonly ${name}${mark}: ${TS_TYPES[type]}`)
  const lines = [
    `/** The contract between the TypeScript and the C part. Made from ${SOURCE} by scripts/contract.mjs: change it there. Pure. */`,
    '',
    ...Object.entries(constants)
      .filter(([, { reader }]) => reader !== 'C')
      .flatMap(([name, { value, about }]) => [
        ...(about === undefined ? [] : [`/** ${about} */`]),
        `export const ${name} = ${tsQuote(value)}`,
      ]),
    '',
    '/** Verb of a launch file entry -> number of its words, which native/contract.yaml describes. The writer adds `end`. */',
    ...mapping(
      'VERBS',
      Object.entries(verbs)
        .filter(([name]) => name !== 'end')
        .map(([name, verb]) => [name, verb.words.length]),
    ),
    '',
    '/** Kinds of frame. */',
    ...mapping(
      'FRAME',
      Object.entries(frames).map(([name, { kind, about }]) => [name, kind, about]),
    ),
    '',
    '/** How a run ended. */',
    ...list('REASONS', reasons),
    'export type Reason = (typeof REASONS)[number]',
    '',
    '/** Why the command was not executed: errno -> code of the error, words, hint. */',
    'export const EXEC_FAILURES = {',
    ...Object.entries(contract.execFailures).flatMap(([name, row]) => [
      `  ${name}: {`,
      ...['code', 'what', 'hint'].map((field) => `    ${field}: ${tsQuote(row[field])},`),
      '  },',
    ]),
    '} as const',
    '',
    '/** Signals of Linux by number, from 1 on. */',
    ...list('SIGNALS', contract.signals),
    '/** No message names these. */',
    ...list('QUIET_SIGNALS', contract.quietSignals),
    '',
    '/** A file that a command made at a protected path: where it is now, or that it is gone. */',
    'export interface Attempt {',
    '  readonly path: string',
    '  readonly aside: string',
    '  readonly gone: boolean',
    '}',
    '',
    '/** Results of the attempts to reach a host. */',
    ...list('NET_VERDICTS', Object.keys(netVerdicts)),
    'export type NetVerdict = (typeof NET_VERDICTS)[number]',
    '',
    '/** A host and port that a restricted command has reached, or tried to. */',
    'export interface ReachedHost {',
    '  readonly host: string',
    '  /** 0: only the name was asked for. */',
    '  readonly port: number',
    '  readonly verdict: NetVerdict',
    '  /** That decided, as the policy has it; of `not-public` the address; else empty. */',
    '  readonly rule: string',
    '  /** Or questions for the name, or attempts. */',
    '  readonly connections: number',
    '  /** As the command sees it. */',
    '  readonly bytesIn: number',
    '  readonly bytesOut: number',
    '}',
    '',
    '/** Kinds of refusal. */',
    `export type Observation = ${Object.keys(observations).map(tsQuote).join(' | ')}`,
    '',
    '/** One thing that was refused, and how often. */',
    'export interface Observed {',
    '  readonly what: Observation',
    '  /** Inside; or ADDRESS:PORT. */',
    '  readonly path: string',
    '  readonly count: number',
    '  /** Its number among all observed calls, the last time. */',
    '  readonly last: number',
    '}',
    '',
    "/** Launch's line of JSON. Times are CLOCK_MONOTONIC; -1 means that the counter is missing. */",
    'export interface LaunchStatus {',
    ...fields(status, ''),
    ...fields(guardStatus, '?'),
    '}',
    '',
    '/** Options whose value is SRC[:TARGET]. */',
    ...list('PLACE_OPTIONS', contract.placeOptions),
    '/** The first words of a key: who calls. */',
    ...list('KEY_CALLER', key.caller),
    '/** The words after them: where. */',
    ...list('KEY_PLACE', key.place),
    '/** Variables that decide about a plan. */',
    ...list('KEY_VARIABLES', keyVariables),
    '/** One of them is in every path of a toolchain. */',
    ...list('TOOLCHAIN_WORDS', contract.toolchainWords),
    '/** Operators by which a shell starts another command. */',
    ...list('SHELL_WORDS', contract.shellWords),
    '/** Options of bash, before a script; none is one of our options. */',
    ...list('BASH_OPTIONS', contract.bashOptions),
  ]
  return `${lines.join('\n')}\n`
}

export const OUTPUTS = { 'src/contract.ts': module, 'native/lib/contract.h': header }

/** @returns the names of the declared options, as `header` takes them */
export async function optionNames() {
  const { OPTIONS, takesNextWord } = await loadSources(ROOT, 'options', "export * from './policy/options.ts'")
  const names = (options) => options.map(({ name }) => `--${name}`).sort()
  return {
    beforeValue: names(OPTIONS.filter(takesNextWord)),
    alone: names(OPTIONS.filter((option) => !takesNextWord(option))),
  }
}

async function stale(contract) {
  const options = await optionNames()
  return Object.entries(OUTPUTS).flatMap(([file, write]) =>
    readFileSync(join(ROOT, file), 'utf8') === write(contract, options) ? [] : [file],
  )
}

/** In this order: what declares the options may use a constant that was not there before. */
async function writeAll(contract) {
  writeFileSync(join(ROOT, 'src/contract.ts'), module(contract))
  writeFileSync(join(ROOT, 'native/lib/contract.h'), header(contract, await optionNames()))
}

if (process.argv[1] === import.meta.filename) {
  const contract = parse(readFileSync(join(ROOT, SOURCE), 'utf8'))
  if (process.argv[2] === '--check') {
    const files = await stale(contract)
    if (files.length > 0) {
      console.error(`contract: ${files.join(' and ')} is not what ${SOURCE} and the options say (hint: make contract)`)
      process.exit(1)
    }
  } else await writeAll(contract)
}
