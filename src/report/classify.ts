/**
 * Outcome -> result: words, hints and denials are added. The reason is the outcome's: events only, never an exit code that looks like something,
 * and never what the command printed.
 */

import { backendNamed } from '../backends/index.ts'
import { endedOnItsOwn, type Outcome, type SetupFailure } from '../backends/outcome.ts'
import { GROUP_PROCESSES_BWRAP, GROUP_PROCESSES_UNSHARE, QUIET_SIGNALS } from '../contract.ts'
import type { Pending } from '../cow/pending.ts'
import { type ErrorCode, exitStatusOf, type SandboxError } from '../error.ts'
import type { Plan } from '../plan/plan.ts'
import { profileName } from '../policy/profile-layer.ts'
import type { EngineName } from '../policy/values.ts'
import { formatDuration, formatSize } from '../text/units.ts'
import { type DecodedOutput, decodeOutput } from './decode-output.ts'
import { fullDenials, guardDenials, limitDenials } from './denials.ts'
import { type Explained, explainExec, explainLost, explainSetup, type FailureContext } from './explain-failure.ts'
import { filterDenials, saidFilterDenials } from './filter-denials.ts'
import {
  crossDeviceHint,
  type InvisiblePath,
  invisiblePathHint,
  isLimit,
  type LimitName,
  type LimitReason,
  limitOf,
  limitSource,
  type Origins,
  PACKAGES_HINT,
  raise,
  reachedPidsHint,
  seccompHint,
  sourceHint,
  UNBUFFERED_HINT,
} from './hints.ts'
import { loopbackHints } from './loopback.ts'
import { networkDenials, networkHints, networkUse, networkWarnings, recordHints } from './network.ts'
import { type LedPaths, observedDenials, observerWarnings } from './observed.ts'
import { configLockedHint, guardWarnings, protectedHeadline, protectedHints } from './protected.ts'
import type { Denial, Reason, Result } from './result.ts'
import { socketDenials } from './socket-denials.ts'
import { endOf, hiddenDenials, isOfPackages, stderrDenials } from './stderr-denials.ts'

/** Facts that only the caller of the run knows, all optional. */
export interface ClassifyExtras extends FailureContext {
  /** Sources of each key (policy.origins), to name the file or flag behind a limit. */
  readonly origins?: Origins
  /** Absolute paths among the command's words that exist on the host and are not visible inside. */
  readonly invisible?: readonly InvisiblePath[]
  /** Changes that wait to be applied. */
  readonly pending?: Pending | undefined
  /** The command's stdout was no terminal, so programs keep what they print until there is a block of it. */
  readonly isBuffered?: boolean
  /** Ports of this host that the command has looked for at the loopback of the sandbox. */
  readonly listening?: readonly number[]
  /** Names in the words of the command that it writes where it may not. */
  readonly written?: readonly string[]
  /** Hints about files of scratch that the command has named. */
  readonly lost?: readonly string[]
  /** Paths like `invisible` that stderr names. */
  readonly hidden?: readonly InvisiblePath[]
  readonly led?: LedPaths
  /** Home directories of this machine, in which credentials may lie. */
  readonly homes?: readonly string[]
}

const NO_FAILURE: SetupFailure = {
  code: 'SETUP_FAILED',
  step: 'sandbox',
  path: '',
  errno: '',
  detail: 'ended without saying why',
}

function explain(outcome: Outcome, command: readonly string[], context: FailureContext): Explained | undefined {
  const failure = outcome.failure ?? NO_FAILURE
  if (outcome.reason === 'lost') return explainLost(failure)
  if (outcome.reason !== 'setup') return undefined
  return failure.code === 'SETUP_FAILED'
    ? explainSetup(failure, context)
    : explainExec(failure, command[0] ?? '', context.interpreter)
}

function limitsOf({ limits }: Plan): Result['limits'] {
  return {
    ...(limits.memory && { memory: limits.memory }),
    ...(limits.cpus && { cpus: limits.cpus }),
    ...(limits.pids && { pids: limits.pids }),
    ...(limits.io && { io: limits.io }),
    ...(limits.timeoutMs !== undefined && { timeoutMs: limits.timeoutMs }),
    ...(limits.rwSize !== undefined && { rwSize: limits.rwSize }),
  }
}

/** Names the limit that ended the command, with the number that was reached. */
function stoppedBy(limit: LimitReason | 'rw-size', { limits, layer }: Plan): string {
  const at = (limit: number | undefined, words: (value: number) => string) => (limit === undefined ? '' : words(limit))
  const words: Readonly<Record<typeof limit, string>> = {
    timeout: `stopped after ${at(limits.timeoutMs, formatDuration)}`,
    'cpu-time': `stopped after ${at(limits.cpuTimeMs, formatDuration)} of processor time`,
    memory: `killed at the memory limit of ${at(limits.memory?.max, formatSize)}`,
    disk: `stopped when copy-on-write changes took more than ${at(layer?.size, formatSize)}`,
    'rw-size': `stopped when writable zones had grown by more than ${at(limits.rwSize, formatSize)}`,
    pids: `failed at the limit of ${at(limits.pids?.max, String)} processes`,
  }
  return words[limit]
}

const QUIET: ReadonlySet<string> = new Set(QUIET_SIGNALS)

function headline(reason: Reason, outcome: Outcome, plan: Plan, origins: Origins): string {
  if (isLimit(reason)) {
    const limit = limitOf(reason, outcome)
    return `${stoppedBy(limit, plan)} (${limitSource(limit, origins)})`
  }
  if (reason === 'seccomp') return `killed by the system call filter (seccomp: ${plan.seccomp.profile})`
  if (reason === 'protected') return protectedHeadline(outcome.guarded)
  if (reason === 'cancelled') return `cancelled${outcome.cancelledBy === undefined ? '' : ` by ${outcome.cancelledBy}`}`
  if (reason === 'signal' && !QUIET.has(outcome.signal ?? '')) return `ended by ${outcome.signal}`
  return ''
}

function killedWords(killed: number): string {
  return killed === 1 ? '1 process killed' : `${killed} processes killed`
}

function outputWords({ stdout, stderr }: Outcome, { truncated }: DecodedOutput): string {
  const dropped = truncated.stdout + truncated.stderr
  return `output kept ${formatSize(stdout.bytes + stderr.bytes - dropped)}, dropped ${formatSize(dropped)}`
}

interface MessageInput extends Pick<HintInput, 'reason' | 'outcome' | 'plan' | 'output'> {
  readonly origins: Origins
}

/** One line: what ended the command; what had to be killed for it; what of its output is missing. */
function messageOf({ reason, outcome, plan, output, origins }: MessageInput): string {
  const head = headline(reason, outcome, plan, origins)
  const dropped = output.truncated.stdout + output.truncated.stderr > 0
  return [
    head,
    head !== '' && outcome.killed > 0 ? killedWords(outcome.killed) : '',
    dropped ? outputWords(outcome, output) : '',
  ]
    .filter((part) => part !== '')
    .join('; ')
}

function warningsOf(reason: Reason, outcome: Outcome, plan: Plan): string[] {
  const oomKill = outcome.events?.oomKill ?? 0
  const survivedOom = oomKill > 0 && reason !== 'memory'
  return [
    ...plan.warnings,
    ...outcome.warnings,
    ...guardWarnings(outcome.guarded),
    ...(reason === 'setup' ? [] : networkWarnings(outcome)),
    ...observerWarnings(outcome),
    ...(survivedOom ? [`${killedWords(oomKill)} at the memory limit, the command went on`] : []),
  ]
}

/** Our processes that are counted together with the command's. */
const OWN_PROCESSES: Readonly<Record<EngineName, number>> = {
  bwrap: GROUP_PROCESSES_BWRAP,
  unshare: GROUP_PROCESSES_UNSHARE,
}

/**
 * True when the command certainly had all the processes it may have: at a look of the watchdog, or at its end, when all that
 * were left were killed with it. RLIMIT_NPROC counts no refusals, so more than this cannot be known.
 */
function reachedPids({ exitCode, signal, killed, usage }: Outcome, { limits, engine = 'bwrap' }: Plan): boolean {
  const { pids } = limits
  if (pids?.by !== 'rlimit' || exitCode === 0) return false
  const isCommandAmongKilled = exitCode === null && signal === null
  const atEnd = killed + (isCommandAmongKilled ? 0 : 1)
  return Math.max(atEnd, usage.peakPids - OWN_PROCESSES[engine]) >= pids.max
}

function usageOf({ usage: { cpuMs, peakMemory, peakPids, ...disks } }: Outcome): Result['usage'] {
  return { cpuMs, peakMemory, ...(peakPids > 0 && { peakPids }), ...disks }
}

interface HintInput {
  readonly reason: Reason
  readonly outcome: Outcome
  readonly plan: Plan
  readonly output: DecodedOutput
  readonly command: readonly string[]
  readonly extras: ClassifyExtras
  readonly error: Explained | undefined
}

/** The same rule as in native/client/result.c. */
function lostBuffer(
  reason: Reason,
  { stdout, stderr }: Outcome,
  command: readonly string[],
  plan: Plan,
  { isBuffered }: ClassifyExtras,
): boolean {
  const isStopped = reason === 'timeout' || reason === 'cpu-time'
  return (
    isStopped &&
    isBuffered === true &&
    stdout.bytes + stderr.bytes === 0 &&
    !plan.env.some(({ name }) => name === 'PYTHONUNBUFFERED') &&
    command.some((word) => word.includes('python'))
  )
}

/** In the order of their weight; a hint says what to try, it never claims to be the cause. */
function hintsOf({ reason, outcome, plan, output, command, extras, error }: HintInput): string[] {
  const failed = outcome.exitCode !== 0
  const { oomKill = 0, pidsMax = 0 } = outcome.events ?? {}
  const limits: readonly (readonly [LimitName, boolean])[] = [
    ['timeout', reason === 'timeout'],
    ['cpu-time', reason === 'cpu-time'],
    ['memory', reason === 'memory' || oomKill > 0],
    ['pids', pidsMax > 0],
    ['disk', reason === 'disk' && outcome.zonesGrown !== true],
    ['rw-size', reason === 'disk' && outcome.zonesGrown === true],
    ['output', output.truncated.stdout + output.truncated.stderr > 0],
  ]
  return [
    ...(error === undefined || error.hint === '' ? [] : [error.hint]),
    ...limits.filter(([, reached]) => reached).map(([limit]) => raise(limit, plan)),
    ...(lostBuffer(reason, outcome, command, plan, extras) ? [UNBUFFERED_HINT] : []),
    ...(reachedPids(outcome, plan) ? [reachedPidsHint(plan)] : []),
    ...(reason === 'seccomp' ? [seccompHint(plan)] : []),
    ...(failed ? crossDeviceHint(plan, output.stderr) : []),
    ...(reason === 'protected' ? protectedHints(outcome.guarded, plan) : []),
    ...(failed && outcome.guarded?.configLocked ? [configLockedHint(plan)] : []),
    ...(failed ? (extras.invisible ?? []).map(invisiblePathHint) : []),
    ...(failed && extras.hidden?.some(({ path }) => isOfPackages(path)) === true ? [PACKAGES_HINT] : []),
    ...(failed ? sourceHint(output.stderr === '' ? endOf(outcome.stderr) : output.stderr) : []),
    ...(failed ? networkHints(outcome) : []),
    ...loopbackHints(extras.listening ?? [], plan.network.local ?? []),
    ...(extras.written ?? []),
    ...(extras.lost ?? []),
    ...(plan.network.record === true ? recordHints(outcome) : []),
  ]
}

type DenialInput = Pick<HintInput, 'reason' | 'outcome' | 'plan' | 'command' | 'extras'>

function denialsOf({
  reason,
  outcome,
  plan,
  command,
  extras: { hidden = [], homes = [], led = new Map() },
}: DenialInput): readonly Denial[] {
  const failed = outcome.exitCode !== 0 && endedOnItsOwn(outcome)
  const observed = observedDenials(outcome, { plan, homes, led })
  return [
    ...guardDenials(outcome, plan),
    ...networkDenials(outcome),
    ...filterDenials(reason, plan),
    ...limitDenials(reason, outcome, plan),
    ...(outcome.exitCode === 0 ? [] : (observed ?? [])),
    ...(failed ? fullDenials(outcome, plan) : []),
    ...(failed ? saidFilterDenials(endOf(outcome.stderr), plan) : []),
    ...(failed ? socketDenials(endOf(outcome.stderr), command, plan) : []),
    ...(failed && observed === undefined ? [...saidDenials(outcome, plan), ...hiddenDenials(hidden)] : []),
  ]
}

/** Drops a message about a full file system that is already counted, so that it does not make a second row. */
function saidDenials(outcome: Outcome, plan: Plan): readonly Denial[] {
  const known = fullDenials(outcome, plan).map(({ fix }) => fix)
  return stderrDenials(endOf(outcome.stderr), plan).filter(
    ({ fix, layer }) => layer !== 'limit' || !known.includes(fix),
  )
}

/**
 * Makes the result of an outcome.
 * @param command as the caller gave it
 * @returns a result; `ok` is true only for exit code 0 that neither a limit nor a signal from outside brought about
 */
export function classify(
  plan: Plan,
  outcome: Outcome,
  command: readonly string[],
  extras: ClassifyExtras = {},
): Result {
  const { reason } = outcome
  const output = decodeOutput(outcome.stdout, outcome.stderr)
  const error = explain(outcome, command, { ...extras, zones: plan.zones })
  return {
    schema: 1,
    ok: reason === 'exit' && outcome.exitCode === 0,
    exitCode: outcome.exitCode,
    signal: outcome.signal,
    reason,
    stdout: output.stdout,
    stderr: output.stderr,
    truncated: output.truncated,
    encoding: output.encoding,
    durationMs: outcome.durationMs,
    setupMs: outcome.setupMs,
    exitStatus: outcome.exitStatus,
    command,
    usage: usageOf(outcome),
    message: error?.message ?? messageOf({ reason, outcome, plan, output, origins: extras.origins ?? {} }),
    denials: denialsOf({ reason, outcome, plan, command, extras }),
    hints: hintsOf({ reason, outcome, plan, output, command, extras, error }),
    ...(outcome.guarded?.hidden && { hidden: outcome.guarded.hidden }),
    ...(error && { error }),
    // The client has what follows from the plan (plan-words.ts).
    backend: plan.backend,
    profile: plan.profile,
    planHash: plan.hash,
    limits: limitsOf(plan),
    isolation: backendNamed(plan.backend).isolation(plan),
    ...(plan.devices && { devices: plan.devices.map(({ target }) => target) }),
    ...networkUse(outcome),
    warnings: warningsOf(reason, outcome, plan),
    ...extras.pending,
  }
}

function reasonOfRefusal(code: ErrorCode): Reason {
  if (code === 'COMMAND_BLOCKED') return 'denied'
  return code === 'BACKEND_FAILED' ? 'lost' : 'setup'
}

/** A run that was refused, or broke, before there was an outcome: the same object, with nothing in it but the error. */
export function refusal(error: SandboxError, command: readonly string[], profile: string): Result {
  const { code, hint, problems } = error
  const message = [error.message, ...problems.filter((problem) => !error.message.includes(problem))].join('\n')
  return {
    schema: 1,
    ok: false,
    exitCode: null,
    signal: null,
    reason: reasonOfRefusal(code),
    stdout: '',
    stderr: '',
    truncated: { stdout: 0, stderr: 0 },
    encoding: 'utf8',
    durationMs: 0,
    setupMs: 0,
    exitStatus: exitStatusOf(code),
    command,
    usage: { cpuMs: 0, peakMemory: 0 },
    message: error.message,
    denials: [],
    hints: hint === '' ? [] : [hint],
    error: { code, message, hint },
    backend: null,
    profile: profileName(profile),
    planHash: '',
    limits: {},
    isolation: { fs: 'none', pid: false, net: 'none', ipc: false, user: false, seccomp: 'off' },
    warnings: [],
  }
}
