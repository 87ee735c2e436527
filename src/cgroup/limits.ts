/**
 * Limits as the kernel takes them: which file of the run's cgroup gets which word. Which numbers make sense is the schema's matter.
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
  /** Per second and disk; what is absent has no limit. */
  readonly io?: Rates
}

export interface Rates {
  readonly readBps?: number
  readonly writeBps?: number
  readonly readIops?: number
  readonly writeIops?: number
  readonly by: string
}

/** One write into the run's cgroup, before anything runs in it. */
export interface GroupSetting {
  readonly file: string
  readonly value: string
}

/** cpu.max period in microseconds, the kernel's default. */
const CPU_PERIOD_US = 100_000
/** Smallest quota the kernel takes in microseconds (min_cfs_quota_period, kernel/sched/core.c). */
const LEAST_CPU_QUOTA_US = 1_000

/** Every file to write, in order; limits that something else than `cgroup2` holds are not the cgroup's affair. */
export function groupSettings(limits: GroupLimits): readonly GroupSetting[] {
  const { memory, swap, pids, cpus, io } = limits
  return [
    ...(memory?.by === 'cgroup2' ? memorySettings(memory.max, swap?.max ?? 0) : []),
    ...(pids?.by === 'cgroup2' ? [{ file: 'pids.max', value: String(pids.max) }] : []),
    ...(cpus?.by === 'cgroup2' ? [{ file: 'cpu.max', value: cpuMax(cpus.max) }] : []),
    ...(io?.by === 'cgroup2' ? [{ file: 'io.max', value: ioMax(io) }] : []),
  ]
}

const memorySettings = (memory: number, swap: number): readonly GroupSetting[] => [
  { file: 'memory.max', value: String(memory) },
  // Without it a run over its memory would just go on, slowly, in swap space that belongs to everybody.
  { file: 'memory.swap.max', value: String(swap) },
  // All or nothing: a tree with one process shot out of it hangs or lies.
  { file: 'memory.oom.group', value: '1' },
]

const cpuMax = (cpus: number): string =>
  `${Math.max(LEAST_CPU_QUOTA_US, Math.round(cpus * CPU_PERIOD_US))} ${CPU_PERIOD_US}`

/**
 * The kernel takes one whole disk a write, by number. `*` means each of them: cgroup.c looks for them when the run starts, because
 * a plan outlives a disk that is plugged in.
 */
const ioMax = ({ readBps, writeBps, readIops, writeIops }: Rates): string => {
  const words = { rbps: readBps, wbps: writeBps, riops: readIops, wiops: writeIops }
  const set = Object.entries(words).filter(([, most]) => most !== undefined)
  return ['*', ...set.map(([word, most]) => `${word}=${most}`)].join(' ')
}
