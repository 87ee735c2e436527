/** Turns the one line of JSON that native/launch reports into an outcome. Pure. */
import { constants } from 'node:os'
import { posix } from 'node:path'
import { type LaunchStatus, REASONS } from '../contract.ts'
import type { ErrorCode } from '../error.ts'
import { mappingIn } from '../text/json.ts'
import { NO_CAPTURE } from './capture.ts'
import type { ChildEnd } from './child-process.ts'
import { signalName, withExitStatus } from './ending.ts'
import type { Capture, Guarded, NetworkReport, Outcome, SetupFailure } from './outcome.ts'

/** @returns undefined for anything but a whole report: launch was killed before it could tell */
export function parseLaunchStatus(line: string): LaunchStatus | undefined {
  const status = mappingIn(line) as LaunchStatus | undefined
  return status !== undefined && REASONS.includes(status.reason) ? status : undefined
}

/** The end of the launch process and what it reported, as one outcome. */
export function outcomeOfLaunch(end: ChildEnd): Outcome {
  const status = parseLaunchStatus(end.status)
  return status === undefined ? withoutReport(end) : outcomeOf(status, end)
}

export interface Captured {
  readonly stdout: Capture
  readonly stderr: Capture
}

/** The same for a launch that the C client started; without captured streams it had the caller's own. */
export function outcomeOfStatus(
  status: string,
  { stdout, stderr }: Captured = { stdout: NO_CAPTURE, stderr: NO_CAPTURE },
): Outcome {
  return outcomeOfLaunch({
    cause: 'exit',
    exitCode: null,
    signal: null,
    stdout,
    stderr,
    status,
    elapsedMs: 0,
  })
}

const NO_USAGE = { cpuMs: 0, peakMemory: 0, peakPids: 0 } as const

/** The step of a launch that ended without a report: how far it came is not known. */
const WITHOUT_REPORT = 'launch'

/** Launch that could not be started has run nothing. Any other that reports nothing may have started the command. */
function withoutReport(end: ChildEnd): Outcome {
  const { stdout, stderr, startErrno, signal, exitCode, elapsedMs } = end
  const how = signal ?? (exitCode === null ? undefined : `status ${exitCode}`)
  const detail = how === undefined ? 'it ended without a report' : `it ended with ${how} and no report`
  return withExitStatus({
    reason: startErrno !== undefined ? 'setup' : end.cause === 'cancelled' ? 'cancelled' : 'lost',
    exitCode: null,
    signal: null,
    failure: {
      code: startErrno === undefined ? 'BACKEND_FAILED' : 'SETUP_FAILED',
      step: startErrno === undefined ? WITHOUT_REPORT : 'start launch',
      path: '',
      errno: startErrno ?? '',
      detail: startErrno === undefined ? detail : '',
    },
    ...(end.cancelledBy === undefined ? {} : { cancelledBy: end.cancelledBy }),
    stdout,
    stderr,
    setupMs: elapsedMs,
    durationMs: 0,
    usage: NO_USAGE,
    killed: 0,
    warnings: [],
  })
}

/** A report with the streams of the process that it is about. */
export function outcomeOf(
  status: LaunchStatus,
  { stdout, stderr, cancelledBy }: Pick<ChildEnd, 'stdout' | 'stderr' | 'cancelledBy'>,
): Outcome {
  const started = status.startedNs === 0 ? status.endedNs : status.startedNs
  const by = status.reason === 'cancelled' ? (cancelledBy ?? cancelledBySignal(status)) : undefined
  return {
    reason: status.reason,
    exitCode: status.exitCode < 0 ? null : status.exitCode,
    signal: status.signal === 0 ? null : signalName(status.signal),
    exitStatus: status.exitStatus,
    ...(status.step === '' ? {} : { failure: failureOf(status) }),
    ...(by === undefined ? {} : { cancelledBy: by }),
    stdout,
    stderr: status.said === undefined ? stderr : saidBy(status.said),
    setupMs: milliseconds(started - status.begunNs),
    durationMs: milliseconds(status.endedNs - started),
    usage: {
      cpuMs: Math.max(0, status.cpuUs) / 1000,
      peakMemory: Math.max(0, status.peakMemory),
      peakPids: Math.max(0, status.peakPids),
      ...(status.readBytes >= 0 && { readBytes: status.readBytes }),
      ...(status.writeBytes >= 0 && { writeBytes: status.writeBytes }),
    },
    ...eventsOf(status),
    killed: status.killed,
    ...guardedOf(status),
    ...networkOf(status),
    ...observedOf(status),
    ...layerOf(status),
    ...(status.zonesGrown === true ? { zonesGrown: true } : {}),
    ...(status.full === undefined ? {} : { full: status.full }),
    warnings: [],
  }
}

/** Launch keeps the end of a stderr that it does not capture. */
function saidBy(hex: string): Capture {
  const head = Buffer.from(hex, 'hex')
  return { ...NO_CAPTURE, head, bytes: head.length }
}

const milliseconds = (ns: number): number => Math.max(0, Math.round(ns / 1000) / 1000)

const cancelledBySignal = ({ cancelledBy }: LaunchStatus): string | undefined =>
  cancelledBy === 0 ? undefined : signalName(cancelledBy)

/** Not getSystemErrorName of node:util, which lacks ENOEXEC: it knows only the errors of libuv. */
function errnoName(number: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === number)?.[0] ?? `errno ${number}`
}

function failureOf({ code, step, path, errno, detail }: LaunchStatus): SetupFailure {
  const isInterpreter = step === 'interpreter'
  return {
    code: code as ErrorCode,
    step,
    path,
    errno: errno === 0 ? '' : errnoName(errno),
    detail: isInterpreter ? step : detail.trim(),
  }
}

/** The findings of the guard, from its own line or launch's. */
export function guardedOf(
  status: Pick<
    LaunchStatus,
    'attempts' | 'protected' | 'setIds' | 'setId' | 'hidden' | 'hiddenPaths' | 'configLocked' | 'unwatched'
  >,
): {
  readonly guarded?: Guarded
} {
  const { attempts = 0, protected: made = [], setIds = 0, setId = [], configLocked = false, unwatched } = status
  const { hidden = 0, hiddenPaths = [] } = status
  if (attempts === 0 && setIds === 0 && hidden === 0 && !configLocked && unwatched !== true) return {}
  const seen = { attempts: { count: attempts, first: made }, setId: { count: setIds, first: setId }, configLocked }
  return {
    guarded: {
      ...seen,
      ...(hidden > 0 ? { hidden: { count: hidden, paths: hiddenPaths } } : {}),
      ...(unwatched === true ? { unwatched } : {}),
    },
  }
}

/** The findings of the helper of a restricted network, likewise. */
export function networkOf({
  network,
  networkOmitted = 0,
  networkLost = false,
}: Pick<LaunchStatus, 'network' | 'networkOmitted' | 'networkLost'>): {
  readonly network?: NetworkReport
} {
  return network === undefined ? {} : { network: { hosts: network, omitted: networkOmitted, isLost: networkLost } }
}

function observedOf({
  observed,
  observedOmitted = 0,
  observedUnread = 0,
  observerLost = false,
}: LaunchStatus): Pick<Outcome, 'observed'> {
  if (observed === undefined) return {}
  return { observed: { rows: observed, omitted: observedOmitted, unread: observedUnread, isLost: observerLost } }
}

function layerOf({ layer }: LaunchStatus): Pick<Outcome, 'layer'> {
  return layer === undefined ? {} : { layer: { directory: posix.dirname(layer), id: posix.basename(layer) } }
}

function eventsOf(status: LaunchStatus): Pick<Outcome, 'events'> {
  if (status.oomKills < 0 && status.pidsRefused < 0 && status.throttledUs < 0) return {}
  const { oomKills, pidsRefused, throttledUs } = status
  return {
    events: {
      oomKill: Math.max(0, oomKills),
      pidsMax: Math.max(0, pidsRefused),
      throttledMs: Math.max(0, throttledUs) / 1000,
    },
  }
}
