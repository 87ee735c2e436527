/** Interprets the end of a container: pure functions over the answer of `docker inspect`. */

import {
  type ChildEnd,
  endedOnItsOwn,
  type LaunchStatus,
  NO_CAPTURE,
  type Outcome,
  outcomeOf,
  ownReason,
  type Plan,
  parseLaunchStatus,
  REASON_OF_CAUSE,
  type SetupFailure,
  withExitStatus,
} from '../run-kit.ts'
import { heldByDocker, withSwap } from './build.ts'
import type { InitReport } from './status-socket.ts'

/** `docker inspect`, as far as we read it; podman gives the same shape. */
export interface ContainerReport {
  readonly State: {
    readonly Status: string
    readonly ExitCode: number
    readonly OOMKilled: boolean
    readonly Error: string
    readonly StartedAt: string
    readonly FinishedAt: string
  }
  readonly HostConfig: {
    readonly Memory: number
    readonly MemorySwap: number
    readonly NanoCpus: number
    readonly CpuQuota: number
    readonly CpuPeriod: number
    readonly PidsLimit: number | null
    readonly NetworkMode: string
  }
  readonly Config: { readonly Env: readonly string[] | null; readonly Image: string }
  readonly Mounts: readonly { readonly Type: string; readonly Destination: string }[] | null
}

export interface Ignored {
  readonly need: 'memory-limit' | 'swap' | 'cpus-limit' | 'pids-limit'
  readonly wanted: number
  readonly got: number
}

/** Docker keeps cores as billionths. */
const NANO = 1e9

/** Limits of the plan that the daemon took off the container again, as its own record of it shows. */
export function ignoredLimits({ limits }: Plan, { HostConfig: got }: ContainerReport): readonly Ignored[] {
  const { memory, cpus, pids } = heldByDocker(limits)
  const cores = got.NanoCpus > 0 ? got.NanoCpus / NANO : got.CpuPeriod > 0 ? got.CpuQuota / got.CpuPeriod : 0
  const rows: readonly { need: Ignored['need']; wanted: number | undefined; got: number }[] = [
    { need: 'memory-limit', wanted: memory?.max, got: got.Memory },
    // -1 and 0 mean "as much swap as there is"; when the memory limit itself is gone one line is enough.
    { need: 'swap', wanted: memory && got.Memory > 0 ? withSwap(memory, limits) : undefined, got: got.MemorySwap },
    { need: 'cpus-limit', wanted: cpus?.max, got: cores },
    { need: 'pids-limit', wanted: pids?.max, got: got.PidsLimit ?? 0 },
  ]
  return rows.filter((row): row is Ignored => row.wanted !== undefined && Math.abs(row.got - row.wanted) > 0.01)
}

/** Messages of docker and podman on stderr about a limit that they do not enforce. */
const IGNORED = /discarded|ignored|not supported|does not support|without swap/i

/** Complaints of `create` about limits, one line each. */
export function limitComplaints(stderr: string): readonly string[] {
  return stderr
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => IGNORED.test(line))
}

/** Directories that the image declares as volumes: writable, without a size limit, and not named by the policy. */
export function imageVolumes({ Mounts }: ContainerReport): readonly string[] {
  return (Mounts ?? []).filter(({ Type }) => Type === 'volume').map(({ Destination }) => Destination)
}

/** Whether PID 1 of the container ever ran. */
export function hasRun({ State }: ContainerReport): boolean {
  return State.Status !== 'created' && State.Status !== 'configured' && State.Status !== 'initialized'
}

export interface DockerEnd {
  readonly report: ContainerReport
  readonly client: ChildEnd
  /** Why the command could not be executed, found out afterwards. */
  readonly notExecuted?: SetupFailure
  /** The report of our init; absent in a container without it. */
  readonly initReport?: InitReport | undefined
  /** A system call filter is on: SIGSYS is its doing. */
  readonly isFiltered: boolean
  /** Milliseconds from the first word to the daemon until the end. */
  readonly totalMs: number
  readonly warnings: readonly string[]
}

/** The outcome of a container that was created: from the report of our init, else from what the daemon knows, which is less. */
export function concludeDocker(end: DockerEnd): Outcome {
  const status = end.initReport === undefined ? undefined : parseLaunchStatus(end.initReport.line)
  return status === undefined || end.client.cause !== 'exit' ? withoutStatus(end) : withStatus(end, status)
}

function withStatus({ report, client, isFiltered, totalMs, warnings }: DockerEnd, status: LaunchStatus): Outcome {
  const reported = outcomeOf(status, client)
  // Some engines keep no record of it; the counter of the container's cgroup knows, where it can be read inside.
  const oomKill = Math.max(reported.events?.oomKill ?? 0, report.State.OOMKilled ? 1 : 0)
  const events = oomKill === 0 ? reported.events : { pidsMax: 0, throttledMs: 0, ...reported.events, oomKill }
  const outcome = { ...reported, ...(events !== undefined && { events }) }
  return withExitStatus({
    ...outcome,
    // The init knows neither the filter nor what the daemon has counted.
    reason: endedOnItsOwn(outcome) ? ownReason(outcome, isFiltered) : outcome.reason,
    setupMs: Math.max(0, totalMs - outcome.durationMs),
    warnings,
  })
}

/** Reports no signal: docker's exit code 128+N may be an exit or a signal, so it is given as an exit code. */
function withoutStatus({ report, client, notExecuted, initReport, totalMs, warnings }: DockerEnd): Outcome {
  const durationMs = hasRun(report) ? milliseconds(report) : 0
  return withExitStatus({
    ...endOf({ report, client, initReport, ...(notExecuted && { notExecuted }) }),
    ...(client.cancelledBy !== undefined && { cancelledBy: client.cancelledBy }),
    // Before the command there is only what the client itself printed.
    stdout: notExecuted === undefined ? client.stdout : NO_CAPTURE,
    stderr: notExecuted === undefined ? client.stderr : NO_CAPTURE,
    setupMs: Math.max(0, totalMs - durationMs),
    durationMs,
    usage: { cpuMs: 0, peakMemory: 0, peakPids: 0 },
    ...(report.State.OOMKilled && { events: { oomKill: 1, pidsMax: 0, throttledMs: 0 } }),
    killed: 0,
    warnings,
  })
}

type End = Pick<Outcome, 'reason' | 'exitCode' | 'signal' | 'failure'>

const INIT_ENDED: SetupFailure = {
  code: 'BACKEND_FAILED',
  step: 'init of the container ended without a report',
  path: '',
  errno: '',
  detail: '',
}

/** 128 + SIGKILL. */
const KILLED = 137

function endOf({
  report,
  client,
  notExecuted,
  initReport,
}: Pick<DockerEnd, 'report' | 'client' | 'notExecuted' | 'initReport'>): End {
  const { OOMKilled, ExitCode } = report.State
  if (client.cause !== 'exit') return { reason: REASON_OF_CAUSE[client.cause], exitCode: null, signal: 'SIGKILL' }
  if (notExecuted !== undefined) return { reason: 'setup', exitCode: null, signal: null, failure: notExecuted }
  if (OOMKilled && ExitCode === KILLED) return { reason: 'memory', exitCode: null, signal: 'SIGKILL' }
  // Init tells every end but its own. It started the command right after it had connected.
  if (initReport?.connected === true) return { reason: 'lost', exitCode: null, signal: null, failure: INIT_ENDED }
  return { reason: 'exit', exitCode: ExitCode, signal: null }
}

function milliseconds({ State }: ContainerReport): number {
  const ms = Date.parse(State.FinishedAt) - Date.parse(State.StartedAt)
  return Number.isFinite(ms) && ms > 0 ? ms : 0
}
