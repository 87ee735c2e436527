/**
 * The common part of every run in a container, alone or in a session: create, check, kill.
 * Edge: processes.
 */
import { dirname } from 'node:path'
import {
  type ChildEnd,
  type Launch,
  LIMIT_NEEDS,
  type Need,
  type Outcome,
  type Plan,
  runChild,
  SandboxError,
  type StartedRun,
  type Stoppable,
} from '../run-kit.ts'
import { dockerNetwork, type Reporter } from './build.ts'
import { inspectContainer, runClient } from './client.ts'
import type { DockerInputs, DockerRunInputs } from './command-environment.ts'
import { refusalOf } from './daemon-errors.ts'
import type { Lookup } from './explain-not-executed.ts'
import { startWatch, underWatch } from './guard.ts'
import { requireInit, withMounts } from './held-mounts.ts'
import { withNetwork } from './network.ts'
import { type ContainerReport, type Ignored, ignoredLimits, imageVolumes, limitComplaints } from './outcome.ts'
import { openReport, type ReportSocket } from './status-socket.ts'

export interface DockerRun extends Pick<StartedRun, 'plan' | 'stdio' | 'signal'> {
  readonly run: DockerRunInputs
  /** A limit that the daemon ignores is a warning, not a refusal. */
  readonly bestEffort?: boolean
}

export interface Container {
  readonly docker: DockerInputs
  readonly name: string
}

/** A container and where its init reports the end of the command; without a socket docker's own init has to do. */
export interface Reporting extends Container {
  readonly socket: ReportSocket | undefined
}

/**
 * Works in a container with everything that stands next to it: the inodes of its zones, the socket of our init, the network, the guard.
 * @param place.mode of the directory of the socket
 */
export function superviseIn(
  input: DockerRun,
  { name, reporter, mode }: { readonly name: string; readonly reporter: Reporter | undefined; readonly mode?: number },
  work: (input: DockerRun, container: Reporting) => Promise<Outcome>,
): Promise<Outcome> {
  return withMounts(input, async (held) => {
    const { plan, run } = held
    const { docker, runId } = run
    const socket = reporter && (await openReport(reporter.socket, mode))
    const shown = socket && reporter
    try {
      requireInit(plan, { docker, isThere: socket !== undefined })
      return await withNetwork({ plan, docker, reporter: shown }, async () => {
        const watch = await startWatch({ plan, docker, name, runId, socket: shown?.socket })
        return underWatch({ watch, signal: held.signal }, (signal) =>
          work({ ...held, signal }, { docker, name, socket }),
        )
      })
    } finally {
      socket?.close()
    }
  })
}

export interface Creation extends Container {
  readonly launch: Launch
  readonly image: string
}

/**
 * Makes the container and starts nothing.
 * @returns what the client complained of
 */
export async function createContainer({ launch, docker, image }: Creation): Promise<readonly string[]> {
  const end = await runChild({
    launch,
    stdio: { mode: 'capture', stdin: 'ignore', outputCap: MESSAGE_BYTES },
    deadlineMs: CREATE_MS,
    stop: killClient,
  })
  const message = textOf(end.stderr)
  if (end.startErrno !== undefined) throw clientMissing(docker, end.startErrno)
  if (end.cause === 'deadline')
    throw refusalOf(`the daemon did not answer within ${CREATE_MS / 1000} s`, { program: docker.program, image })
  if (end.exitCode !== 0) throw refusalOf(message, { program: docker.program, image })
  return limitComplaints(message)
}

export interface InitCreation extends Container {
  readonly plan: Plan
  readonly run: DockerRunInputs
  readonly image: string
  /** The host's part for our init; undefined = docker's init is used. */
  readonly reporter: Reporter | undefined
  readonly build: (run: DockerRunInputs) => Launch
}

export interface Created {
  readonly complaints: readonly string[]
  /** Whether it is our init that runs the command. */
  readonly hasInit: boolean
}

/** With our init, or without where the daemon does not see the same files as we do (snap, another mount namespace). */
export async function createWithInit({
  plan,
  run,
  image,
  reporter,
  build,
  ...container
}: InitCreation): Promise<Created> {
  const make = (inputs: DockerRunInputs) => createContainer({ launch: build(inputs), image, ...container })
  if (reporter === undefined) return { complaints: await make(withoutInit(run)), hasInit: false }
  try {
    return { complaints: await make(run), hasInit: true }
  } catch (error) {
    const isOurs =
      error instanceof SandboxError &&
      [reporter.init, dirname(reporter.socket)].some((file) => error.message.includes(file))
    if (!isOurs) throw error
    requireInit(plan, { docker: container.docker, isThere: false })
    return { complaints: await make(withoutInit(run)), hasInit: false }
  }
}

export function withoutInit(run: DockerRunInputs): DockerRunInputs {
  const { init: _init, ...docker } = run.docker
  return { ...run, docker }
}

/** A warning for a run whose end is known from the daemon only. */
export const INIT_UNREACHABLE =
  'the init of the container could not reach the runner: an end by a signal is shown as exit code 128+N'

const MESSAGE_BYTES = 65_536
const CREATE_MS = 60_000

async function killClient(child: Stoppable): Promise<void> {
  child.kill('SIGKILL')
}

export function textOf({ head, tail }: ChildEnd['stderr']): string {
  return Buffer.concat([head, tail]).toString('utf8')
}

function clientMissing(docker: DockerInputs, errno: string): SandboxError {
  return new SandboxError('NO_BACKEND', `${docker.program}: ${docker.path} cannot be started (${errno})`, {
    hint: 'install Docker, or podman with LLM_DO_DOCKER=podman',
  })
}

export function lost({ docker, name }: Container): SandboxError {
  return new SandboxError(
    'BACKEND_FAILED',
    `${docker.program}: container ${name} vanished before its end could be read`,
    {
      hint: 'it was removed, or the daemon restarted: look at what the command changed before you run it again',
    },
  )
}

interface LimitCheck extends Container {
  readonly complaints: readonly string[]
}

/**
 * Refuses to start a container if the daemon's record of it shows that it will not enforce the plan's limits.
 * @returns warnings about limits that are not enforced, where the policy accepts that (--best-effort)
 * @throws SandboxError NO_BACKEND, or ZONE_INVALID when the image declares writable volumes
 */
export async function checkContainer(
  input: DockerRun,
  { docker, name, complaints }: LimitCheck,
): Promise<readonly string[]> {
  const report = await inspectContainer(docker, name)
  if (report === undefined)
    throw new SandboxError('SETUP_FAILED', `${docker.program}: container ${name} vanished before it was started`, {
      hint: 'it was removed, or the daemon restarted: run again',
    })
  refuseVolumes(docker, report)
  refuseNetwork(docker, { plan: input.plan, report })
  return checkLimits(input, { report, complaints, docker })
}

interface Recorded extends Pick<LimitInputs, 'complaints' | 'docker'> {
  readonly report: ContainerReport
}

/** The same for a container whose record is at hand. */
export function checkLimits(
  { plan, bestEffort = false }: DockerRun,
  { report, complaints, docker }: Recorded,
): readonly string[] {
  const ignored = ignoredLimits(plan, report)
  const { warnings, refusal } = judgeLimits({ ignored, complaints, required: plan.needs, bestEffort, docker })
  if (refusal !== undefined) throw refusal
  return warnings
}

export interface LimitInputs {
  readonly ignored: readonly Ignored[]
  /** Lines that the client printed about limits. */
  readonly complaints: readonly string[]
  /** Limits that the run requires; --best-effort removes limits from it, unless `require` names them. */
  readonly required: readonly Need[]
  readonly bestEffort: boolean
  readonly docker: Pick<DockerInputs, 'program' | 'rootless'>
}

export interface LimitVerdict {
  readonly warnings: readonly string[]
  readonly refusal?: SandboxError
}

/** The consequence of a limit that the daemon does not enforce: a refusal, or a warning where the policy says best effort. Pure. */
export function judgeLimits({ ignored, complaints, required, bestEffort, docker }: LimitInputs): LimitVerdict {
  const lines = ignored.map(({ need, wanted, got }) => `${need} (wanted ${wanted}, held ${got || 'not at all'})`)
  const unheld = [...lines, ...complaints]
  if (unheld.length === 0) return { warnings: [] }
  const message = `${docker.program} does not hold what was asked for: ${unheld.join('; ')}`
  // A complaint names no need, so it may be about any that is required.
  const doubtful = complaints.length > 0 ? LIMIT_NEEDS : ignored.map(({ need }) => limitOf(need))
  const isRequired = doubtful.some((need) => required.includes(need))
  if (bestEffort && !isRequired) return { warnings: [`${message} (--best-effort)`] }
  const hint = docker.rootless
    ? 'delegate the controllers (systemd: Delegate=cpu memory pids on user@.service), or leave the limit out'
    : 'let the daemon use the cgroup controllers, use --backend namespace, leave the limit out, or --best-effort'
  return { warnings: [], refusal: new SandboxError('NO_BACKEND', message, { hint }) }
}

/** Swap is part of the limit of memory. */
function limitOf(need: Ignored['need']): Need {
  return need === 'swap' ? 'memory-limit' : need
}

function refuseVolumes(docker: DockerInputs, report: ContainerReport): void {
  const volumes = imageVolumes(report)
  if (volumes.length === 0) return
  throw new SandboxError(
    'ZONE_INVALID',
    `image ${report.Config.Image} declares ${volumes.join(', ')} as volumes: writable, and of any size`,
    {
      hint: `${volumes.map((path) => `--tmpfs ${path}`).join(' ')}   (or a zone there; ${docker.program} then makes no volume)`,
    },
  )
}

export interface NetworkQuestion {
  readonly plan: Plan
  readonly report: ContainerReport
}

/** @throws SandboxError NO_BACKEND when the container's own record names another network than the plan */
export function refuseNetwork({ program }: Pick<DockerInputs, 'program'>, { plan, report }: NetworkQuestion): void {
  const { NetworkMode: got } = report.HostConfig
  const wanted = dockerNetwork(plan.network.mode)
  if (got === wanted) return
  throw new SandboxError('NO_BACKEND', `${program} gave the container the network "${got}" instead of "${wanted}"`, {
    hint: '--backend namespace; see which plugin or setting of the daemon changes the network of containers',
  })
}

/** Asks until the daemon does it: a container that is just being started cannot be killed yet. */
export async function killContainer({ docker, name }: Container): Promise<void> {
  for (let attempt = 0; attempt < KILL_ATTEMPTS; attempt += 1) {
    if ((await runClient(docker, ['kill', name])).ok) return
    await new Promise((resolve) => setTimeout(resolve, KILL_PAUSE_MS))
  }
}

const KILL_ATTEMPTS = 10
const KILL_PAUSE_MS = 50

/** Exit statuses that docker's init and the command share. */
export const SHARED_STATUSES = [126, 127] as const

/** The PATH of execvp(3) where the variable is not set. */
const DEFAULT_PATH = '/bin:/usr/bin'

/** Where the command of a run is looked for in its container. */
export function lookupOf({ docker, name }: Container, { plan, run }: DockerRun, { Config }: ContainerReport): Lookup {
  const path = (Config.Env ?? []).find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? DEFAULT_PATH
  return { docker, container: name, program: run.command[0] ?? '', workdir: plan.workdir, path }
}
