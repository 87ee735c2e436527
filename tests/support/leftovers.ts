/**
 * What a run leaves on the machine: nothing.
 *
 *     const mark = newMark()
 *     const before = await takeSnapshot({ mark })
 *     ... run something that carries the mark in its argv or environment ...
 *     await expectNothingLeft({ before, mark })
 *
 * Processes are found by the mark in /proc/PID/cmdline or environ, and by kinship: bwrap and PID 1 inside carry neither, but
 * they are the parents and children of one that does. Mounts, cgroups, records of runs and temporary files are found by
 * their name (`llm-do`), as a difference to the time before. The kernel takes a moment to tear namespaces down, so the world is
 * looked at again until it is clean or the grace is over.
 */
import { readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Snapshot {
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

export interface SnapshotOptions {
  readonly mark: string
  /** Runs directories to look into besides the default one of this machine's users. */
  readonly runsDirectories?: readonly string[]
}

interface Process {
  readonly pid: number
  readonly parent: number
  readonly name: string
  readonly words: string
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
  return { pid, parent: Number(parent), name: /^Name:\s*(.*)$/m.exec(status)?.[1] ?? '', words: words.join('\0') }
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
export function kinOf({
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

const findProcesses = async (mark: string): Promise<readonly string[]> =>
  kinOf({ processes: await readProcesses(), mark, self: process.pid }).map(({ pid, name }) => `${pid} ${name}`)

/** Mount points with our name in the path, the root or the source. */
async function findMounts(): Promise<readonly string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  return lines.filter((line) => line.includes('llm-do')).map((line) => line.split(' ').slice(2, 5).join(' '))
}

async function findCgroups(): Promise<readonly string[]> {
  const mountinfo = await readFile('/proc/self/mountinfo', 'utf8')
  const root = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(mountinfo)?.[1]
  return root === undefined ? [] : ownDirectoriesBelow(root)
}

/** Directories whose path below `root` has our name in it. */
async function ownDirectoriesBelow(root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => [])
  const found = await Promise.all(
    entries.map(async (entry) => {
      if (!entry.isDirectory()) return []
      const path = join(root, entry.name)
      return [...(path.includes('llm-do') ? [path] : []), ...(await ownDirectoriesBelow(path))]
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

/** The defaults of docs/architecture.md, "Records of live runs", for every user of this machine. */
async function defaultRunsDirectories(temporaryFiles: readonly string[]): Promise<readonly string[]> {
  const runtime = process.env.XDG_RUNTIME_DIR
  const perUser = temporaryFiles.filter((name) => /^llm-do-\d+$/.test(name)).map((name) => join(tmpdir(), name, 'runs'))
  return [...(runtime === undefined ? [] : [join(runtime, 'llm-do/runs')]), ...perUser]
}

/** `llm-do-UID` holds the records of live runs and stays; the tests' own directories are the tests' affair. */
const isLeftover = (name: string): boolean => name.includes('llm-do') && !/^llm-do-(\d+$|test)/.test(name)

/** Looks at everything a run could leave. */
export async function takeSnapshot({ mark, runsDirectories = [] }: SnapshotOptions): Promise<Snapshot> {
  const temporary = await readdir(tmpdir())
  const directories = [...runsDirectories, ...(await defaultRunsDirectories(temporary))]
  return {
    processes: await findProcesses(mark),
    mounts: await findMounts(),
    cgroups: await findCgroups(),
    records: await findRecords(directories),
    temporaryFiles: temporary.filter(isLeftover).map((name) => join(tmpdir(), name)),
  }
}

const added = (before: readonly string[], after: readonly string[]): readonly string[] =>
  after.filter((one) => !before.includes(one))

/** What is there now and was not there before. */
export const differenceOf = (before: Snapshot, after: Snapshot): Snapshot => ({
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
 * @param graceMs how long the kernel may take to tear down; the contract says half a second, a loaded machine gets more
 */
export async function expectNothingLeft(
  options: SnapshotOptions & { readonly before: Snapshot; readonly graceMs?: number },
): Promise<void> {
  const until = performance.now() + (options.graceMs ?? 3_000)
  const look = async (): Promise<readonly string[]> =>
    linesOf(differenceOf(options.before, await takeSnapshot(options)))
  let left = await look()
  while (left.length > 0 && performance.now() < until) {
    await sleep(50)
    // What a run left stays; what was not there at the look before belongs to somebody else's run that passes by.
    const now = await look()
    left = left.filter((thing) => now.includes(thing))
  }
  if (left.length > 0) throw new Error(`left behind:\n  ${left.join('\n  ')}`)
}
