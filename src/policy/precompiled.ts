/**
 * The layers that are shipped with the program, as the YAML reader and the schema parsed them when the program was built: both take
 * longer to load than a sandbox takes to start. Pure.
 */
import type { ParsedSandbox, SandboxInput } from './keys/index.ts'

export interface PrecompiledProfile {
  /** The whole file; any other text is parsed and validated at run time. */
  readonly text: string
  readonly values: SandboxInput
  /** Dotted key below `sandbox` -> line. */
  readonly lines: Readonly<Record<string, number>>
  readonly parsed: ParsedSandbox
}

export interface Precompiled {
  readonly builtIn?: ParsedSandbox
  readonly profiles: readonly PrecompiledProfile[]
}

/** Filled in by scripts/build.mjs. Empty when run from the sources, where everything is parsed. */
export const PRECOMPILED: Precompiled = { profiles: [] }
