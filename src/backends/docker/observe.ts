/**
 * Looks at the docker or podman of this machine, by asking it.
 * Edge: processes, the caller's environment.
 */
import { basename, delimiter } from 'node:path'
import { type DockerFact, findProgram, jsonIn, type Probe, runProgram } from '../run-kit.ts'
import { clientEnvironment } from './client-environment.ts'

export interface DockerSearch {
  /** The caller's environment. LLM_DO_DOCKER in it names another client (`podman`, or a path). */
  readonly env: Readonly<NodeJS.ProcessEnv>
  /** Canonical directories whose programs are not trusted, see program.ts. */
  readonly notBelow: readonly string[]
  /** Milliseconds that the daemon has. */
  readonly patienceMs?: number
}

/**
 * Asks the client and its daemon. The client reads DOCKER_HOST and contexts from its environment.
 * @returns undefined when the program does not exist
 */
export async function observeDocker({
  env,
  notBelow,
  patienceMs = ANSWER_MS,
}: DockerSearch): Promise<DockerFact | undefined> {
  const [name, path] = [env['LLM_DO_DOCKER'] || 'docker', (env['PATH'] ?? '').split(delimiter)]
  const found = findProgram({ name, path, notBelow, uid: process.getuid?.() ?? -1 })
  return found === undefined ? undefined : observeDaemon(found.path, { env, patienceMs })
}

export const programOf = (path: string): DockerFact['program'] =>
  basename(path).includes('podman') ? 'podman' : 'docker'

/** Asks a client that was found already. */
export async function observeDaemon(
  path: string,
  { env, patienceMs = ANSWER_MS }: Omit<DockerSearch, 'notBelow'>,
): Promise<DockerFact> {
  const program = programOf(path)
  const reply = await requestInfo(path, clientEnvironment(env, path), patienceMs)
  return { program, path, ...readInfo({ ...reply, program, env }) }
}

/** Milliseconds; a daemon that answers `info` more slowly is too slow for a run. */
const ANSWER_MS = 10_000

interface InfoReply {
  readonly stdout: string
  readonly stderr: string
  readonly timedOut: boolean
  /** Milliseconds that it had. */
  readonly patienceMs?: number
}

/** Bytes; far more than any of them says. */
const MOST_INFO = 2 ** 22

/** Asked by `doctor` and before runs: node's own means are there sooner than execa. */
async function requestInfo(
  path: string,
  env: Readonly<Record<string, string>>,
  patienceMs: number,
): Promise<InfoReply> {
  const argv = ['info', '--format', '{{json .}}']
  // The caller's directory, also one that was removed: relative paths in the client's variables (DOCKER_CONFIG) begin there.
  const call = { file: path, argv, env, cwd: '.', patienceMs, mostOutput: MOST_INFO }
  const { stdout, stderr, inTime } = await runProgram(call)
  return { stdout, stderr, timedOut: !inTime, patienceMs }
}

/** The answer of `docker info`, as far as we read it. An older or absent daemon leaves words out. */
interface DockerInfo {
  readonly ServerVersion?: string
  readonly ServerErrors?: readonly string[]
  readonly SecurityOptions?: readonly string[]
  readonly OperatingSystem?: string
  readonly MemoryLimit?: boolean
  readonly SwapLimit?: boolean
  readonly CpuCfsQuota?: boolean
  readonly PidsLimit?: boolean
  readonly ClientInfo?: { readonly Version?: string; readonly Context?: string }
}

/** The answer of `podman info`: other words for the same things. */
interface PodmanInfo {
  readonly host?: {
    readonly cgroupControllers?: readonly string[] | null
    readonly cgroupVersion?: string
    readonly security?: { readonly rootless?: boolean; readonly selinuxEnabled?: boolean }
    readonly serviceIsRemote?: boolean
  }
  readonly version?: { readonly Version?: string }
}

export interface InfoInputs extends InfoReply {
  readonly program: DockerFact['program']
  readonly env: Readonly<NodeJS.ProcessEnv>
}

type Observed = Omit<DockerFact, 'program' | 'path'>

/** Interprets the answer of `info`. Pure. */
export function readInfo(inputs: InfoInputs): Observed {
  // A client that cannot reach its daemon may print half an answer or none.
  const info = jsonIn(inputs.stdout) ?? {}
  return inputs.program === 'podman' ? readPodman(info as PodmanInfo, inputs) : readDocker(info as DockerInfo, inputs)
}

function readDocker(info: DockerInfo, inputs: InfoInputs): Observed {
  const isReachable = (info.ServerVersion ?? '') !== ''
  const limits = { memory: info.MemoryLimit, swap: info.SwapLimit, cpus: info.CpuCfsQuota, pids: info.PidsLimit }
  return {
    clientVersion: info.ClientInfo?.Version ?? '',
    server: serverProbe(isReachable, { ...inputs, stderr: info.ServerErrors?.join('; ') || inputs.stderr }),
    ...(info.ServerVersion && { serverVersion: info.ServerVersion }),
    rootless: (info.SecurityOptions ?? []).some((option) => option.includes('name=rootless')),
    limits: LIMIT_WORDS.filter((word) => limits[word] === true),
    remote: isRemote(info, inputs.env),
    ...((info.SecurityOptions ?? []).some((option) => option.includes('name=selinux')) && { labelled: true }),
  }
}

const LIMIT_WORDS = ['memory', 'swap', 'cpus', 'pids'] as const

/** In a virtual machine (Desktop, colima and the like), or on another host: paths of this machine may be unknown there. */
function isRemote({ OperatingSystem, ClientInfo }: DockerInfo, env: Readonly<NodeJS.ProcessEnv>): boolean {
  const host = env['DOCKER_HOST'] ?? ''
  const overNetwork = /^(tcp|ssh|https?):/.test(host)
  const context = ClientInfo?.Context ?? 'default'
  return process.platform !== 'linux' || overNetwork || /desktop/i.test(`${OperatingSystem} ${context}`)
}

/** Controllers that hold each limit. podman on cgroup v1 has them as root only. */
const CONTROLLER = { memory: 'memory', swap: 'memory', cpus: 'cpu', pids: 'pids' } as const

function readPodman({ host, version }: PodmanInfo, inputs: InfoInputs): Observed {
  const rootless = host?.security?.rootless === true
  const noControllers = rootless && host?.cgroupVersion === 'v1'
  const controllers = noControllers ? [] : (host?.cgroupControllers ?? [])
  const serverVersion = version?.Version ?? ''
  return {
    clientVersion: serverVersion,
    server: serverProbe(host !== undefined, inputs),
    ...(serverVersion !== '' && { serverVersion }),
    rootless,
    limits: LIMIT_WORDS.filter((word) => controllers.includes(CONTROLLER[word])),
    remote: host?.serviceIsRemote === true || process.platform !== 'linux',
    ...(host?.security?.selinuxEnabled === true && { labelled: true }),
  }
}

function serverProbe(isReachable: boolean, { stderr, timedOut, program, patienceMs = ANSWER_MS }: InfoInputs): Probe {
  if (isReachable) return { ok: true }
  const message = timedOut ? `timed out after ${patienceMs / 1000} s` : stderr.trim().split('\n').at(-1) || 'no answer'
  return { ok: false, step: `${program} info`, errno: timedOut ? 'ETIMEDOUT' : '', message }
}
