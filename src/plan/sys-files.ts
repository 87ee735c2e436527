/**
 * The little of /sys that programs size themselves by: which processors there are, and the limits of the run where a container would have
 * them. Files of our own making, read-only like the root they lie on: nothing of the host's /sys can be seen, so nothing of it is shown that
 * /proc/cpuinfo does not show, and nothing changes while a command looks on. Pure.
 */
import type { PlannedLimit, PlannedLimits } from './limits.ts'
import type { SystemEntry } from './plan.ts'

const PROCESSORS = '/sys/devices/system/cpu'
export const CGROUP = '/sys/fs/cgroup'
/** Content of /proc/cgroups inside; used where limits are visible. */
export const CGROUP_LIST = `${CGROUP}/proc.cgroups`

/** Value of a cgroup without a limit in version 1: LONG_MAX rounded down to a page. */
const NO_LIMIT = '9223372036854771712'
/** cgroups(7): hierarchy 0 is that of version 2. The JVM wants all of these there. */
const CGROUP_LIST_TEXT = [
  '#subsys_name\thierarchy\tnum_cgroups\tenabled',
  ...['cpuset', 'cpu', 'cpuacct', 'memory', 'pids'].map((controller) => `${controller}\t0\t1\t1`),
].join('\n')
/** Microseconds, the default of the kernel. */
const PERIOD = 100_000

/** @param cpuList as in proc_pid_status(5), `0-1,4` */
export const sysFiles = (limits: PlannedLimits, cpuList: string | undefined): readonly SystemEntry[] => [
  ...(cpuList === undefined ? [] : processorFiles(cpuList)),
  ...cgroupFiles(limits),
]

const file = (target: string, text: string): SystemEntry => ({ op: 'file', target, content: `${text}\n`, mode: 0o444 })

/** lscpu and the C library ask for all three. */
const processorFiles = (cpuList: string): readonly SystemEntry[] => [
  file(`${PROCESSORS}/online`, cpuList),
  { op: 'symlink', target: `${PROCESSORS}/possible`, link: 'online' },
  { op: 'symlink', target: `${PROCESSORS}/present`, link: 'online' },
]

/** In the words of both versions: which one a program reads depends on /proc/self/cgroup, where the kernel tells the host's. */
function cgroupFiles({ memory, cpus }: PlannedLimits): readonly SystemEntry[] {
  if (!isHeld(memory) && !isHeld(cpus)) return []
  return [
    file(CGROUP_LIST, CGROUP_LIST_TEXT),
    ...(isHeld(cpus) ? [file(`${CGROUP}/cpu.max`, `${Math.round(cpus.max * PERIOD)} ${PERIOD}`)] : []),
    ...(isHeld(memory)
      ? [
          file(`${CGROUP}/memory.high`, 'max'),
          file(`${CGROUP}/memory.max`, `${memory.max}`),
          file(`${CGROUP}/memory/memory.limit_in_bytes`, `${memory.max}`),
          file(`${CGROUP}/memory/memory.soft_limit_in_bytes`, NO_LIMIT),
        ]
      : []),
  ]
}

const isHeld = (limit: PlannedLimit | undefined): limit is PlannedLimit => limit !== undefined && limit.by !== 'none'
