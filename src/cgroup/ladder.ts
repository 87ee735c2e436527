/**
 * Finds the best place for the cgroups of runs, from the top of the ladder down, by doing: a group is only believed in after one
 * was made there, a process was in it, and the group removed.
 * Edge: /proc, the cgroup file system, systemd.
 *
 * parent     --cgroup-parent, checked and never silently replaced by something else
 * delegated  the caller's own group, when the tree's manager delegated it
 * systemd    one transient unit, see systemd.ts
 * direct     root, no service manager: straight below the root of the tree
 * accounting any of these without the controllers: kill, freeze and cpu time still work
 * none       no cgroup v2 at all, or none this caller may use
 *
 * Asking costs tens of milliseconds, so the caller caches the answer per boot, user and own cgroup path.
 */
import { readFileSync, type Stats, statfsSync, statSync } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { SandboxError } from '../error.ts'
import { textOf } from '../os/look.ts'
import { type Enter, enterByShell } from './enter.ts'
import type { CgroupFact, CgroupRung, Sights } from './fact.ts'
import {
  codeOf,
  filesOf,
  type Group,
  isObstacle,
  isTreeRoot,
  type Obstacle,
  prepareGroup,
  processesOf,
  readWords,
  tellingFiles,
  writeObstacle,
} from './group.ts'
import { DROP_IN, WANTED_BY_ALL, type WantedController } from './rungs.ts'
import { isSystemdRunning, type Manager, showUnit, startUnit, UNIT } from './systemd.ts'
import { type CgroupMount, directoryOf, findCgroupMount, findOwnPath, unitOf } from './tree.ts'

export interface LadderInputs {
  readonly uid: number
  /** Absolute directory from `--cgroup-parent`. */
  readonly cgroupParent?: string
  /** Default: a shell is moved. */
  readonly enter?: Enter
  /** Identities of paths. */
  readonly observe: (paths: readonly string[]) => Sights
}

/** How a group is tried: who enters it, and how it looked before. */
type Trial = Required<Pick<LadderInputs, 'enter' | 'observe'>>

interface Host extends Trial {
  readonly uid: number
  readonly mount: CgroupMount
  /** The caller's path in the tree, and where it can be seen; undefined in a container that cannot see it. */
  readonly ownPath: string | undefined
  readonly own: string | undefined
  /** The mount shows the real root of the tree. */
  readonly wholeTree: boolean
  readonly systemd: boolean
}

/** One rung tried: a place, or why not. */
interface Tried extends Pick<CgroupFact, 'rung' | 'parent' | 'controllers' | 'fix'> {
  readonly why: string
  readonly seen: Sights
}

/**
 * @throws SandboxError POLICY_INVALID when cgroupParent cannot hold runs. Nothing is left behind in that case.
 */
export async function observeCgroup({
  uid,
  cgroupParent,
  enter = enterByShell,
  observe,
}: LadderInputs): Promise<CgroupFact> {
  if (cgroupParent !== undefined) return openParent(cgroupParent, { enter, observe })
  const mountPoint = observe([MOUNT_POINT])
  const host = observeHost(uid, { enter, observe })
  if (host === undefined)
    return {
      ...nowhere('no cgroup v2 file system is mounted here', `mount -t cgroup2 none ${MOUNT_POINT}`),
      seen: mountPoint,
    }
  if (host.mount.readOnly)
    return nowhere(`${host.mount.directory} is mounted read-only, as containers have it`, WRITABLE_MOUNT)
  const tried: Tried[] = []
  for (const rung of [tryDelegated, trySystemd, tryDirect]) {
    const found = await rung(host)
    if (isComplete(found))
      return { rung: found.rung, parent: found.parent, controllers: found.controllers, lacking: '', fix: '' }
    tried.push(found)
  }
  return settleFor(tried)
}

const MOUNT_POINT = '/sys/fs/cgroup'

const nowhere = (why: string, fix: string): CgroupFact => ({
  rung: 'none',
  controllers: [],
  lacking: withFix({ why, fix }),
  fix,
})

const WRITABLE_MOUNT =
  'docker run --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:rw ..., and llm-do exec --cgroup-parent DIR'

const withFix = ({ why, fix }: Pick<Tried, 'why' | 'fix'>): string => (fix === '' ? why : `${why} (${fix})`)

function observeHost(uid: number, trial: Trial): Host | undefined {
  // Landlock hides the mounts in a sandbox without namespaces, where no group can be made either.
  const mount = findCgroupMount(textOf('/proc/self/mountinfo'))
  if (mount === undefined) return undefined
  const ownPath = findOwnPath(readFileSync('/proc/self/cgroup', 'utf8'))
  const own = ownPath === undefined ? undefined : directoryOf(mount, ownPath)
  const wholeTree = mount.root === '/' && isTreeRoot(mount.directory)
  return { ...trial, uid, mount, ownPath, own, wholeTree, systemd: isSystemdRunning() }
}

const isComplete = (tried: Tried): tried is Tried & { readonly parent: string } =>
  tried.parent !== undefined && missingOf(tried).length === 0

const missingOf = ({ controllers }: Pick<Tried, 'controllers'>): readonly WantedController[] =>
  WANTED_BY_ALL.filter((name) => !controllers.includes(name))

const heldByKernel = (tried: Pick<Tried, 'controllers'>): number => WANTED_BY_ALL.length - missingOf(tried).length

/**
 * Whether an answer may be remembered: one that lacks nothing, or one that lacks only what would be seen in a path if it came. What a
 * service manager has said changes without that, and so does what was refused: cpu, where a real-time process is about.
 */
export function isLasting(fact: Pick<CgroupFact, 'parent' | 'controllers' | 'lacking' | 'seen'>): boolean {
  if (fact.lacking === '') return true
  const isSeen = fact.seen !== undefined && Object.values(fact.seen).every((identity) => identity !== undefined)
  return isSeen && !isSystemdRunning() && !isRefusedOne(fact)
}

function isRefusedOne({ parent, controllers }: Pick<CgroupFact, 'parent' | 'controllers'>): boolean {
  const missing = missingOf({ controllers })
  if (parent === undefined || missing.length === 0) return false
  const has = readWords(`${parent}/cgroup.controllers`)
  return missing.some((name) => has.includes(name))
}

/** The place with most limits; the higher rung where two are equal. What each rung lacks is reported once. */
function settleFor(tried: readonly Tried[]): CgroupFact {
  const lacking = [...new Set(tried.map(withFix))].filter(Boolean).join('; ')
  const fix = tried.find((one) => one.fix !== '')?.fix ?? ''
  const seen: Sights = Object.assign({}, ...tried.map((one) => one.seen))
  const usable = tried.filter(({ parent }) => parent !== undefined)
  const best = usable.toSorted((left, right) => heldByKernel(right) - heldByKernel(left))[0]
  if (best?.parent === undefined) return { rung: 'none', controllers: [], lacking, fix, seen }
  const rung = heldByKernel(best) === 0 ? 'accounting' : best.rung
  return { rung, parent: best.parent, controllers: best.controllers, lacking, fix: best.fix || fix, seen }
}

interface Candidate {
  readonly rung: CgroupRung
  readonly directory: string
  readonly fix: string
}

async function tryCandidate({ enter, observe }: Host, { rung, directory, fix }: Candidate): Promise<Tried> {
  const before = observe(tellingFiles(directory))
  const obstacle = writeObstacle(directory)
  // Where version 1 has every controller, a place that may be written to would still hold no limit.
  if (obstacle !== undefined) {
    const refusal = refused(rung, obstacle.why, isVersionOne() ? NO_VERSION_ONE : fix)
    return { ...refusal, seen: only(before, [obstacle.path]) }
  }
  const group = await prepareGroup(directory, enter)
  const seen = group.isPassing ? chanceIn(directory) : only(before, tellingOf(directory, group))
  if (isObstacle(group)) return { ...refused(rung, group.why, fix), seen }
  const missing = missingOf(group)
  const tried = { rung, parent: directory, controllers: group.controllers, seen }
  if (missing.length === 0) return { ...tried, why: '', fix: '' }
  return {
    ...tried,
    why: `${directory} has no ${missing.join(', ')} controller`,
    fix: controllerFix(missing, fix),
  }
}

/** The files that would look different if the place gave more; all others need no check. */
function tellingOf(directory: string, group: Group | Obstacle): readonly string[] {
  if (isObstacle(group)) return [directory]
  return isTreeRoot(directory) ? [] : filesOf(directory, missingOf(group))
}

const only = (sights: Sights, paths: readonly string[]): Sights =>
  Object.fromEntries(paths.map((path) => [path, sights[path]]))

/** An answer that the next look may not give. */
const chanceIn = (directory: string): Sights => ({ [directory]: undefined })

const NO_VERSION_ONE =
  'version 1 holds the controllers: boot with cgroup_no_v1=all, under systemd with systemd.unified_cgroup_hierarchy=1'

/** Controllers that version 1 holds cannot be delegated. */
function controllerFix(missing: readonly string[], fix: string): string {
  const taken = heldByVersionOne()
  return missing.some((name) => taken.includes(name)) ? NO_VERSION_ONE : fix
}

const isVersionOne = (): boolean => heldByVersionOne().length === WANTED_BY_ALL.length

/** The wanted controllers that are in a hierarchy of version 1: /proc/cgroups numbers version 2 as 0. */
export function heldByVersionOne(): readonly string[] {
  // A kernel without version 1 need not have the list.
  const lines = textOf('/proc/cgroups')
    .split('\n')
    .map((line) => line.split('\t'))
  return WANTED_BY_ALL.filter((name) => lines.some(([known, hierarchy]) => known === name && hierarchy !== '0'))
}

const refused = (rung: CgroupRung, why: string, fix = ''): Tried => ({ rung, controllers: [], why, fix, seen: {} })

/* ---- delegated ---- */

const DELEGATE_FIX = 'systemd-run --user --scope -p Delegate=yes llm-do exec ...'
const CHOWN_FIX =
  'as root: mkdir a group, chown it and its cgroup.procs, cgroup.subtree_control and cgroup.threads to this user, move the shell in'

async function tryDelegated(host: Host): Promise<Tried> {
  if (host.ownPath === undefined || host.own === undefined)
    return refused('delegated', `the own cgroup is not visible below ${host.mount.directory}`)
  if (host.systemd) return tryDelegatedUnit(host, host.ownPath)
  // Root that sees the whole tree makes a new group at the top (direct) rather than moving the callers of others about.
  if (host.uid === 0 && host.wholeTree) return refused('delegated', '')
  const own = { rung: 'delegated', directory: host.own, fix: CHOWN_FIX } as const
  if (host.own === host.mount.directory) return tryCandidate(host, own)
  const parent = dirname(host.own)
  const before = host.observe(tellingFiles(parent))
  if (holdsControllers(parent)) return tryCandidate(host, { ...own, directory: parent })
  const tried = await tryCandidate(host, own)
  return { ...tried, seen: { ...only(before, obstaclesOf(parent)), ...tried.seen } }
}

/** A caller in a leaf: its parent gives controllers to its children and is ours to write to. */
function holdsControllers(directory: string): boolean {
  if (writeObstacle(directory) !== undefined || isTreeRoot(directory)) return false
  return heldByKernel({ controllers: readWords(`${directory}/cgroup.subtree_control`) }) > 0
}

function obstaclesOf(directory: string): readonly string[] {
  const obstacle = writeObstacle(directory)
  return obstacle === undefined ? [] : [obstacle.path]
}

/** Under systemd only what the manager calls delegated is ours, even if more is writable (systemd.io, CGROUP_DELEGATION). */
async function tryDelegatedUnit(host: Host, ownPath: string): Promise<Tried> {
  const unit = unitOf(ownPath)
  const directory = unit && directoryOf(host.mount, unit.path)
  if (unit === undefined || directory === undefined) return refused('delegated', '')
  const shown = await showUnit({ manager: unit.manager, uid: host.uid, unit: unit.name })
  if ('why' in shown || !shown.delegated) return refused('delegated', '')
  return tryCandidate(host, { rung: 'delegated', directory, fix: DELEGATE_FIX })
}

/* ---- systemd ---- */

async function trySystemd(host: Host): Promise<Tried> {
  const manager: Manager = host.uid === 0 ? 'system' : 'user'
  const rung = `systemd-${manager}` as const
  if (!host.systemd) return refused(rung, '')
  const request = { manager, uid: host.uid, unit: UNIT }
  const before = await showUnit(request)
  if ('why' in before) {
    const silent = refused(rung, noManager(manager, before.why), manager === 'user' ? 'loginctl enable-linger' : '')
    return before.isPassing ? { ...silent, seen: chanceIn(UNIT) } : silent
  }
  if (!before.active) await startUnit(request)
  const unit = before.active ? before : await showUnit(request)
  const directory = 'why' in unit || unit.path === '' ? undefined : directoryOf(host.mount, unit.path)
  if (directory === undefined)
    return {
      ...refused(
        rung,
        `systemd did not start ${UNIT} (systemctl ${manager === 'user' ? '--user ' : ''}status ${UNIT})`,
      ),
      seen: chanceIn(UNIT),
    }
  const entry = manager === 'user' && !host.ownPath?.includes(`/user@${host.uid}.service/`)
  return tryCandidate(host, { rung, directory, fix: entry ? DELEGATE_FIX : DROP_IN })
}

const noManager = (manager: Manager, why: string): string =>
  manager === 'user' ? `no systemd user manager answers: ${why}` : `systemd does not answer: ${why}`

/* ---- direct ---- */

async function tryDirect(host: Host): Promise<Tried> {
  if (host.systemd) return refused('direct', '')
  if (!host.wholeTree) return refused('direct', '')
  if (host.uid !== 0) return refused('direct', '')
  return tryCandidate(host, {
    rung: 'direct',
    directory: host.mount.directory,
    fix: 'boot with cgroup_enable=memory, or a kernel that has it',
  })
}

/* ---- --cgroup-parent ---- */

const refuseParent = (directory: string, why: string, hint: string): SandboxError =>
  new SandboxError('POLICY_INVALID', `--cgroup-parent ${directory}: ${why}`, { hint })

const PARENT_HINT =
  'expected the absolute path of an empty cgroup v2 directory that this user may write to, e.g. --cgroup-parent /sys/fs/cgroup/sandboxes'

async function openParent(directory: string, { enter, observe }: Trial): Promise<CgroupFact> {
  const seen = observe(tellingFiles(directory))
  const wrong = parentObstacle(directory)
  if (wrong !== undefined) throw wrong
  const group = await prepareGroup(directory, enter)
  if (isObstacle(group)) throw refuseParent(directory, group.why, DELEGATE_FIX)
  const { controllers } = group
  const lacking =
    missingOf({ controllers }).length === 0
      ? ''
      : `${directory} has only these controllers: ${controllers.join(', ') || 'none'}`
  const found = { rung: 'parent', parent: directory, controllers, lacking } as const
  if (lacking === '') return { ...found, fix: '' }
  const telling = only(seen, tellingOf(directory, group))
  return { ...found, fix: PARENT_HINT, seen: group.isPassing ? chanceIn(directory) : telling }
}

/** linux/magic.h: CGROUP2_SUPER_MAGIC, CGROUP_SUPER_MAGIC. */
const CGROUP2_MAGIC = 0x63677270
const CGROUP1_MAGIC = 0x27e0eb

/** Everything that is wrong with a parent and can be seen without changing anything. */
function parentObstacle(directory: string): SandboxError | undefined {
  if (!isAbsolute(directory))
    return refuseParent(directory, 'expected an absolute path, got a relative one', PARENT_HINT)
  const found = statusOf(directory)
  if (typeof found === 'string') return refuseParent(directory, `cannot be opened (${found})`, `mkdir ${directory}`)
  if (!found.isDirectory()) return refuseParent(directory, 'is not a directory', PARENT_HINT)
  const { type } = statfsSync(directory)
  if (type === CGROUP1_MAGIC) return refuseParent(directory, 'is a cgroup of version 1', PARENT_HINT)
  if (type !== CGROUP2_MAGIC) return refuseParent(directory, 'is not in a cgroup v2 file system', PARENT_HINT)
  return groupObstacle(directory)
}

function statusOf(directory: string): Stats | string {
  try {
    return statSync(directory)
  } catch (error) {
    return codeOf(error)
  }
}

function groupObstacle(directory: string): SandboxError | undefined {
  const written = writeObstacle(directory)
  if (written !== undefined) return refuseParent(directory, written.why, DELEGATE_FIX)
  if (isTreeRoot(directory)) return undefined
  const kind = readFileSync(`${directory}/cgroup.type`, 'utf8').trim()
  if (kind !== 'domain') return refuseParent(directory, `is a "${kind}" group, expected "domain"`, PARENT_HINT)
  const processes = processesOf(directory)
  if (processes.length === 0) return undefined
  const list = processes.slice(0, 5).join(', ')
  return refuseParent(
    directory,
    `has ${processes.length} processes in it (${list}), so the kernel lets it have no limits for groups below`,
    `move them to a leaf: mkdir ${directory}/leaf && for p in $(cat ${directory}/cgroup.procs); do echo $p > ${directory}/leaf/cgroup.procs; done`,
  )
}
