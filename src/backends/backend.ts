/** The contract of a backend: what it needs to know beside the plan, and the pure step from plan to process. */
import type { Plan } from '../plan/plan.ts'
import type { BackendName } from '../policy/values.ts'
import type { DockerInputs } from './docker/command-environment.ts'
import type { Launch } from './launch.ts'
import type { WasmInputs } from './wasm/program.ts'

/** Everything about one run that must not be in a plan, because it differs every time or is secret. */
export interface RunInputs {
  /** Unique among live runs of this user; lower-case letters and digits. */
  readonly runId: string
  readonly command: readonly string[]
  /** The same words as bytes, where one of them is not UTF-8. */
  readonly commandBytes?: readonly Uint8Array[]
  /** The namespace backend only: the program of the plan's engine. */
  readonly enginePath?: string
  /** The command's complete environment, secrets included. */
  readonly commandEnv: Readonly<Record<string, string>>
  /** Directory of the native helpers, see native.ts. */
  readonly helpers: string
  /** Where records of live runs are kept, see docs/architecture.md; empty = no record. */
  readonly runsDirectory: string
  readonly stdinIsTerminal: boolean
  /** The docker backend only: its client, see docker/inputs.ts. */
  readonly docker?: DockerInputs
  /** The wasm backend only: what runs WASI programs here, see wasm/inputs.ts. */
  readonly wasm?: WasmInputs
  /** The process backend only: the operator set LLM_DO_ALLOW_UNSANDBOXED=1. */
  readonly allowUnsandboxed?: boolean
}

export interface Backend {
  readonly name: BackendName
  /** Pure: the same plan and inputs give the same launch. */
  build(plan: Plan, run: RunInputs): Launch
}
