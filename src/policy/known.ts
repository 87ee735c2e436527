/**
 * What the schema and the YAML parser make of the layers that come with the program: found out when it is built, since both take
 * longer to load than a sandbox to start. Pure.
 */
import type { ParsedSandbox, SandboxInput } from './keys/index.ts'

export interface KnownProfile {
  /** The whole file; another text is parsed and checked like anybody's. */
  readonly text: string
  readonly values: SandboxInput
  /** Dotted key below `sandbox` -> line. */
  readonly lines: Readonly<Record<string, number>>
  readonly parsed: ParsedSandbox
}

export interface Known {
  readonly builtIn?: ParsedSandbox
  readonly profiles: readonly KnownProfile[]
}

/** Filled in by scripts/build.mjs. Run from the sources nothing is known, and everything is read. */
export const KNOWN: Known = { profiles: [] }
