/**
 * Limits as the kernel takes them: which file of the run's cgroup gets which word, and which numbers make no sense at all.
 * Files and formats: Linux, Documentation/admin-guide/cgroup-v2.rst.
 */

/** A limit of a plan, as far as cgroups care: the number and who holds it. */
interface Held {
  readonly max: number
  readonly by: string
}

export interface GroupLimits {
  /** Bytes. */
  readonly memory?: Held
  /** Bytes on top of memory; none when absent. */
  readonly swap?: Held
  readonly pids?: Held
  /** Cores. */
  readonly cpus?: Held
}

export type Controller = 'memory' | 'pids' | 'cpu'

/** One write into the run's cgroup, before anything runs in it. */
export interface GroupSetting {
  readonly file: string
  readonly value: string
  readonly controller: Controller
}

/** cpu.max period in microseconds, the kernel's default. */
const CPU_PERIOD_US = 100_000
/** Smallest quota the kernel takes in microseconds (min_cfs_quota_period, kernel/sched/core.c). */
const LEAST_CPU_QUOTA_US = 1_000

/** Every file to write, in order; limits that something else than `cgroup2` holds are not the cgroup's affair. */
export function groupSettings(limits: GroupLimits): readonly GroupSetting[] {
  const { memory, swap, pids, cpus } = limits
  return [
    ...(memory?.by === 'cgroup2' ? memorySettings(memory.max, swap?.max ?? 0) : []),
    ...(pids?.by === 'cgroup2' ? [setting('pids', 'pids.max', String(pids.max))] : []),
    ...(cpus?.by === 'cgroup2' ? [setting('cpu', 'cpu.max', cpuMax(cpus.max))] : []),
  ]
}

/** The controllers that the settings need, each once. */
export const controllersFor = (settings: readonly GroupSetting[]): readonly Controller[] => [
  ...new Set(settings.map(({ controller }) => controller)),
]

const setting = (controller: Controller, file: string, value: string): GroupSetting => ({ controller, file, value })

const memorySettings = (memory: number, swap: number): readonly GroupSetting[] => [
  setting('memory', 'memory.max', String(memory)),
  // Without it a run over its memory would just go on, slowly, in swap space that belongs to everybody.
  setting('memory', 'memory.swap.max', String(swap)),
  // All or nothing: a tree with one process shot out of it hangs or lies.
  setting('memory', 'memory.oom.group', '1'),
]

const cpuMax = (cpus: number): string =>
  `${Math.max(LEAST_CPU_QUOTA_US, Math.round(cpus * CPU_PERIOD_US))} ${CPU_PERIOD_US}`

interface Bounds {
  readonly flag: string
  readonly least: number
  readonly most: number
  readonly whole: boolean
  /** What the number counts, and why not less. */
  readonly unit: string
  readonly why: string
}

const MIB = 1024 ** 2

/** What the kernel takes and what the helpers themselves need. */
const BOUNDS = {
  memory: {
    flag: '--memory',
    least: 4 * MIB,
    most: Number.MAX_SAFE_INTEGER,
    whole: true,
    unit: 'bytes',
    why: 'the helpers need 4 MiB themselves',
  },
  swap: { flag: 'resources.swap', least: 0, most: Number.MAX_SAFE_INTEGER, whole: true, unit: 'bytes', why: '' },
  pids: {
    flag: '--pids',
    least: 3,
    // PID_MAX_LIMIT of linux/threads.h.
    most: 4_194_304,
    whole: true,
    unit: 'processes',
    why: 'the engine, PID 1 and the command are three',
  },
  cpus: {
    flag: '--cpus',
    least: LEAST_CPU_QUOTA_US / CPU_PERIOD_US,
    // CONFIG_NR_CPUS of the largest kernels.
    most: 8192,
    whole: false,
    unit: 'cores',
    why: 'the kernel hands out 1 ms of every 100 ms at least',
  },
} as const satisfies Record<keyof GroupLimits, Bounds>

/**
 * What is wrong with limits that came as numbers, one sentence each; empty when they can be held. Zero, negative, fractional,
 * endless and absurd numbers never reach the kernel, which would round some of them to "no limit".
 */
export function checkLimits(limits: { readonly [Name in keyof GroupLimits]?: number | null }): readonly string[] {
  return (Object.keys(BOUNDS) as (keyof GroupLimits)[]).flatMap((name) => {
    const value = limits[name]
    return value === undefined || value === null ? [] : checkLimit(BOUNDS[name], value)
  })
}

function checkLimit({ flag, least, most, whole, unit, why }: Bounds, value: number): readonly string[] {
  const fits = value >= least && value <= most && (!whole || Number.isInteger(value))
  if (fits) return []
  const reason = value < least && why !== '' ? ` (${why})` : ''
  return [
    `${flag}: expected ${whole ? 'a whole number' : 'a number'} of ${unit} from ${least} to ${most}, got ${value}${reason}`,
  ]
}
