/** A plan for people: what the command will see and what holds it, on one screen. Pure. */
import { posix } from 'node:path'
import type { PlannedLimits } from '../plan/limits.ts'
import type { Plan, PlannedVariable, PlannedZone } from '../plan/plan.ts'
import { protectedSystems } from '../plan/protected-paths.ts'
import type { Policy } from '../policy/policy.ts'
import { isWritable, type Origin } from '../policy/values.ts'
import { formatDuration, formatSize } from '../text/units.ts'
import { wrapped } from '../text/wrapped.ts'
import { table } from './table.ts'
import { neutralise } from './text.ts'

export interface PlanReport {
  readonly plan: Plan
  readonly policy: Policy
  readonly command: readonly string[]
  /** Backends that `auto` would have taken before, each with what it lacks. */
  readonly passedOver: readonly string[]
  /** The runs it is kept for. */
  readonly served?: string
}

const INDENT = 11
const LINE = { width: 80 - INDENT }

export function planText(report: PlanReport): string {
  const { plan, command, served } = report
  const sections: readonly (readonly [string, readonly string[]])[] = [
    ['command', [`${command.map(neutralise).join(' ')}   in ${plan.workdir}`]],
    ['profile', [plan.profile]],
    ['backend', backendLines(report)],
    ['files', fileLines(plan)],
    [
      'devices',
      (plan.devices ?? []).map(
        ({ target, source, from }) => `${target}${source === target ? '' : ` is ${source}`}   (${from})`,
      ),
    ],
    ['network', networkLines(report)],
    ['limits', limitLines(report)],
    ['variables', variableLines(plan.env)],
    ['protected', protectedLines(plan.zones)],
    ['hidden', hiddenLines(plan.zones)],
    ['filter', [`seccomp ${plan.seccomp.profile}`]],
    ['plan', served === undefined ? [] : [served]],
    ['warnings', plan.warnings],
  ]
  return sections.flatMap(([name, lines]) => (lines.length === 0 ? [] : section(name, lines))).join('')
}

const section = (name: string, lines: readonly string[]): readonly string[] =>
  lines.map((line, at) => `${(at === 0 ? name : '').padEnd(INDENT)}${neutralise(line)}`.trimEnd().concat('\n'))

/* ---- who said it ---- */

/** `--memory`, `default.yaml:8`; empty for an unset key. */
function setBy({ origins }: Policy, key: string): string {
  const origin = origins[key]?.at(-1)
  return origin === undefined ? '' : originName(origin)
}

const originName = ({ layer, source }: Origin): string => (source === layer ? layer : posix.basename(source))

/* ---- sections ---- */

function backendLines({ plan, policy, passedOver }: PlanReport): readonly string[] {
  const { backend, engine, image, runtime } = plan
  const names = [
    backend,
    ...(engine === undefined ? [] : [`engine ${engine}`]),
    ...(image === undefined ? [] : [`image ${image}`]),
    ...(runtime === undefined ? [] : [`runtime ${runtime}`]),
  ]
  const isChosen = policy.backend === 'auto'
  const why = isChosen ? 'the first that holds all of it' : setBy(policy, 'backend')
  const byEngine = engine !== undefined && policy.engine !== 'auto' ? setBy(policy, 'engine') : ''
  return [
    `${names.join(', ')}   (${[why, ...(byEngine === '' || byEngine === why ? [] : [byEngine])].join(', ')})`,
    ...passedOver.map((lack) => `not ${lack}`),
  ]
}

function fileLines({ zones, scratch, system, layer }: Plan): readonly string[] {
  const rows = [
    ...zones.map(({ target, mode, source, from }) => [target, mode, source, `(${from})`]),
    ...scratch.map(({ target, size }) => [target, 'tmpfs', formatSize(size), '']),
  ]
  const trees = system.flatMap((entry) =>
    entry.op === 'bind' && !entry.target.startsWith('/etc/') ? [entry.target] : [],
  )
  const etc = system.filter(({ op, target }) => op !== 'directory' && target.startsWith('/etc/')).length
  const shown = [...trees, ...(etc === 0 ? [] : [`${etc} names of /etc`])]
  return [
    ...table([['INSIDE', 'MODE', 'ON THIS HOST'], ...rows]),
    ...(shown.length === 0 ? [] : [`and read-only ${shown.join(', ')}`]),
    ...(layer === undefined ? [] : [`changes to cow zones: ${layer.upper}, kept for ${formatDuration(layer.keepMs)}`]),
  ]
}

function networkLines({ plan: { network }, policy }: PlanReport): readonly string[] {
  const { mode, record, by, allow, deny, local = [], publish = [], hosts = {}, closedBy, credentials = [] } = network
  const { upstream } = network
  const said = setBy(policy, 'network.mode') || setBy(policy, 'network')
  const lists: readonly (readonly [string, readonly string[]])[] = [
    ['allowed', allow],
    ['denied', deny],
    ["this host's ports", local.map(String)],
    ['published', publish],
    ['names', Object.entries(hosts).map(([name, address]) => `${name} is ${address}`)],
    ['headers added', credentials.map(({ host, header, from }) => `${host} ${header} (${from})`)],
    ['by the proxy', upstream === undefined ? [] : [`${upstream.host}:${upstream.port}`]],
    ['closed by', closedBy === undefined ? [] : [closedBy]],
  ]
  return [
    [
      mode,
      ...(record === true ? ['every public name is allowed and noted'] : []),
      ...(by === undefined ? [] : [`by ${by}`]),
    ]
      .join(', ')
      .concat(said === '' ? '' : `   (${said})`),
    ...lists.flatMap(([name, values]) => (values.length === 0 ? [] : wrapped([`${name}:`, ...values], LINE))),
  ]
}

/** Each with the key that says it. */
function limitRows(
  limits: PlannedLimits,
): readonly (readonly [name: string, key: string, value: string, by: string])[] {
  const { memory, swap, cpus, pids, io, timeoutMs, cpuTimeMs, rwSize, output } = limits
  const held = (limit: { readonly by: string } | undefined) => (limit === undefined ? '' : `by ${limit.by}`)
  const size = (bytes: number | undefined) => (bytes === undefined ? 'none' : formatSize(bytes))
  const time = (ms: number | undefined) => (ms === undefined ? 'none' : formatDuration(ms))
  const rates = (['readBps', 'writeBps', 'readIops', 'writeIops'] as const).flatMap((rate) => {
    const most = io?.[rate]
    return most === undefined
      ? []
      : [[rate, `resources.${rate}`, `${rate.endsWith('Bps') ? size(most) : most}/s`, held(io)] as const]
  })
  return [
    ['memory', 'resources.memory', size(memory?.max), held(memory)],
    ...(swap === undefined || swap.max === 0 ? [] : [['swap', 'resources.swap', size(swap.max), held(swap)] as const]),
    ['cores', 'resources.cpus', String(cpus?.max ?? 'all'), held(cpus)],
    ['processes', 'resources.pids', String(pids?.max ?? 'none'), held(pids)],
    ['wall time', 'resources.timeout', time(timeoutMs), ''],
    ...(cpuTimeMs === undefined ? [] : [['cpu time', 'resources.cpuTime', time(cpuTimeMs), ''] as const]),
    ...(rwSize === undefined ? [] : [['zones grow by', 'resources.rwSize', size(rwSize), ''] as const]),
    ['output', 'resources.output', size(output), ''],
    ...rates,
  ]
}

const limitLines = ({ plan, policy }: PlanReport): readonly string[] =>
  table(limitRows(plan.limits).map(([name, key, value, by]) => [name, value, by, `(${setBy(policy, key)})`]))

const VARIABLES_FROM: readonly (readonly [readonly string[], PlannedVariable['from']])[] = [
  [[], 'built-in'],
  [['taken over:'], 'inherit'],
  [['set:'], 'set'],
]

function variableLines(env: readonly PlannedVariable[]): readonly string[] {
  return VARIABLES_FROM.flatMap(([head, from]) => {
    const names = env.filter((variable) => variable.from === from).map(({ name }) => name)
    return names.length === 0 ? [] : wrapped([...head, ...names], LINE)
  })
}

/** Names that the command cannot change in writable zones; a zone is a tree like any other, so most have the same names. */
function protectedLines(zones: readonly PlannedZone[]): readonly string[] {
  const writable = zones.filter(({ mode, sockets }) => isWritable(mode) && !sockets)
  return writable.flatMap(({ target, protect, git }) => {
    const repositories = git === undefined ? [] : protectedSystems(git).map(({ name }) => name)
    const names = [
      ...(repositories.length === 0 ? [] : [`${repositories.join(', ')} (configuration, hooks)`]),
      ...protect,
    ]
    return names.length === 0 ? [] : limited(wrapped([`in ${target}:`, ...names], LINE))
  })
}

/** Toolchains hide nothing: the patterns of the other zones are the same. */
function hiddenLines(zones: readonly PlannedZone[]): readonly string[] {
  const patterns = zones.find(({ hide }) => hide !== undefined)?.hide ?? []
  return wrapped(patterns, LINE)
}

const MOST_LINES = 3

/** All of it is in the JSON. */
const limited = (lines: readonly string[]): readonly string[] =>
  lines.length <= MOST_LINES ? lines : [...lines.slice(0, MOST_LINES), '... (all of them: --plan=json)']
