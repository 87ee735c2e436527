/**
 * One cgroup directory: its offers, its preparation for runs, a trial.
 * Edge: the cgroup file system.
 *
 * A group can have controllers for its children or member processes, not both (cgroup-v2.rst, "No Internal Process
 * Constraint"), so the members of a delegated group move to a leaf first. The root of the tree is exempt.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { isAlive } from '../os/process-identity.ts'
import type { Enter } from './enter.ts'
import { WANTED_BY_ALL, type WantedController } from './rungs.ts'

/** Controllers worth having. io is enabled where it can be: only runs that ask for rates of disks have a limit there. */
const WANTED = [...WANTED_BY_ALL, 'io'] as const
/** Leaf for those who lived in the group before. Not named like a run, so that nothing ever takes it for a dead one. */
const LEAF = 'llm-do.callers'
/** Forks that were under way while the group was emptied need a second look, rarely a third. */
const MOVE_ROUNDS = 5
/** Files of these are only there when the controller really is enabled for a child. */
const LIMIT_FILES = { memory: 'memory.max', pids: 'pids.max', cpu: 'cpu.max', io: 'io.max' } as const

export interface Group {
  readonly directory: string
  /** Enabled for its children. */
  readonly controllers: readonly string[]
  /** One that it has was refused this time, and may not be the next. */
  readonly isPassing: boolean
}

/** Unusable, and why: one clause. */
export interface Obstacle {
  readonly why: string
  /** The next look may find none: it was busy, or slow. */
  readonly isPassing: boolean
}

export const isObstacle = (tried: Group | Obstacle): tried is Obstacle => 'why' in tried

export const readWords = (file: string): readonly string[] => readFileSync(file, 'utf8').split(/\s+/).filter(Boolean)

/** Process ids of those directly in the group. */
export const processesOf = (directory: string): readonly string[] => readWords(join(directory, 'cgroup.procs'))

/** The root of the whole tree has no type; what a container sees as root has one. */
export const isTreeRoot = (directory: string): boolean => !existsSync(join(directory, 'cgroup.type'))

/** Files that must be writable to make groups below, move into them and enable controllers (cgroup-v2.rst, "Delegation"). */
const DELEGATED_FILES = ['', 'cgroup.procs', 'cgroup.subtree_control'] as const

/** The files whose mode and owner tell whether a group may be used, and whose presence tells which controllers it could give. */
export const tellingFiles = (directory: string): readonly string[] => [
  ...DELEGATED_FILES.map((file) => join(directory, file)),
  ...filesOf(directory, WANTED_BY_ALL),
]

/** The files of a group with these controllers, the root of the tree aside. */
export const filesOf = (directory: string, controllers: readonly WantedController[]): readonly string[] =>
  controllers.map((name) => join(directory, LIMIT_FILES[name]))

/** Errors that stay until something observable changes. */
const LASTING = ['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'EINVAL', 'EOPNOTSUPP']
const isPassing = (code: string): boolean => !LASTING.includes(code)

/** A file that cannot be written. */
interface Refusal {
  readonly path: string
  readonly why: string
}

/** Why this caller cannot write there, or undefined when it can. */
export function writeObstacle(directory: string): Refusal | undefined {
  for (const file of DELEGATED_FILES) {
    const path = join(directory, file)
    const refused = errorOf(() => accessSync(path, constants.W_OK))
    if (refused !== undefined) return { path, why: `${path} cannot be written (${refused})` }
  }
  return undefined
}

/** Empties the group, enables what it has, tries it; a group that cannot be tried successfully is an obstacle. */
export async function prepareGroup(directory: string, enter: Enter): Promise<Group | Obstacle> {
  try {
    if (!isTreeRoot(directory)) moveToLeaf(directory)
    const refused = enableControllers(directory)
    const tried = await tryGroup(directory, enter)
    return { ...tried, isPassing: tried.isPassing || refused.some(isPassing) }
  } catch (error) {
    return { why: `${directory} cannot be used (${codeOf(error)})`, isPassing: isPassing(codeOf(error)) }
  }
}

function moveToLeaf(directory: string): void {
  const leaf = join(directory, LEAF)
  for (let round = 0; round < MOVE_ROUNDS; round++) {
    const processes = processesOf(directory)
    if (processes.length === 0) return
    mkdirSync(leaf, { recursive: true })
    for (const pid of processes) moveProcess(leaf, pid)
  }
}

/** Already gone is as good as moved. */
function moveProcess(leaf: string, pid: string): void {
  try {
    putFile(join(leaf, 'cgroup.procs'), pid)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}

/** @returns what those that were refused met with */
function enableControllers(directory: string): readonly string[] {
  const available = readWords(join(directory, 'cgroup.controllers'))
  const enabled = readWords(join(directory, 'cgroup.subtree_control'))
  const missing = WANTED.filter((name) => available.includes(name) && !enabled.includes(name))
  // One at a time: one that is refused (cpu, with real-time processes about) must not take the others with it. What
  // is enabled is read back afterwards.
  return missing.flatMap((name) => errorOf(() => putFile(join(directory, 'cgroup.subtree_control'), `+${name}`)) ?? [])
}

/** Names of groups that probe a place: this, the process id of their maker, and random letters. */
const TRIAL = 'llm-do-probe-'

/** Makes a group, has a process in it for a moment, sees which limits it has, removes it. */
async function tryGroup(directory: string, enter: Enter): Promise<Group | Obstacle> {
  removeDeadTrials(directory)
  const group = mkdtempSync(join(directory, `${TRIAL}${process.pid}-`))
  try {
    const refused = await enter(group)
    if (refused !== undefined) {
      const why = `no process may be moved to ${directory} (${refused.why})`
      // Removed by a probe in another pid namespace: nothing is wrong with the place.
      return { why, isPassing: refused.isPassing || !existsSync(group) }
    }
    const enabled = readWords(join(directory, 'cgroup.subtree_control'))
    const absent = absentLimits(group)
    return { directory, controllers: enabled.filter((name) => !absent.includes(name)), isPassing: false }
  } finally {
    await removeGroup(group)
  }
}

/**
 * Removes the groups of processes that were killed while they probed. The maker of one may live in another pid namespace and look
 * dead from here: its probe fails then, which is not remembered, and its next run probes again. A group that cannot be removed is left.
 */
export function removeDeadTrials(directory: string): void {
  errorOf(() => {
    const trials = readdirSync(directory).filter((name) => name.startsWith(TRIAL) && !isAlive(makerOf(name)))
    for (const name of trials) errorOf(() => rmdirSync(join(directory, name)))
  })
}

const makerOf = (trial: string): number => Number.parseInt(trial.slice(TRIAL.length), 10)

function absentLimits(group: string): readonly string[] {
  const absent = Object.entries(LIMIT_FILES).filter(([, file]) => !existsSync(join(group, file)))
  return absent.map(([controller]) => controller)
}

/** A process that entered is reaped before it is known to have ended, but the group stays busy until the kernel has released it. */
async function removeGroup(group: string, tries = 50): Promise<void> {
  const refused = errorOf(() => rmdirSync(group))
  if (refused === undefined || refused === 'ENOENT') return
  if (refused !== 'EBUSY' || tries === 0) throw new Error(`${group}: cannot be removed (${refused})`)
  await new Promise((resolve) => setTimeout(resolve, 2))
  await removeGroup(group, tries - 1)
}

/** One write to an existing file: these take whole words and must never be created by mistake. */
function putFile(path: string, text: string): void {
  const fd = openSync(path, constants.O_WRONLY)
  try {
    writeSync(fd, text)
  } finally {
    closeSync(fd)
  }
}

/** @returns undefined when it went well */
function errorOf(attempt: () => unknown): string | undefined {
  try {
    attempt()
    return undefined
  } catch (error) {
    return codeOf(error)
  }
}

export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error
    ? String(error.code)
    : error instanceof Error
      ? error.message
      : String(error)
