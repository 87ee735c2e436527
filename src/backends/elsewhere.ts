/**
 * Runs on the backends that are not namespace: what each must know beside plan and command, and who supervises it.
 * Edge: asks the edges of the backends.
 */

import { SandboxError } from '../error.ts'
import type { HostFacts } from '../host/facts.ts'
import type { Plan } from '../plan/plan.ts'
import type { RunInputs } from './backend.ts'
import type { ChildStdio } from './child-process.ts'
import { dockerBackend } from './docker/build.ts'
import { dockerInputs } from './docker/inputs.ts'
import { superviseDocker } from './docker/run.ts'
import type { Launch } from './launch.ts'
import type { Outcome } from './outcome.ts'
import { processBackend } from './process/build.ts'
import { superviseProcess } from './process/run.ts'
import { wasmBackend } from './wasm/build.ts'
import { wasmInputs } from './wasm/inputs.ts'
import { superviseWasm } from './wasm/run.ts'

export interface ElsewhereInputs {
  readonly plan: Plan
  readonly facts: HostFacts
  /** The caller's environment. */
  readonly env: Readonly<NodeJS.ProcessEnv>
  readonly cwd: string
}

/** What the plan's backend wants among the run inputs; nothing for namespace. */
export function inputsElsewhere({
  plan,
  facts,
  env,
  cwd,
}: ElsewhereInputs): Pick<RunInputs, 'docker' | 'wasm' | 'allowUnsandboxed'> {
  if (plan.backend === 'docker' && facts.docker !== undefined) return { docker: dockerInputs(facts.docker, env) }
  if (plan.backend === 'wasm') return { wasm: wasmInputs({ env, cwd, wasmtime: facts.wasmtime?.path }) }
  if (plan.backend === 'process') return { allowUnsandboxed: env['LLM_DO_ALLOW_UNSANDBOXED'] === '1' }
  return {}
}

/** The process of a plan, for people. */
export function buildElsewhere(plan: Plan, run: RunInputs): Launch {
  const builders = { docker: dockerBackend, wasm: wasmBackend, process: processBackend } as const
  if (plan.backend === 'namespace') throw notHere()
  return builders[plan.backend].build(plan, run)
}

function notHere(): SandboxError {
  return new SandboxError('INTERNAL', 'the namespace backend has its own supervisor')
}

export interface ElsewhereRun {
  readonly plan: Plan
  /** With what inputsElsewhere() gave. */
  readonly run: RunInputs
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
  /** docker: run although the daemon ignores a limit, and say so. */
  readonly bestEffort?: boolean
}

/** @throws SandboxError when the backend refuses, see the supervisors of each */
export function superviseElsewhere(input: ElsewhereRun): Promise<Outcome> {
  if (input.plan.backend === 'docker') return superviseDocker(input)
  if (input.plan.backend === 'wasm') return superviseWasm(input)
  if (input.plan.backend === 'process') return superviseProcess(input)
  throw notHere()
}
