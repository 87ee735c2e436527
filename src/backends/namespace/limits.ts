/** The records of the launch file for the limits of a plan. Pure. */
import { type GroupLimits, groupSettings } from '../../cgroup/limits.ts'
import { GROUP_PROCESSES_START, GROUP_PROCESSES_UNSHARE, NAMESPACE_PROCESSES } from '../../contract.ts'
import type { PlannedLimits } from '../../plan/limits.ts'
import type { Plan } from '../../plan/plan.ts'
import type { LaunchRecord } from './launch-file.ts'

/** Numbers of getrlimit(2), the same on x86_64 and aarch64. */
const RLIMIT = {
  stack: 3,
  core: 4,
  nproc: 6,
  nofile: 7,
  memlock: 8,
  sigpending: 11,
  msgqueue: 12,
  nice: 13,
  rtprio: 14,
} as const

/** RLIM_INFINITY. */
const UNLIMITED = '18446744073709551615'

/** Most descriptors of a process. The watchdog looks at each one, so there are fewer where it watches. */
const DESCRIPTORS = { kernel: 524_288, watchdog: 16_384 } as const

/**
 * The process limits of every run: bounds of kernel memory that no other limit sees, and what must not depend on the caller.
 * init lowers them to the host's own. docs/reference/limits.md has the table of all of them.
 */
const standardRlimits = (descriptors: number): readonly LaunchRecord[] => [
  // A caller's unlimited stack would give every program inside the old, guessable layout of its memory (mmap(2), ADDR_COMPAT_LAYOUT).
  ['rlimit', RLIMIT.stack, 8 * 1024 ** 2, UNLIMITED],
  // 1 and not 0: a pipe handler in core_pattern ignores 0 and takes the dump of the process to the host (core(5)).
  ['rlimit', RLIMIT.core, 1, 1],
  // systemd's soft and hard defaults suit programs that use select(2) as well as node and java, which raise it.
  ['rlimit', RLIMIT.nofile, 1024, descriptors],
  ['rlimit', RLIMIT.memlock, 8 * 1024 ** 2, 8 * 1024 ** 2],
  // The kernel counts these for the caller, too: no sandbox takes more than a part of the usual 819 200 bytes, and 15 000 or more signals.
  ['rlimit', RLIMIT.msgqueue, 204_800, 204_800],
  ['rlimit', RLIMIT.sigpending, 1024, 1024],
  // A caller's right to real-time priorities is not passed on: such a command would starve the runner.
  ['rlimit', RLIMIT.nice, 0, 0],
  ['rlimit', RLIMIT.rtprio, 0, 0],
]

export function controlledBy({ limits, cgroupParent, engine }: Plan): readonly LaunchRecord[] {
  return [
    ...standardRlimits(limits.memory?.by === 'watchdog' ? DESCRIPTORS.watchdog : DESCRIPTORS.kernel),
    ...processRlimit(limits),
    ...(cgroupParent === undefined ? [] : [['cgroup', cgroupParent] satisfies LaunchRecord]),
    ...groupRecords(limits, engine),
    ...(limits.memory?.by === 'watchdog' ? [['watch', limits.memory.max] satisfies LaunchRecord] : []),
    ...(limits.cpus?.by === 'affinity' ? [['affinity', limits.cpus.max] satisfies LaunchRecord] : []),
    ...(limits.cpuTimeMs === undefined ? [] : [['cpu-time', limits.cpuTimeMs] satisfies LaunchRecord]),
    ...(limits.rwSize === undefined ? [] : [['rw-size', limits.rwSize] satisfies LaunchRecord]),
    ...(limits.timeoutMs === undefined ? [] : [['deadline', limits.timeoutMs] satisfies LaunchRecord]),
  ]
}

function processRlimit({ pids }: PlannedLimits): readonly LaunchRecord[] {
  if (pids?.by !== 'rlimit') return []
  const most = pids.max + NAMESPACE_PROCESSES
  return [['rlimit', RLIMIT.nproc, most, most]]
}

/** `pids` is a promise about the command's processes; the chain's own come on top, as long as they are there. */
function groupRecords({ pids, ...others }: PlannedLimits, engine: Plan['engine']): readonly LaunchRecord[] {
  const withOwn = (chain: number) => (pids === undefined ? {} : { pids: { ...pids, max: pids.max + chain } })
  return [
    ...recordsOf('set', { ...others, ...withOwn(GROUP_PROCESSES_START) }),
    ...(engine === 'bwrap' ? [] : recordsOf('narrow', withOwn(GROUP_PROCESSES_UNSHARE))),
  ]
}

const recordsOf = (verb: 'set' | 'narrow', limits: GroupLimits): readonly LaunchRecord[] =>
  groupSettings(limits).map(({ file, value }): LaunchRecord => [verb, file, value])
