/** Which records of the launch file hold the limits of a plan. Pure. */
import { type GroupLimits, groupSettings } from '../cgroup/limits.ts'
import type { Plan, PlannedLimits } from '../plan/plan.ts'
import type { LaunchRecord } from './launchfile.ts'

/** Numbers of getrlimit(2), the same on x86_64 and aarch64. */
const RLIMIT = { core: 4, nproc: 6, nofile: 7, memlock: 8, msgqueue: 12 } as const

/** Processes of the chain that count beside the command's own: init with the engine's monitor, or with the stager until it goes. */
const CHAIN_IN_GROUP = 2
const CHAIN_WITHOUT_STAGER = 1
/** In the user namespace only init counts. */
const CHAIN_IN_NAMESPACE = 1

/** The process limits of every run: bounds of kernel memory that no other limit sees. init lowers them to the host's own. */
const STANDARD_RLIMITS: readonly LaunchRecord[] = [
  // 1 and not 0: a pipe handler in core_pattern ignores 0 and takes the dump of the process to the host (core(5)).
  ['rlimit', RLIMIT.core, 1, 1],
  // systemd's soft and hard defaults suit programs that use select(2) as well as node and java, which raise it.
  ['rlimit', RLIMIT.nofile, 1024, 524_288],
  ['rlimit', RLIMIT.memlock, 8 * 1024 ** 2, 8 * 1024 ** 2],
  ['rlimit', RLIMIT.msgqueue, 819_200, 819_200],
]

export function controlledBy({ limits, cgroupParent, engine }: Plan): readonly LaunchRecord[] {
  return [
    ...STANDARD_RLIMITS,
    ...processRlimit(limits),
    ...(cgroupParent === undefined ? [] : [['cgroup', cgroupParent] satisfies LaunchRecord]),
    ...groupRecords(limits, engine),
    ...(limits.memory?.by === 'watchdog' ? [['watch', limits.memory.max] satisfies LaunchRecord] : []),
    ...(limits.cpus?.by === 'affinity' ? [['affinity', limits.cpus.max] satisfies LaunchRecord] : []),
    ...(limits.cpuTimeMs === undefined ? [] : [['cpu-time', limits.cpuTimeMs] satisfies LaunchRecord]),
    ...(limits.timeoutMs === undefined ? [] : [['deadline', limits.timeoutMs] satisfies LaunchRecord]),
  ]
}

function processRlimit({ pids }: PlannedLimits): readonly LaunchRecord[] {
  if (pids?.by !== 'rlimit') return []
  const most = pids.max + CHAIN_IN_NAMESPACE
  return [['rlimit', RLIMIT.nproc, most, most]]
}

/** `pids` is a promise about the command's processes; the chain's own come on top, as long as they are there. */
function groupRecords({ pids, ...others }: PlannedLimits, engine: Plan['engine']): readonly LaunchRecord[] {
  const beside = (chain: number) => (pids === undefined ? {} : { pids: { ...pids, max: pids.max + chain } })
  return [
    ...recordsOf('set', { ...others, ...beside(CHAIN_IN_GROUP) }),
    ...(engine === 'bwrap' ? [] : recordsOf('narrow', beside(CHAIN_WITHOUT_STAGER))),
  ]
}

const recordsOf = (verb: 'set' | 'narrow', limits: GroupLimits): readonly LaunchRecord[] =>
  groupSettings(limits).map(({ file, value }): LaunchRecord => [verb, file, value])
