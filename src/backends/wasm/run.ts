/**
 * One WASI module in a process of node or wasmtime.
 * Edge: processes, the file system.
 *
 * On the bare host the module cannot reach the status descriptor, so its content is true; a node that ends without a word
 * was killed, by us at the deadline or by the machine. In the namespace sandbox the native chain enforces the
 * deadline and reports the end of node, whose exit code or signal tells how the module ended.
 */
import { existsSync } from 'node:fs'
import type { constants } from 'node:os'
import {
  type BackendRun,
  type ChildEnd,
  endedOnItsOwn,
  enginePathOf,
  isNative,
  type Launch,
  type Outcome,
  ownReason,
  REASON_OF_CAUSE,
  type Runner,
  runChild,
  SandboxError,
  type StartedRun,
  superviseNamespace,
  withExitStatus,
} from '../run-kit.ts'
import { buildWasm, moduleOf, type WasmRunInputs } from './build.ts'
import { wasmInputs } from './inputs.ts'
import { END_SIGNALS, type WasmReport } from './program.ts'
import { WASMTIME, wasmtimeWarnings } from './wasmtime.ts'

export interface WasmRun extends Pick<StartedRun, 'plan' | 'stdio' | 'signal'> {
  readonly run: WasmRunInputs
}

/** @throws SandboxError when the module cannot be loaded, or node cannot be started */
export async function superviseWasm({ stdio: { signals: _, ...stdio }, ...rest }: WasmRun): Promise<Outcome> {
  // A module takes no signals; those of the node around it mean its end (END_SIGNALS).
  const input = { ...rest, stdio }
  const { plan, run } = input
  const launch = buildWasm(plan, run)
  const program = run.command[0] ?? ''
  if (!existsSync(moduleOf(plan, run))) throw notFound(program)
  if (!isNative(launch)) return superviseBare(input, launch)
  const outcome = await superviseNamespace({ ...input, launch, deadlineMs: plan.limits.timeoutMs })
  return plan.runtime === WASMTIME ? concludeWasmtime(outcome) : concludeInside(outcome, program)
}

async function superviseBare({ plan, run, stdio, signal }: WasmRun, launch: Launch): Promise<Outcome> {
  const end = await runChild({
    launch,
    stdio,
    signal,
    deadlineMs: plan.limits.timeoutMs,
    stop: async (child) => void child.kill('SIGKILL'),
  })
  if (end.startErrno !== undefined)
    throw new SandboxError('SETUP_FAILED', `wasm: ${launch.file} cannot be started (${end.startErrno})`)
  return withExitStatus({
    ...concludeWasm(end, run.command[0] ?? ''),
    ...(end.cancelledBy !== undefined && { cancelledBy: end.cancelledBy }),
    stdout: end.stdout,
    stderr: end.stderr,
    setupMs: 0,
    durationMs: end.elapsedMs,
    usage: { cpuMs: 0, peakMemory: 0, peakPids: 1 },
    killed: 0,
    warnings: [],
  })
}

function concludeWasmtime(outcome: Outcome): Outcome {
  return { ...outcome, warnings: [...outcome.warnings, ...wasmtimeWarnings(outcome.exitCode)] }
}

type End = Pick<Outcome, 'reason' | 'exitCode' | 'signal' | 'failure'>

/** A trap is what other machines call an abort. */
const TRAP_SIGNAL: keyof typeof constants.signals = END_SIGNALS.trap

/**
 * Interprets the end of the node inside the sandbox.
 * @throws SandboxError COMMAND_NOT_EXECUTABLE when there was no module to run
 */
export function concludeInside(outcome: Outcome, program: string): Outcome {
  if (outcome.signal === END_SIGNALS.memory && endedOnItsOwn(outcome))
    return withExitStatus({ ...outcome, reason: 'memory', signal: TRAP_SIGNAL })
  if (outcome.signal === END_SIGNALS.setup && endedOnItsOwn(outcome)) throw notLoaded(lastLine(outcome), program)
  return outcome
}

/** The module has not run then, so the line can only be the program's; where stderr is the caller's it stands there. */
function lastLine({ stderr }: Outcome): Pick<SetupReport, 'step' | 'message'> {
  const line = Buffer.concat([stderr.head, stderr.tail]).toString('utf8').trim().split('\n').at(-1) ?? ''
  const [step = '', ...message] = line.split(': ')
  return line === '' ? { step: 'load', message: 'the line above says why' } : { step, message: message.join(': ') }
}

/**
 * Interprets the report, or its absence.
 * @throws SandboxError COMMAND_NOT_EXECUTABLE and the like when there was no module to run
 */
export function concludeWasm(end: Pick<ChildEnd, 'cause' | 'exitCode' | 'signal' | 'status'>, program: string): End {
  if (end.cause !== 'exit') return { reason: REASON_OF_CAUSE[end.cause], exitCode: null, signal: 'SIGKILL' }
  const report = end.status === '' ? undefined : (JSON.parse(end.status) as WasmReport)
  if (report === undefined) return { reason: ownReason(end, false), exitCode: end.exitCode, signal: end.signal }
  if (report.end === 'exit') return { reason: 'exit', exitCode: report.code, signal: null }
  if (report.end === 'trap') return { reason: 'signal', exitCode: null, signal: TRAP_SIGNAL }
  if (report.end === 'memory') return { reason: 'memory', exitCode: null, signal: TRAP_SIGNAL }
  throw notLoaded(report, program)
}

type SetupReport = Extract<WasmReport, { end: 'setup' }>

function notFound(program: string): SandboxError {
  return new SandboxError('COMMAND_NOT_FOUND', `${program}: not found in the sandbox`, { hint: 'check the name' })
}

function notLoaded({ step, message }: Pick<SetupReport, 'step' | 'message'>, program: string): SandboxError {
  if (step === 'read' && message.includes('ENOENT')) return notFound(program)
  if (step === 'preopen' || step === 'orders') {
    return new SandboxError('SETUP_FAILED', `wasm: ${step}: ${message}`, { hint: 'check that every zone is there' })
  }
  return new SandboxError('COMMAND_NOT_EXECUTABLE', `${program}: no WASI command (${step}: ${message})`, {
    hint: 'clang --target=wasm32-wasi, or cargo build --target wasm32-wasip1; WASI preview 1, with a _start',
  })
}

const inputsOf = ({ plan, facts, env, cwd, run }: BackendRun): WasmRunInputs => ({
  ...run,
  ...enginePathOf(facts, plan),
  wasm: wasmInputs({ env, cwd, wasmtime: facts.wasmtime?.path }),
})

export const runner: Runner = {
  build: (planned) => buildWasm(planned.plan, inputsOf(planned)),
  run: (started) => superviseWasm({ ...started, run: inputsOf(started) }),
}
