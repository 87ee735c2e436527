/**
 * The library: `import { exec, spawn, plan, doctor, openSandbox, serveTasks } from 'llm-do-exec'`; docs/reference/library.md shows it.
 * Edge: process.env.
 */
import { type DoctorReport, doctor as examine } from './doctor/checks.ts'
import type { ServeTasksOptions } from './fleet/serve-tasks.ts'
import { checkOptions } from './library/check-options.ts'
import type { Environment } from './run/caller.ts'

export type { Change, ChangeKind } from './cow/change.ts'
export type { Applied, ApplyOptions } from './cow/layers.ts'
export type { DoctorReport } from './doctor/checks.ts'
export { ERROR_CODES, type ErrorCode, SandboxError } from './error.ts'
export {
  type ExecuteOptions,
  type ExecutionResult,
  SandboxExecutor,
  type SandboxExecutorOptions,
} from './executor.ts'
export type { FinishedTask, RefusedTask, Task, TaskOutput, TaskReport, TaskSource } from './fleet/port.ts'
export type { ServeTasksOptions } from './fleet/serve-tasks.ts'
export { OptionsError } from './library/check-options.ts'
export { type ExecOptions, exec, plan, type SpawnOptions, spawn } from './library/exec.ts'
export type { KillSignal, SpawnedCommand } from './library/spawn.ts'
export type { Stdin } from './library/stdin.ts'
export type { Plan } from './plan/plan.ts'
export type { SandboxInput } from './policy/keys/index.ts'
export type { PolicyLayer } from './policy/layer.ts'
export type { Policy } from './policy/policy.ts'
export type { Need, Zone, ZoneMode } from './policy/values.ts'
export {
  openSandbox,
  type Sandbox,
  type SandboxCommand,
  type SandboxOptions,
  type SandboxRun,
  type SandboxSpawn,
} from './pool/sandbox.ts'
export type { Denial, Reason, Result } from './report/result.ts'
export type { Diff } from './run/diff.ts'
export type { CopyOnWrite, ExecResult } from './run/layer-handle.ts'

/**
 * Checks this machine and suggests fixes; tries one run of the default profile.
 * @param options.env its PATH leads to the programs that are looked at; default that of this process
 * @throws OptionsError; never for a machine that can run nothing: that is what it reports
 */
export async function doctor(options: { readonly env?: Environment } = {}): Promise<DoctorReport> {
  checkOptions('doctor', options)
  return examine(options.env ?? process.env)
}

/**
 * Runs the tasks of `options.source`, each command in a new sandbox, until there are none or `options.signal` is aborted.
 * @throws OptionsError; the error of `take`, after the running tasks have ended
 */
export async function serveTasks(options: ServeTasksOptions): Promise<void> {
  // Most programs run no fleet: what it needs is loaded here.
  const { serveTasks: serve } = await import('./fleet/serve-tasks.ts')
  await serve(options)
}
