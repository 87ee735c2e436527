/**
 * The namespace backend: the plan as a launch file for the native chain (docs/internals/architecture.md) and the process that reads it.
 * Pure text; tests/golden/*.launch are its specification.
 */

import { INIT_NAME, LAUNCH_FILE_FD, STAGING_DIRECTORY } from '../../contract.ts'
import type { HostFacts } from '../../host/facts.ts'
import { type HostCall, hostCall } from '../../os/native-programs.ts'
import { usesLandlock } from '../../plan/landlock.ts'
import type { Plan, PlannedDevice, PlannedZone, Scratch, SystemEntry } from '../../plan/plan.ts'
import { namesInHomes } from '../../plan/protected-paths.ts'
import { CGROUP, CGROUP_LIST } from '../../plan/sys-files.ts'
import { TRUST_FILE } from '../../plan/trust.ts'
import { isWritable, type NetworkMode } from '../../policy/values.ts'
import type { RunInputs } from '../backend.ts'
import type { NativeLaunch } from '../launch.ts'
import { type LaunchRecord, writeLaunchFile } from './launch-file.ts'
import { controlledBy } from './limits.ts'
import { networkRecords } from './network.ts'

/** Knobs of the host that stay visible but cannot be turned. */
const PROC_READONLY = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger']
/**
 * Files of /proc that describe the host or its kernel and that no program inside needs: those that container runtimes mask, and those
 * with counters of the whole machine, names of its disks or its boot parameters. Programs ask for cpuinfo, meminfo, stat, loadavg, uptime,
 * version, filesystems and mounts, so these stay; tests/escape/proc.system.test.ts has the whole list.
 */
const PROC_MASKED = [
  'acpi',
  'asound',
  'bootconfig',
  'buddyinfo',
  'cgroups',
  'cmdline',
  'config.gz',
  'consoles',
  'diskstats',
  'interrupts',
  'iomem',
  'ioports',
  'kallsyms',
  'kcore',
  'key-users',
  'keys',
  'kmsg',
  'kpagecgroup',
  'kpagecount',
  'kpageflags',
  'latency_stats',
  'mdstat',
  'modules',
  'mtrr',
  'pagetypeinfo',
  'partitions',
  'pressure',
  'sched_debug',
  'schedstat',
  'scsi',
  'slabinfo',
  'softirqs',
  'swaps',
  'timer_list',
  'timer_stats',
  'vmallocinfo',
  'vmstat',
  'zoneinfo',
]

export interface NamespaceInputs extends RunInputs {
  /** The program of the plan's engine, where it is a program. */
  readonly enginePath?: string
  /** The host's own tree, and no namespaces. */
  readonly withoutNamespaces?: true
  /** The certificates that the command trusts, where TLS ends on this host. */
  readonly trustBundle?: string
  readonly authorities?: readonly { readonly target: string; readonly content: string }[]
  /** For the operator's proxy. */
  readonly upstreamAuthorization?: string
}

/** The process that runs a plan. Pure: the same plan and inputs give the same launch. */
export function buildNamespace(plan: Plan, run: NamespaceInputs): NativeLaunch {
  return firstLaunchOf(plan, run, launchFile(plan, run))
}

/** The same with a launch file that is made in another way. */
export function firstLaunchOf({ tty }: Plan, run: RunInputs, bytes: Uint8Array): NativeLaunch {
  return launchOf({
    call: hostCall('launch', ['--id', run.runId], run.nativeDirectory),
    content: { carries: 'bytes', bytes },
    env: run.commandEnv,
    request: { words: run.commandBytes ?? run.command, tty },
  })
}

/** Path of the plan's engine on this host; undefined for the engine in the native programs. */
export function enginePathOf({ bwrap }: Pick<HostFacts, 'bwrap'>, { engine }: Plan): { readonly enginePath?: string } {
  return engine === 'bwrap' && bwrap !== undefined ? { enginePath: bwrap.path } : {}
}

interface LaunchInputs extends Pick<NativeLaunch, 'env' | 'request'> {
  readonly call: HostCall
  /** The launch file. */
  readonly content:
    | { readonly carries: 'bytes'; readonly bytes: Uint8Array }
    | { readonly carries: 'file'; readonly path: string }
}

const launchOf = ({ call, content, env, request }: LaunchInputs): NativeLaunch => ({
  ...call,
  env,
  cwd: '/',
  descriptors: [{ fd: LAUNCH_FILE_FD, what: 'launch file', ...content }],
  request,
})

export interface RelaunchInputs extends Pick<LaunchInputs, 'env'>, Pick<RunInputs, 'command'> {
  /** Path of the launch file, or what is in it. */
  readonly launchFile: string | Uint8Array
  readonly guards: Uint8Array | undefined
}

/** The same for a launch file that is kept, of a run that the runner names itself; for captured runs without a terminal. */
export function relaunchOf({ launchFile, command, env, guards }: RelaunchInputs): NativeLaunch {
  return launchOf({
    call: hostCall('launch', []),
    content:
      typeof launchFile === 'string' ? { carries: 'file', path: launchFile } : { carries: 'bytes', bytes: launchFile },
    env,
    request: { words: command, tty: false, ...(guards === undefined ? {} : { guards }) },
  })
}

/** Everything the native chain must know about a plan; the command and its environment are not in it. */
export function launchFile(plan: Plan, run: LaunchFileInputs): Uint8Array {
  return writeLaunchFile(launchRecords(plan, run))
}

export type LaunchFileInputs = Pick<
  NamespaceInputs,
  | 'enginePath'
  | 'runsDirectory'
  | 'callerDirectory'
  | 'layersDirectory'
  | 'continued'
  | 'trustBundle'
  | 'authorities'
  | 'upstreamAuthorization'
  | 'keepsErrors'
  | 'watchesLooks'
  | 'serve'
  | 'withoutNamespaces'
>

export function launchRecords(plan: Plan, run: LaunchFileInputs): readonly LaunchRecord[] {
  const { callerDirectory } = run
  return [
    // Before the engine: what follows it says what the sandbox is built of, and two plans that agree there share warm sandboxes.
    ...(callerDirectory === undefined ? [] : [['caller', callerDirectory] satisfies LaunchRecord]),
    ...(run.keepsErrors ? [['keep-errors'] satisfies LaunchRecord] : []),
    ...(run.withoutNamespaces ? [['engine', 'none'] satisfies LaunchRecord] : engineRecords(plan, run.enginePath)),
    ['identity', plan.identity, plan.uid, plan.gid],
    ['hostname', plan.hostname],
    ...networkRecords(plan.network, run.upstreamAuthorization),
    ...treeRecords(plan),
    ...trustRecords(plan, run.trustBundle),
    ...authorityRecords(plan, run.authorities),
    ...PROC_READONLY.map((name): LaunchRecord => ['readonly', `/proc/${name}`]),
    ...maskRecords(plan),
    ['landlock', usesLandlock(plan) ? 'on' : 'off'],
    ['seccomp', plan.seccomp.filter || 'off'],
    ...(plan.needs.includes('explain') ? [['observe', run.watchesLooks ? 'all' : 'acts'] satisfies LaunchRecord] : []),
    ...controlledBy(plan),
    ['workdir', plan.workdir],
    ['terminal', plan.tty ? 'on' : 'off'],
    ...(run.runsDirectory === '' ? [] : [['runs', run.runsDirectory] satisfies LaunchRecord]),
    ...layerRecords(plan, run),
    ...(run.serve === undefined ? [] : [['serve', run.serve.directory] satisfies LaunchRecord]),
    ['profile', plan.profile],
  ]
}

function layerRecords(
  { layer }: Plan,
  { layersDirectory, continued = 'new' }: LaunchFileInputs,
): readonly LaunchRecord[] {
  if (layersDirectory === undefined || layer === undefined) return []
  return [
    ['cow', layersDirectory, continued, layer.size ?? 0],
    ['keep', layer.keepMs],
  ]
}

/* ---- the engine ---- */

/** `unshare` is the system call of that name, which the stager makes itself: nothing more is to be said about it. */
function engineRecords(plan: Plan, bwrap = 'bwrap'): readonly LaunchRecord[] {
  if (plan.engine !== 'bwrap') return [['engine', 'unshare']]
  return [['engine', 'bwrap'], ...[bwrap, ...bwrapWords(plan)].map((word): LaunchRecord => ['word', word])]
}

/** Port 53: where names are asked for. */
const NAME_CAPABILITIES = ['--cap-add', 'CAP_NET_BIND_SERVICE']
/** With these init makes the addresses, rules and sockets of a restricted network. */
const NETWORK_CAPABILITIES = ['--cap-add', 'CAP_NET_ADMIN', ...NAME_CAPABILITIES]
const CAPABILITIES: Readonly<Record<NetworkMode, readonly string[]>> = {
  none: NAME_CAPABILITIES,
  restricted: NETWORK_CAPABILITIES,
  host: [],
}

/**
 * bwrap gets the finished tree as its root. The capabilities are for init alone, which uses them to mask /proc, to open sockets and to
 * empty the bounding set, and gives them up before the command. /dev-bind, because the tree's own flags already say nodev
 * everywhere but on /dev.
 */
function bwrapWords(plan: Plan): readonly string[] {
  return [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup'],
    ...(plan.network.mode === 'host' ? [] : ['--unshare-net']),
    ...['--uid', String(plan.uid), '--gid', String(plan.gid), '--hostname', plan.hostname],
    ...['--die-with-parent', '--new-session', '--as-pid-1'],
    ...['--cap-add', 'CAP_SYS_ADMIN', '--cap-add', 'CAP_SETPCAP'],
    ...CAPABILITIES[plan.network.mode],
    ...['--dev-bind', STAGING_DIRECTORY, '/', '--proc', '/proc', '--chdir', '/', '--', `/${INIT_NAME}`],
  ]
}

/* ---- the tree ---- */

interface TreeEntry {
  readonly target: string
  readonly records: readonly LaunchRecord[]
}

/** Parents before children, in whatever order they were wanted: a later parent would hide its child. */
function treeRecords({ system, scratch, devices = [], zones, identity, layer }: Plan): readonly LaunchRecord[] {
  const entries = [
    ...system.map(systemEntry),
    ...scratch.map(scratchEntry),
    ...devices.map(deviceEntry),
    ...zones.map((zone) => zoneEntry(zone, identity, layer)),
  ]
  return entries.sort(byTarget).flatMap(({ records }) => records)
}

/** After the tree, whose files these take the place of. For people the bundle is empty: that of a run exists only while it lasts. */
function trustRecords({ trust }: Plan, bundle = ''): readonly LaunchRecord[] {
  if (trust === undefined) return []
  return [
    ['file', TRUST_FILE, octal(0o644), bundle],
    ...trust.places.map((place): LaunchRecord => ['replace', TRUST_FILE, place]),
  ]
}

/** Of each file its certificates alone. */
function authorityRecords(
  { authorities = [] }: Plan,
  read: LaunchFileInputs['authorities'] = [],
): readonly LaunchRecord[] {
  const contentOf = (target: string): string => read.find((one) => one.target === target)?.content ?? ''
  return authorities.map(({ target }): LaunchRecord => ['file', target, octal(0o644), contentOf(target)])
}

/** After the tree: what shows limits is shown in the places that programs believe. */
function maskRecords({ system }: Plan): readonly LaunchRecord[] {
  const showsLimits = system.some(({ target }) => target === CGROUP_LIST)
  const masked = showsLimits ? PROC_MASKED.filter((name) => name !== 'cgroups') : PROC_MASKED
  return [...masked.map((name): LaunchRecord => ['mask', `/proc/${name}`]), ...(showsLimits ? CGROUP_RECORDS : [])]
}

const CGROUP_RECORDS: readonly LaunchRecord[] = [
  ['cgroup-view', CGROUP],
  ['proc-file', CGROUP_LIST, '/proc/cgroups'],
]

function byTarget(a: TreeEntry, b: TreeEntry): number {
  return a.target < b.target ? -1 : a.target > b.target ? 1 : 0
}

function systemEntry(entry: SystemEntry): TreeEntry {
  const { target } = entry
  switch (entry.op) {
    case 'directory':
      return { target, records: [['directory', target, octal(entry.mode)]] }
    case 'symlink':
      return { target, records: [['symlink', target, entry.link]] }
    case 'file':
      return { target, records: [['file', target, octal(entry.mode), entry.content]] }
    case 'bind':
      return { target, records: [['bind', entry.source, target]] }
  }
}

function scratchEntry({ target, size, inodes, mode }: Scratch): TreeEntry {
  return { target, records: [['tmpfs', target, size, inodes, octal(mode)]] }
}

const deviceEntry = ({ source, target, dev, ino, number }: PlannedDevice): TreeEntry => ({
  target,
  records: [['node', source, target, dev, ino, number]],
})

/** For root a toolchain is a part of the system: with an idmap its private files would be the command's. */
function zoneEntry(planned: PlannedZone, identity: Plan['identity'], layer: Plan['layer']): TreeEntry {
  const { source, target, from } = planned
  if (identity === 'fresh' && from.startsWith('toolchain ')) return { target, records: [['bind', source, target]] }
  return { target, records: zoneRecords(planned, layer) }
}

/** A zone, and behind it what is protected in it. A copy is shown as it is: nothing is mounted over it. */
export function zoneRecords(planned: PlannedZone, layer?: Plan['layer']): readonly LaunchRecord[] {
  const { source, target, mode, dev, ino, sockets, protect, git, home, linked = [], hide = [] } = planned
  return [
    [
      'zone',
      source,
      target,
      mode === 'cow' && layer?.upper === 'copy' ? 'copy' : mode,
      dev,
      ino,
      sockets ? 'open' : 'closed',
    ],
    ...(isWritable(mode) ? protect.map((path): LaunchRecord => ['protect', source, target, path]) : []),
    ...(git === undefined ? [] : [['git', source, target, git.open.join(' ')] satisfies LaunchRecord]),
    ...(home === undefined ? [] : [['home', home.path, namesInHomes(home).join(' ')] satisfies LaunchRecord]),
    ...linked.map((file): LaunchRecord => ['linked', file.dev, file.ino]),
    ...hide.map((pattern): LaunchRecord => ['hide', source, target, pattern]),
  ]
}

const octal = (mode: number): string => mode.toString(8)
