/**
 * One WASI module in a node process of its own.
 * Edge: processes.
 *
 * The module cannot reach the status descriptor, so what is read there is what happened; a node that ends without a word was
 * killed, by us at the deadline or by the machine.
 */
import type { constants } from 'node:os'
import type { RunInputs } from '../backend/backend.ts'
import { wasmBackend } from '../backend/wasm.ts'
import type { WasmReport } from '../backend/wasm-program.ts'
import { SandboxError } from '../error.ts'
import type { Plan } from '../plan/plan.ts'
import { type ChildEnd, type ChildStdio, runChild } from './child.ts'
import type { Outcome } from './outcome.ts'

export interface WasmRun {
  readonly plan: Plan
  readonly run: RunInputs
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
}

/** @throws SandboxError when the module cannot be loaded, or node cannot be started */
export async function superviseWasm({ plan, run, stdio, signal }: WasmRun): Promise<Outcome> {
  const launch = wasmBackend.build(plan, run)
  const end = await runChild({
    launch,
    stdio,
    signal,
    deadlineMs: plan.limits.timeoutMs,
    stop: async (child) => void child.kill('SIGKILL'),
  })
  if (end.startErrno !== undefined)
    throw new SandboxError('SETUP_FAILED', `wasm: ${launch.file} cannot be started (${end.startErrno})`)
  return {
    ...concludeWasm(end, run.command[0] ?? ''),
    ...(end.cancelledBy !== undefined && { cancelledBy: end.cancelledBy }),
    stdout: end.stdout,
    stderr: end.stderr,
    setupMs: 0,
    durationMs: end.elapsedMs,
    usage: { cpuMs: 0, peakMemory: 0, peakPids: 1 },
    killed: 0,
    warnings: [],
  }
}

type End = Pick<Outcome, 'cause' | 'exitCode' | 'signal' | 'failure'>

/** A trap is what other machines call an abort. */
const TRAP_SIGNAL: keyof typeof constants.signals = 'SIGABRT'

/**
 * What the report says, or its absence.
 * @throws SandboxError COMMAND_NOT_EXECUTABLE and the like when there was no module to run
 */
export function concludeWasm(end: Pick<ChildEnd, 'cause' | 'exitCode' | 'signal' | 'status'>, program: string): End {
  if (end.cause !== 'exit') return { cause: end.cause, exitCode: null, signal: 'SIGKILL' }
  const report = parse(end.status)
  if (report === undefined) return { cause: 'exit', exitCode: end.exitCode, signal: end.signal }
  if (report.end === 'exit') return { cause: 'exit', exitCode: report.code, signal: null }
  if (report.end === 'trap') return { cause: 'exit', exitCode: null, signal: TRAP_SIGNAL }
  if (report.end === 'memory') return { cause: 'memory', exitCode: null, signal: TRAP_SIGNAL }
  throw notLoaded(report, program)
}

function parse(status: string): WasmReport | undefined {
  return status === '' ? undefined : (JSON.parse(status) as WasmReport)
}

function notLoaded({ step, message }: Extract<WasmReport, { end: 'setup' }>, program: string): SandboxError {
  if (step === 'read' && message.includes('ENOENT')) {
    return new SandboxError('COMMAND_NOT_FOUND', `${program}: not found in the sandbox`, { hint: 'check the name' })
  }
  if (step === 'preopen' || step === 'orders') {
    return new SandboxError('SETUP_FAILED', `wasm: ${step}: ${message}`, { hint: 'check that every zone is there' })
  }
  return new SandboxError('COMMAND_NOT_EXECUTABLE', `${program}: no WASI command (${step}: ${message})`, {
    hint: 'clang --target=wasm32-wasi, or cargo build --target wasm32-wasip1; WASI preview 1, with a _start',
  })
}
