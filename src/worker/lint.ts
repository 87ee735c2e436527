/** Problems of a whole tree of workers and workshops, in addition to those of each file. Pure. */
import { didYouMean } from '../text/did-you-mean.ts'
import { quoteText } from '../text/units.ts'
import { locationText } from './problem.ts'
import { shadowOf } from './rules.ts'
import type { Requested, SourceLocation, Warning, Worker, Workshop } from './worker.ts'

export type FindingCode =
  | 'INVALID'
  | 'UNKNOWN_DELEGATE'
  | 'CYCLE'
  | 'UNKNOWN_WORKER'
  | 'ESCALATION'
  | 'UNREACHABLE_RULE'
  | Warning['code']

export interface CheckFinding {
  readonly severity: 'error' | 'warning'
  readonly code: FindingCode
  readonly file: string
  readonly line?: number
  readonly key: string
  /** One line, with the place. */
  readonly message: string
}

/** The result of one file. */
export interface CheckedFile {
  readonly file: string
  readonly kind: 'worker' | 'workshop' | 'profile' | 'unreadable'
  readonly name: string
  readonly ok: boolean
  /** One line: what the reader understood. */
  readonly summary: string
}

/** Names of agents that other programs bring along. */
const FOREIGN_AGENTS: readonly string[] = [
  'general-purpose',
  'Explore',
  'Plan',
  'claude-code-guide',
  'statusline-setup',
]

export function finding(input: {
  readonly severity: CheckFinding['severity']
  readonly code: FindingCode
  readonly at: SourceLocation
  readonly message: string
}): CheckFinding {
  const { severity, code, at, message } = input
  const { file, line, key } = at
  return {
    severity,
    code,
    file,
    key,
    ...(line === undefined ? {} : { line }),
    message: `${locationText(at)} ${message}`,
  }
}

export function warningFinding(warning: Warning): CheckFinding {
  return finding({ severity: 'warning', code: warning.code, at: warning, message: warning.message })
}

/** Unknown delegates, circles of delegation, rules that nothing reaches, workshops that name no worker. */
export function checkTogether(workers: readonly Worker[], workshops: readonly Workshop[]): readonly CheckFinding[] {
  const names = workers.map(({ name }) => name)
  return [
    ...workers.flatMap((worker) => unknownDelegates(worker, names)),
    ...cycles(workers),
    ...workers.flatMap(unreachableRules),
    ...workshops.flatMap((workshop) => unknownWorkers(workshop, names)),
  ]
}

function unknownDelegates({ delegates }: Worker, names: readonly string[]): readonly CheckFinding[] {
  const others = delegates.filter(({ value }) => value !== '*' && !FOREIGN_AGENTS.includes(value))
  return unknownNames('UNKNOWN_DELEGATE', others, names)
}

const unknownWorkers = ({ workers = [] }: Workshop, names: readonly string[]): readonly CheckFinding[] =>
  unknownNames(
    'UNKNOWN_WORKER',
    workers.map(({ name, from }) => ({ value: name, from })),
    names,
  )

function unknownNames(
  code: FindingCode,
  wanted: readonly Requested<string>[],
  names: readonly string[],
): readonly CheckFinding[] {
  return wanted
    .filter(({ value }) => !names.includes(value))
    .map(({ value, from }) => {
      const message = `no worker is called ${quoteText(value)}.${didYouMean(value, names)}`
      return finding({ severity: 'error', code, at: from, message })
    })
}

/** Each circle once, reported where it closes. */
function cycles(workers: readonly Worker[]): readonly CheckFinding[] {
  const byName = new Map(workers.map((worker) => [worker.name, worker]))
  const done = new Set<string>()
  const found: CheckFinding[] = []
  const visit = (name: string, chain: readonly string[]): void => {
    for (const { value, from } of byName.get(name)?.delegates ?? []) {
      const at = chain.indexOf(value)
      if (at >= 0) {
        const circle = [...chain.slice(at), value].join(' -> ')
        found.push(
          finding({ severity: 'error', code: 'CYCLE', at: from, message: `workers delegate in a circle: ${circle}.` }),
        )
      } else if (!done.has(value)) visit(value, [...chain, value])
    }
    done.add(name)
  }
  for (const { name } of workers) if (!done.has(name)) visit(name, [name])
  return found
}

function unreachableRules({ shell }: Worker): readonly CheckFinding[] {
  const rules = shell?.rules ?? []
  return rules.flatMap(({ pattern, from }, index) => {
    const shadow = shadowOf(rules, index)
    if (shadow === undefined) return []
    const message = `rule ${quoteText(pattern)} is never reached: ${quoteText(shadow.pattern)} above it takes the same commands.`
    return [finding({ severity: 'warning', code: 'UNREACHABLE_RULE', at: from, message })]
  })
}

/** Summary of a worker in one line: `1 zone (notes rw), no shell, delegates to pitch_evaluator`. */
export function summaryOf({ sandbox, shell, delegates, tools, toolModel }: Worker): string {
  const zones = (sandbox?.zones ?? []).map(
    ({ name, mode, request }) => `${name} ${mode}${request === true ? ' requested' : ''}`,
  )
  return [
    zonesInWords(zones),
    ...(sandbox?.restrict === undefined ? [] : [`restricted to ${sandbox.restrict.value}`]),
    ...(tools === undefined ? [] : [plural(tools.length, 'tool')]),
    ...(toolModel === 'inherit' ? ['all tools (none are listed)'] : []),
    shell === null ? 'no shell' : `${plural(shell.rules.length, 'rule')}, else ${shell.default?.value ?? 'block'}`,
    ...(delegates.length === 0 ? [] : [`delegates to ${delegates.map(({ value }) => value).join(', ')}`]),
  ].join('; ')
}

export function workshopSummary({ sandbox, workers }: Workshop): string {
  const zones = (sandbox?.zones ?? []).map(({ name, mode }) => `${name} ${mode}`)
  return [
    zonesInWords(zones),
    workers === undefined ? 'any worker' : `workers: ${workers.map(({ name }) => name).join(', ')}`,
  ].join('; ')
}

function zonesInWords(zones: readonly string[]): string {
  return zones.length === 0 ? 'no zones' : `${plural(zones.length, 'zone')} (${zones.join(', ')})`
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
