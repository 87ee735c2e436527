/** The contract of a backend: what it needs to know beside the plan, and the pure step from plan to process. */
import type { Plan } from '../plan/plan.ts'
import type { BackendName } from '../policy/policy.ts'
import type { Launch } from './launch.ts'

/** Everything about one run that must not be in a plan, because it differs every time or is secret. */
export interface RunInputs {
  /** Unique among live runs of this user; lower-case letters and digits. */
  readonly runId: string
  readonly command: readonly string[]
  /** The command's complete environment, secrets included. */
  readonly commandEnv: Readonly<Record<string, string>>
  /** Directory of the native helpers, see native.ts. */
  readonly helpers: string
  /** Where records of live runs are kept, see docs/architecture.md. */
  readonly runsDirectory: string
  readonly stdinIsTerminal: boolean
}

export interface Backend {
  readonly name: BackendName
  /** Pure: the same plan and inputs give the same launch. */
  build(plan: Plan, run: RunInputs): Launch
}
