/** Chooses the rung that enforces each limit of the policy on the chosen backend. Pure. */
import type { HeldBy } from '../host/facts.ts'
import { IO_RATES } from '../policy/needs.ts'
import type { Policy, Resources } from '../policy/policy.ts'
import type { Need } from '../policy/values.ts'
import type { Offers } from './offers.ts'

/** A limit of the plan, and what holds it. */
export interface PlannedLimit {
  readonly max: number
  readonly by: HeldBy
}

/** Per second and disk; what is absent has no limit. */
export interface PlannedRates extends Readonly<Partial<Record<(typeof IO_RATES)[number], number>>> {
  readonly by: HeldBy
}

export interface PlannedLimits {
  readonly memory?: PlannedLimit
  readonly swap?: PlannedLimit
  readonly cpus?: PlannedLimit
  readonly pids?: PlannedLimit
  readonly io?: PlannedRates
  readonly timeoutMs?: number
  readonly cpuTimeMs?: number
  /** By how many bytes writable zones may grow; absent where there is none. */
  readonly rwSize?: number
  readonly output?: number
}

export interface LimitInputs {
  readonly policy: Policy
  readonly offers: Offers
  /** Processors that this process may use. */
  readonly cpus: number
  readonly hasWritableZone: boolean
}

export interface Limits {
  readonly limits: PlannedLimits
  readonly warnings: readonly string[]
}

const RUNGS: readonly HeldBy[] = ['cgroup2', 'watchdog', 'rlimit', 'affinity', 'docker', 'wasm']

/** The rung for a limit that is asked for; `none` when nothing here holds it. */
export function rungFor(need: Need, offers: Offers, resources: Resources): HeldBy {
  const holder = RUNGS.find((rung) => rung === offers.gives[need]) ?? 'none'
  // Affinity counts whole processors, and a WASI module is one thread: neither can be held to less than one.
  const isWhole = holder === 'affinity' || holder === 'wasm'
  return need === 'cpus-limit' && isWhole && (resources.cpus ?? 1) < 1 ? 'none' : holder
}

/** Every limit with the rung that holds it, and one line for each that is held differently than asked. */
export function plannedLimits({ policy: { resources }, offers, cpus, hasWritableZone }: LimitInputs): Limits {
  const { memory, swap, pids, timeout, cpuTime, rwSize, output } = resources
  const held = (need: Need, max: number): PlannedLimit => ({ max, by: rungFor(need, offers, resources) })
  const limits: PlannedLimits = {
    ...(memory === null ? {} : { memory: held('memory-limit', memory), swap: held('memory-limit', swap) }),
    ...(resources.cpus === null ? {} : { cpus: wholeProcessors(held('cpus-limit', resources.cpus)) }),
    ...(pids === null ? {} : { pids: held('pids-limit', pids) }),
    ...plannedRates(resources, rungFor('io-limit', offers, resources)),
    ...(timeout === null ? {} : { timeoutMs: timeout }),
    ...(cpuTime === null ? {} : { cpuTimeMs: cpuTime }),
    ...(rwSize === null || !hasWritableZone ? {} : { rwSize }),
    ...(output === null ? {} : { output }),
  }
  return { limits, warnings: [...unheld(limits), ...rounded(limits, resources, cpus)] }
}

function plannedRates(resources: Resources, by: HeldBy): { readonly io?: PlannedRates } {
  const requested = IO_RATES.flatMap((rate) => (resources[rate] === null ? [] : [[rate, resources[rate]] as const]))
  return requested.length === 0 ? {} : { io: { ...Object.fromEntries(requested), by } }
}

/** Rounded down: a limit may be held tighter than asked, never looser. */
function wholeProcessors({ max, by }: PlannedLimit): PlannedLimit {
  return { max: by === 'affinity' ? Math.floor(max) : max, by }
}

function unheld(limits: PlannedLimits): readonly string[] {
  const named = [
    ['memory', limits.memory],
    ['cpus', limits.cpus],
    ['pids', limits.pids],
    ['io', limits.io],
  ] as const
  return named
    .filter(([, limit]) => limit?.by === 'none')
    .map(([name]) => `nothing on this host holds the limit of ${name}; it runs without (--best-effort)`)
}

function rounded({ cpus: planned }: PlannedLimits, { cpus: requested }: Resources, cpus: number): readonly string[] {
  if (
    planned === undefined ||
    requested === null ||
    planned.by !== 'affinity' ||
    planned.max === requested ||
    requested >= cpus
  )
    return []
  return [
    `cpus ${requested} is held as ${planned.max}: without the cgroup's cpu controller only whole processors can be counted`,
  ]
}
