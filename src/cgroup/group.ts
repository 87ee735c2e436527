/**
 * One cgroup directory: what it offers, making it fit to hold runs, trying it out.
 * Edge: the cgroup file system, a short-lived shell.
 *
 * A group can have controllers for its children or processes of its own, not both (cgroup-v2.rst, "No Internal Process
 * Constraint"), so whatever lives in a delegated group moves to a leaf first. The root of the tree is exempt.
 */
import { constants } from 'node:fs'
import { access, mkdir, mkdtemp, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ask } from '../ask.ts'
import { WANTED_BY_ALL, type WantedController } from './rungs.ts'

/** Controllers worth having. io is enabled where it can be: only runs that ask for rates of disks have a limit there. */
const WANTED = [...WANTED_BY_ALL, 'io'] as const
/** Leaf for those who lived in the group before. Not named like a run, so that nothing ever takes it for a dead one. */
const LEAF = 'llm-do.callers'
/** Forks that were under way while the group was emptied need a second look, rarely a third. */
const MOVE_ROUNDS = 5
/** A shell that has not moved by then never will. */
const PATIENCE_MS = 10_000

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

export const isObstacle = (answer: Group | Obstacle): answer is Obstacle => 'why' in answer

export const readWords = async (file: string): Promise<readonly string[]> =>
  (await readFile(file, 'utf8')).split(/\s+/).filter(Boolean)

/** Process ids of those directly in the group. */
export const processesOf = (directory: string): Promise<readonly string[]> => readWords(join(directory, 'cgroup.procs'))

/** The root of the whole tree has no type; what a container sees as root has one. */
export const isTreeRoot = (directory: string): Promise<boolean> =>
  access(join(directory, 'cgroup.type')).then(
    () => false,
    () => true,
  )

/** Files that must be writable to make groups below, move into them and enable controllers (cgroup-v2.rst, "Delegation"). */
const DELEGATED_FILES = ['', 'cgroup.procs', 'cgroup.subtree_control'] as const

/** What says by its mode and owner whether a group may be used, and by being there which controllers it could give. */
export const tellingFiles = (directory: string): readonly string[] => [
  ...DELEGATED_FILES.map((file) => join(directory, file)),
  ...filesOf(directory, WANTED_BY_ALL),
]

/** What is in a group, the root of the tree aside, as soon as it has these controllers. */
export const filesOf = (directory: string, controllers: readonly WantedController[]): readonly string[] =>
  controllers.map((name) => join(directory, LIMIT_FILES[name]))

/** Errors that stay until somebody changes something that can be seen. */
const LASTING = ['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'EINVAL', 'EOPNOTSUPP']
const isPassing = (error: unknown): boolean => !LASTING.includes(codeOf(error))

/** A file that cannot be written. */
interface Refusal {
  readonly path: string
  readonly why: string
}

/** Why this caller cannot write there, or undefined when it can. */
export async function writeObstacle(directory: string): Promise<Refusal | undefined> {
  for (const file of DELEGATED_FILES) {
    const path = join(directory, file)
    const refused = await access(path, constants.W_OK).then(() => undefined, codeOf)
    if (refused !== undefined) return { path, why: `${path} cannot be written (${refused})` }
  }
  return undefined
}

/** Empties the group, enables what it has, tries it; a group that cannot be tried successfully is an obstacle. */
export async function prepareGroup(directory: string): Promise<Group | Obstacle> {
  try {
    if (!(await isTreeRoot(directory))) await moveToLeaf(directory)
    const refused = await enableControllers(directory)
    const tried = await tryGroup(directory)
    return { ...tried, isPassing: tried.isPassing || refused.some(isPassing) }
  } catch (error) {
    return { why: `${directory} cannot be used (${codeOf(error)})`, isPassing: isPassing(error) }
  }
}

async function moveToLeaf(directory: string): Promise<void> {
  const leaf = join(directory, LEAF)
  for (let round = 0; round < MOVE_ROUNDS; round++) {
    const processes = await processesOf(directory)
    if (processes.length === 0) return
    await mkdir(leaf, { recursive: true })
    for (const pid of processes) await putFile(join(leaf, 'cgroup.procs'), pid).catch(ignoreGone)
  }
}

/** Already gone is as good as moved. */
function ignoreGone(error: unknown): void {
  if (codeOf(error) !== 'ESRCH') throw error
}

/** @returns what those that were refused met with */
async function enableControllers(directory: string): Promise<readonly unknown[]> {
  const available = await readWords(join(directory, 'cgroup.controllers'))
  const enabled = await readWords(join(directory, 'cgroup.subtree_control'))
  const missing = WANTED.filter((name) => available.includes(name) && !enabled.includes(name))
  // One at a time: one that is refused (cpu, with real-time processes about) must not take the others with it. What
  // is enabled is read back afterwards.
  const refused: unknown[] = []
  for (const name of missing)
    await putFile(join(directory, 'cgroup.subtree_control'), `+${name}`).catch((error: unknown) => refused.push(error))
  return refused
}

/** Makes a group, sees which limits it has, moves a process in, removes it. */
async function tryGroup(directory: string): Promise<Group | Obstacle> {
  const group = await mkdtemp(join(directory, 'llm-do-probe-'))
  try {
    const words = ['-c', 'echo 0 >"$1/cgroup.procs"', 'sh', group]
    const entered = await ask({ file: '/bin/sh', argv: words, patienceMs: PATIENCE_MS })
    if (!entered.ok)
      return {
        why: `no process may be moved to ${directory} (${lastWordsOf(entered.why)})`,
        isPassing: !entered.inTime,
      }
    const enabled = await readWords(join(directory, 'cgroup.subtree_control'))
    const absent = await absentLimits(group)
    return { directory, controllers: enabled.filter((name) => !absent.includes(name)), isPassing: false }
  } finally {
    await removeGroup(group)
  }
}

async function absentLimits(group: string): Promise<readonly string[]> {
  const looks = Object.entries(LIMIT_FILES).map(async ([controller, file]) => {
    const isThere = await access(join(group, file)).then(
      () => true,
      () => false,
    )
    return isThere ? [] : [controller]
  })
  return (await Promise.all(looks)).flat()
}

/** The shell is reaped before execa answers, but the group stays busy until the kernel has let go of it. */
async function removeGroup(group: string, tries = 50): Promise<void> {
  const refused = await rmdir(group).then(() => undefined, codeOf)
  if (refused === undefined || refused === 'ENOENT') return
  if (refused !== 'EBUSY' || tries === 0) throw new Error(`${group}: cannot be removed (${refused})`)
  await new Promise((resolve) => setTimeout(resolve, 2))
  await removeGroup(group, tries - 1)
}

/** One write to an existing file: these take whole words and must never be created by mistake. */
const putFile = (path: string, text: string): Promise<void> => writeFile(path, text, { flag: constants.O_WRONLY })

export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error
    ? String(error.code)
    : error instanceof Error
      ? error.message
      : String(error)

const lastWordsOf = (text: string): string => text.trim().split(': ').at(-1) ?? ''
