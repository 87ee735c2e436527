/** Turns a profile into its layer. Pure. */
import path from 'node:path'
import type { ParsedSandbox, SandboxInput } from './keys/index.ts'
import type { PolicyLayer } from './layer.ts'

/** The source of a profile that was given as a text. */
export const WRITTEN_PROFILE = '--profile'

export const isWrittenProfile = (name: string): boolean => name.startsWith('{')

/** The name of a profile in results and records, where values of variables must not appear. */
export const profileName = (name: string): string => (isWrittenProfile(name) ? WRITTEN_PROFILE : name)

export interface ParsedProfile {
  readonly layer: PolicyLayer
  /** The profile that this one extends, as it is written. */
  readonly extends?: string
}

export interface ReadProfile {
  /** Absolute path. */
  readonly file: string
  /** Absolute; that of the file if absent. */
  readonly directory?: string
  readonly values: SandboxInput
  /** Dotted key below `sandbox` -> line. */
  readonly lines: Readonly<Record<string, number>>
  readonly parsed?: ParsedSandbox
}

export function profileLayer({
  file,
  directory = path.dirname(file),
  values,
  lines,
  parsed,
}: ReadProfile): ParsedProfile {
  const layer: PolicyLayer = {
    layer: 'profile',
    source: file,
    directory,
    values,
    locations: Object.fromEntries(Object.entries(lines).map(([key, line]) => [key, `${file}:${line}`])),
    ...(parsed === undefined ? {} : { parsed }),
  }
  const base: unknown = values.extends
  return typeof base === 'string' && base !== '' ? { layer, extends: base } : { layer }
}
