/**
 * What every run in a container does, alone or in a session: make it, check it, kill it.
 * Edge: processes.
 */
import type { ChildProcess } from 'node:child_process'
import type { RunInputs } from '../backend/backend.ts'
import type { DockerInputs } from '../backend/docker-client.ts'
import type { Launch } from '../backend/launch.ts'
import { SandboxError } from '../error.ts'
import type { Plan } from '../plan/plan.ts'
import { type ChildEnd, type ChildStdio, runChild } from './child.ts'
import { ask, inspectContainer } from './docker-client.ts'
import { type ContainerReport, ignoredLimits, imageVolumes, limitComplaints } from './docker-conclude.ts'
import { refusalOf } from './docker-refusal.ts'

export interface DockerRun {
  readonly plan: Plan
  readonly run: RunInputs
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
}

export interface Container {
  readonly docker: DockerInputs
  readonly name: string
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
  const said = textOf(end.stderr)
  if (end.startErrno !== undefined) throw clientMissing(docker, end.startErrno)
  if (end.cause === 'deadline')
    throw refusalOf(`the daemon did not answer within ${CREATE_MS / 1000} s`, { program: docker.program, image })
  if (end.exitCode !== 0) throw refusalOf(said, { program: docker.program, image })
  return limitComplaints(said)
}

const MESSAGE_BYTES = 65_536
const CREATE_MS = 60_000

async function killClient(child: ChildProcess): Promise<void> {
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
      hint: 'somebody removed it, or the daemon restarted: run again',
    },
  )
}

interface LimitCheck extends Container {
  readonly complaints: readonly string[]
}

/**
 * Refuses to start a container that the daemon will not hold within the plan's limits: it is asked, not believed.
 * @throws SandboxError NO_BACKEND, or ZONE_INVALID when the image brings writable volumes of its own
 */
export async function checkContainer({ plan }: DockerRun, { docker, name, complaints }: LimitCheck): Promise<void> {
  const report = await inspectContainer(docker, name)
  if (report === undefined) throw lost({ docker, name })
  refuseVolumes(docker, report)
  const ignored = ignoredLimits(plan, report).map(
    ({ need, wanted, got }) => `${need} (wanted ${wanted}, held ${got || 'not at all'})`,
  )
  if (ignored.length === 0 && complaints.length === 0) return
  throw new SandboxError(
    'NO_BACKEND',
    `${docker.program} does not hold what was asked for: ${[...ignored, ...complaints].join('; ')}`,
    {
      hint: docker.rootless
        ? 'delegate the controllers (systemd: Delegate=cpu memory pids on user@.service), or leave the limit out'
        : 'let the daemon use the cgroup controllers, use --backend namespace, or leave the limit out',
    },
  )
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

/** Asks until the daemon does it: a container that is just being started cannot be killed yet. */
export async function killContainer({ docker, name }: Container): Promise<void> {
  for (let attempt = 0; attempt < KILL_ATTEMPTS; attempt += 1) {
    if ((await ask(docker, ['kill', name])).ok) return
    await new Promise((resolve) => setTimeout(resolve, KILL_PAUSE_MS))
  }
}

const KILL_ATTEMPTS = 10
const KILL_PAUSE_MS = 50

/** Exit statuses that docker's init and the command share. */
export const SHARED_STATUSES = [126, 127] as const

/** What execvp(3) takes when there is no PATH at all. */
const DEFAULT_PATH = '/bin:/usr/bin'

export function pathOf({ Config }: ContainerReport): string {
  return (Config.Env ?? []).find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? DEFAULT_PATH
}
