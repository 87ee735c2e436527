/** The library: `import { exec, plan, doctor } from 'llm-do-exec'`. */

import type { Plan } from './plan/plan.ts'
import { type ExecOptions, prepare } from './run/plan-run.ts'

export type { Change, ChangeKind } from './cow/change.ts'
export type { Applied, ApplyOptions } from './cow/layers.ts'
export { type DoctorReport, doctor } from './doctor/checks.ts'
export { ERROR_CODES, type ErrorCode, SandboxError } from './error.ts'
export {
  type ExecuteOptions,
  type ExecutionResult,
  SandboxExecutor,
  type SandboxExecutorOptions,
} from './executor.ts'
export type { Plan } from './plan/plan.ts'
export type { SandboxInput } from './policy/keys/index.ts'
export type { PolicyLayer } from './policy/layer.ts'
export type { Policy } from './policy/policy.ts'
export type { Need, Zone, ZoneMode } from './policy/values.ts'
export { openSandbox, type Sandbox, type SandboxCommand, type SandboxOptions } from './pool/sandbox.ts'
export type { Denial, Reason, Result } from './report/result.ts'
export type { Diff } from './run/diff.ts'
export { type CopyOnWrite, type ExecResult, execWithHandle as exec } from './run/layer-handle.ts'
export type { ExecOptions } from './run/plan-run.ts'

/** What would be done, without doing it. */
export async function plan(options: ExecOptions): Promise<Plan> {
  return (await prepare(options)).plan
}
