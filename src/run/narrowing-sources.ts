/** The sources of a narrowed policy, for a plan that is to be used again. */
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import type { PathFacts } from '../plan/mounts.ts'

/** The sources of a narrowed policy, and the rules by which the client judges the next command. */
export interface NarrowingSources {
  readonly read: readonly string[]
  readonly missing: readonly string[]
  /** Observations of the paths that decided. */
  readonly paths: PathFacts
  readonly judgement: readonly LaunchRecord[]
  /** Name of the worker, for the audit. */
  readonly worker?: string
}

/** A policy that was narrowed by nothing but the caller's own words. */
export const NOT_NARROWED: NarrowingSources = { read: [], missing: [], paths: {}, judgement: [] }
