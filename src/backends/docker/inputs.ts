/**
 * What the docker backend must know of this process and its client.
 * Edge: /proc, the package's own files, the caller's environment.
 */
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { DockerFact } from '../../host/facts.ts'
import { helpersDirectory } from '../../native.ts'
import { clientEnvironment } from './client-environment.ts'
import type { DockerInputs } from './command-environment.ts'

export function dockerInputs(docker: DockerFact, hostEnv: Readonly<NodeJS.ProcessEnv>): DockerInputs {
  const [init, guard] = [ownInit(docker), ownGuard(docker)]
  return {
    program: docker.program,
    path: docker.path,
    platform: platformNow(),
    rootless: docker.rootless,
    remote: docker.remote,
    caller: { uid: process.getuid?.() ?? ORDINARY_ID, gid: process.getgid?.() ?? ORDINARY_ID },
    environment: clientEnvironment(hostEnv, docker.path),
    runner: runnerOf(process.pid) ?? `${processTable()}/${process.pid}`,
    hardLimits: hardLimits(),
    ...(init !== undefined && { init }),
    ...(guard !== undefined && { guard }),
  }
}

/** A daemon on another machine does not see our files; under SELinux a container may not open what a user made. */
function ownInit({ remote, labelled }: DockerFact): string | undefined {
  const file = join(helpersDirectory(), 'container-init')
  return !remote && labelled !== true && process.platform === 'linux' && existsSync(file) ? file : undefined
}

/** It watches this machine's files; those of a daemon on another machine are out of its reach. */
function ownGuard({ remote }: DockerFact): string | undefined {
  const file = join(helpersDirectory(), 'guard')
  return !remote && process.platform === 'linux' && existsSync(file) ? file : undefined
}

/** Windows has no such ids; Docker Desktop lets any id read its files. */
const ORDINARY_ID = 1000

function platformNow(): DockerInputs['platform'] {
  return process.platform === 'darwin' || process.platform === 'win32' ? process.platform : 'linux'
}

/** Position of the start time among the words after the program's name: proc_pid_stat(5), field 22. */
const START_TIME = 19

/**
 * Which table of processes a pid belongs to: this boot and pid namespace. One daemon may serve several machines and
 * containers, and a pid says nothing outside its own table.
 */
export function processTable(): string {
  const boot = readIfThere('/proc/sys/kernel/random/boot_id')?.trim()
  return boot === undefined ? hostname() : `${boot}/${/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? ''}`
}

/**
 * Names a process so that a later one with the same pid has another name.
 * @returns `<process table>/<pid>:<start time>`; undefined when there is no such process
 */
export function runnerOf(pid: number): string | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`)
  if (stat !== undefined) {
    const startTime = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[START_TIME]
    return `${processTable()}/${pid}:${startTime}`
  }
  return process.platform !== 'linux' && isAlive(pid) ? `${processTable()}/${pid}` : undefined
}

/** Whether the runner that a label names is gone for sure; one of another process table is not known to be. */
export function isGone(runner: string): boolean {
  const table = processTable()
  if (!runner.startsWith(`${table}/`)) return false
  const pid = Number.parseInt(runner.slice(table.length + 1), 10)
  return runnerOf(pid) !== runner
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Gone, or no /proc on this system: both mean "not known from here".
    return undefined
  }
}

/** Without /proc the client is remote anyway and nothing here bounds the container. */
function hardLimits(): DockerInputs['hardLimits'] {
  const limits = readIfThere('/proc/self/limits') ?? ''
  const hard = (name: string): number => {
    const word = new RegExp(`^${name} +\\S+ +(\\S+)`, 'm').exec(limits)?.[1]
    return word === undefined || word === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(word)
  }
  return { files: hard('Max open files'), processes: hard('Max processes') }
}
