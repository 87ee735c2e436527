/**
 * Checks that a run leaves nothing on the machine.
 *
 *     const mark = newMark()
 *     const before = await takeSnapshot({ mark })
 *     ... run something that carries the mark in its argv or environment ...
 *     await expectNothingLeft({ before, mark })
 *
 * Processes are found by the mark in /proc/PID/cmdline or environ, and by kinship: bwrap and PID 1 inside carry neither, but
 * they are the parents and children of one that does. Mounts, cgroups and records of runs are found by their name (`llm-do`), as a
 * difference to the time before, temporary files in TMPDIR, a directory for this test file alone (surroundings.ts). The
 * kernel takes a moment to tear namespaces down, so the world is checked again until it is clean or the grace is over.
 *
 * Others may run sandboxes on the same machine as the same user. A cgroup or record is theirs when a living process holds the record
 * of the run open, and nothing of these comes from this test file: is a child of this process, is kin of the mark, or names TMPDIR in
 * its command line, its environment, its working directory or the plan of its pool. A cgroup or record that no such process holds is
 * a leftover, even where another process made it. A plain user cannot look into root's processes, and leaves no cgroup of root's.
 */
import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { TEST_DIRECTORY } from './own-directory.ts'

interface Snapshot {
  /** `pid name`, of processes that belong to the mark. */
  readonly processes: readonly string[]
  /** Mount points of this mount namespace. */
  readonly mounts: readonly string[]
  /** Directories of the cgroup v2 tree. */
  readonly cgroups: readonly string[]
  /** Files in the directories of records of live runs. */
  readonly records: readonly string[]
  /** Entries of the directory for temporary files. */
  readonly temporaryFiles: readonly string[]
}

interface SnapshotOptions {
  readonly mark: string
  /** Runs directories to look into besides the default one of this machine's users. */
  readonly runsDirectories?: readonly string[]
}

interface Process {
  readonly pid: number
  readonly parent: number
  readonly name: string
  readonly words: string
  readonly directory: string
}

/** A word that occurs in no other process of this machine. */
export const newMark = (): string => `llm-do-mark-${process.pid}-${performance.now().toString(36).replace('.', '')}`

/** A directory that is not there, or gone by now, holds nothing. */
const nothing = (): readonly string[] => []

/** A process that ended between the list and the look has no words; one of another user shows only its command line. */
const wordsOf = (file: string): Promise<string> => readFile(file, 'latin1').catch(() => '')

async function readProcess(pid: number): Promise<Process | undefined> {
  const status = await wordsOf(`/proc/${pid}/status`)
  const parent = /^PPid:\s*(\d+)$/m.exec(status)?.[1]
  const isZombie = /^State:\s*Z/m.test(status)
  if (parent === undefined || isZombie) return undefined
  const words = await Promise.all(['cmdline', 'environ'].map((part) => wordsOf(`/proc/${pid}/${part}`)))
  const name = /^Name:\s*(.*)$/m.exec(status)?.[1] ?? ''
  const directory = await readlink(`/proc/${pid}/cwd`).catch(() => '')
  return { pid, parent: Number(parent), name, words: words.join('\0'), directory }
}

async function readProcesses(): Promise<readonly Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const processes = await Promise.all(pids.map(readProcess))
  return processes.filter((found) => found !== undefined)
}

/** This process and those that started it: kinship ends there. */
function ancestorsOf(pid: number, parents: ReadonlyMap<number, number>): ReadonlySet<number> {
  const chain = new Set([0, 1])
  for (let at: number | undefined = pid; at !== undefined && !chain.has(at); at = parents.get(at)) chain.add(at)
  return chain
}

/** The marked processes, their parents and their children, transitively, without the ones that run the test. */
function kinOf({
  processes,
  mark,
  self,
}: {
  processes: readonly Process[]
  mark: string
  self: number
}): readonly Process[] {
  const testers = ancestorsOf(self, new Map(processes.map(({ pid, parent }) => [pid, parent])))
  const others = processes.filter(({ pid }) => !testers.has(pid))
  const kin = new Set(others.filter(({ words }) => words.includes(mark)))
  const isRelated = (one: Process): boolean =>
    [...kin].some(({ pid, parent }) => pid === one.parent || parent === one.pid)
  const grown = (): boolean => {
    const found = others.filter((one) => !kin.has(one) && isRelated(one))
    for (const one of found) kin.add(one)
    return found.length > 0
  }
  while (grown());
  return [...kin]
}

/** A process and what started it, the closest first. */
function lineageOf(one: Process, processes: ReadonlyMap<number, Process>): readonly Process[] {
  const parent = processes.get(one.parent)
  return [one, ...(parent === undefined ? [] : lineageOf(parent, processes))]
}

/** A ready sandbox of a pool stands in `/` with an empty environment; the plan of its pool says where it is for. */
async function isOfThisFile({ pid, words, directory }: Process): Promise<boolean> {
  if (pid === process.pid || `${words}\0${directory}`.includes(tmpdir())) return true
  const [, pools, name] = /\0keep\0(\/[^\0]*\/pool)\0([0-9a-f]+)\0/.exec(words) ?? []
  return pools !== undefined && name !== undefined && (await wordsOf(join(pools, name, 'plan'))).includes(tmpdir())
}

/** A launcher that Node started ends with Node: without it, it is orphaned. */
const isOrphan = ({ parent, words }: Process): boolean => parent === 1 && words.includes('\0--id\0')

/** The client that carries out a run itself, by both of its names, and the program that Node, a pool or a keeper starts for one. */
const RUNNERS = new Set(['llm-do', 'llm-do-exec', 'launch'])

/** Ids of the runs whose records a process holds open. The client's command line has no id. */
async function runsHeldBy({ pid, name }: Process): Promise<readonly string[]> {
  if (!RUNNERS.has(name)) return []
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(nothing)
  const targets = await Promise.all(descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
  return targets.flatMap((target) => /\/runs\/([a-z0-9]+)$/.exec(target)?.[1] ?? [])
}

/** Ids of runs that a living process of another test file or user holds. */
async function runsOfOthers(all: readonly Process[], kin: readonly Process[]): Promise<ReadonlySet<string>> {
  const processes = new Map(all.map((one) => [one.pid, one]))
  const runs = await Promise.all(
    all.map(async (one) => {
      const ids = kin.includes(one) || isOrphan(one) ? [] : await runsHeldBy(one)
      if (ids.length === 0) return []
      const isOurs = await Promise.all(lineageOf(one, processes).map(isOfThisFile))
      return isOurs.includes(true) ? [] : ids
    }),
  )
  return new Set(runs.flat())
}

/** Other test files have their directories next to ours; what is mounted there is theirs. */
const isOfAnotherTest = (line: string): boolean => line.includes(TEST_DIRECTORY) && !line.includes(tmpdir())

/** Mount points with our name in the path, the root or the source. */
async function findMounts(): Promise<readonly string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  const named = lines.filter((line) => line.includes('llm-do') && !isOfAnotherTest(line))
  return named.map((line) => line.split(' ').slice(2, 5).join(' '))
}

async function findCgroups(): Promise<readonly string[]> {
  const mountinfo = await readFile('/proc/self/mountinfo', 'utf8')
  const root = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(mountinfo)?.[1]
  return root === undefined ? [] : ownDirectoriesBelow(root)
}

/** Root may make groups for anybody. */
const canBeOurs = async (path: string): Promise<boolean> => {
  const uid = process.getuid?.()
  return uid === 0 || (await stat(path).catch(() => undefined))?.uid === uid
}

/** Directories whose path below `root` has our name in it. */
async function ownDirectoriesBelow(root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => [])
  const found = await Promise.all(
    entries.map(async (entry) => {
      if (!entry.isDirectory()) return []
      const path = join(root, entry.name)
      const isOwn = path.includes('llm-do') && (await canBeOurs(path))
      return [...(isOwn ? [path] : []), ...(await ownDirectoriesBelow(path))]
    }),
  )
  return found.flat()
}

const findRecords = async (directories: readonly string[]): Promise<readonly string[]> => {
  const found = await Promise.all(
    directories.map(async (directory) =>
      (await readdir(directory).catch(nothing)).map((name) => join(directory, name)),
    ),
  )
  return found.flat()
}

/** The defaults of docs/internals/architecture.md, "Records of live runs", for every user of this machine. */
async function defaultRunsDirectories(): Promise<readonly string[]> {
  const runtime = process.env.XDG_RUNTIME_DIR
  const perUser = (await readdir('/tmp')).filter((name) => /^llm-do-\d+$/.test(name))
  return [
    '/run/llm-do/runs',
    ...(runtime === undefined ? [] : [join(runtime, 'llm-do/runs')]),
    ...perUser.map((name) => join('/tmp', name, 'runs')),
  ]
}

/** The tests' own directories are the tests' affair. */
const isLeftover = (name: string): boolean => name.includes('llm-do') && !/^llm-do-test/.test(name)

/** Looks at everything a run could leave. */
export async function takeSnapshot({ mark, runsDirectories = [] }: SnapshotOptions): Promise<Snapshot> {
  const directories = [...runsDirectories, ...(await defaultRunsDirectories())]
  const [mounts, cgroups, records] = await Promise.all([findMounts(), findCgroups(), findRecords(directories)])
  // After the cgroups and records: a launcher is there before what it makes.
  const processes = await readProcesses()
  const kin = kinOf({ processes, mark, self: process.pid })
  const others = await runsOfOthers(processes, kin)
  const isOurs = (path: string): boolean => !others.has(basename(path).replace(/^llm-do-/, ''))
  return {
    processes: kin.map(({ pid, name }) => `${pid} ${name}`),
    mounts,
    cgroups: cgroups.filter(isOurs),
    records: records.filter(isOurs),
    temporaryFiles: (await readdir(tmpdir())).filter(isLeftover).map((name) => join(tmpdir(), name)),
  }
}

const added = (before: readonly string[], after: readonly string[]): readonly string[] =>
  after.filter((one) => !before.includes(one))

/** Entries that were not there before. */
const differenceOf = (before: Snapshot, after: Snapshot): Snapshot => ({
  processes: added(before.processes, after.processes),
  mounts: added(before.mounts, after.mounts),
  cgroups: added(before.cgroups, after.cgroups),
  records: added(before.records, after.records),
  temporaryFiles: added(before.temporaryFiles, after.temporaryFiles),
})

/** One line for each thing, for people. */
const linesOf = (difference: Snapshot): readonly string[] =>
  Object.entries(difference).flatMap(([kind, things]) => things.map((thing: string) => `${kind}: ${thing}`))

/**
 * Fails with the list of what a run left behind.
 * @param graceMs how long the kernel may take to tear down; the contract says half a second, a loaded machine gets what it takes
 */
export async function expectNothingLeft(
  options: SnapshotOptions & { readonly before: Snapshot; readonly graceMs?: number },
): Promise<void> {
  const until = performance.now() + (options.graceMs ?? 30_000)
  const observe = async (): Promise<readonly string[]> =>
    linesOf(differenceOf(options.before, await takeSnapshot(options)))
  let left = await observe()
  while (left.length > 0 && performance.now() < until) {
    await sleep(50)
    // A leftover of a run stays; one that was not there at the check before belongs to another user's run that passes by.
    const now = await observe()
    left = left.filter((thing) => now.includes(thing))
  }
  if (left.length > 0) throw new Error(`left behind:\n  ${left.join('\n  ')}`)
}
