/** Turns a profile into its layer. Pure. */
import path from 'node:path'
import type { ParsedSandbox, SandboxInput } from './keys/index.ts'
import type { PolicyLayer } from './layer.ts'

export interface ParsedProfile {
  readonly layer: PolicyLayer
  /** The profile that this one extends, as it is written. */
  readonly extends?: string
}

export interface ReadProfile {
  /** Absolute path. */
  readonly file: string
  readonly values: SandboxInput
  /** Dotted key below `sandbox` -> line. */
  readonly lines: Readonly<Record<string, number>>
  readonly parsed?: ParsedSandbox
}

export function profileLayer({ file, values, lines, parsed }: ReadProfile): ParsedProfile {
  const layer: PolicyLayer = {
    layer: 'profile',
    source: file,
    directory: path.dirname(file),
    values,
    locations: Object.fromEntries(Object.entries(lines).map(([key, line]) => [key, `${file}:${line}`])),
    ...(parsed === undefined ? {} : { parsed }),
  }
  const base: unknown = values.extends
  return typeof base === 'string' && base !== '' ? { layer, extends: base } : { layer }
}
