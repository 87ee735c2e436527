/**
 * What the schema and the YAML parser make of the layers that come with the program: found out when it is built, since both take
 * longer to load than a sandbox to start. Pure.
 */
import type { SandboxInput, SandboxSaid } from './schema.ts'

export interface KnownProfile {
  /** The whole file; another text is parsed and checked like anybody's. */
  readonly text: string
  readonly values: SandboxInput
  /** Dotted key below `sandbox` -> line. */
  readonly lines: Readonly<Record<string, number>>
  readonly said: SandboxSaid
}

export interface Known {
  readonly builtIn?: SandboxSaid
  readonly profiles: readonly KnownProfile[]
}

/** Filled in by scripts/build.mjs. Run from the sources nothing is known, and everything is read. */
export const KNOWN: Known = { profiles: [] }
