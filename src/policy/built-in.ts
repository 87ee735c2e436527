/** The lowest layer of every policy, made of the defaults of the keys. */
import { KEYS, type SandboxInput } from './keys/index.ts'
import { isSection, type Key, type Section } from './keys/key.ts'
import type { PolicyLayer } from './layer.ts'

/** The defaults of one level, in the words a person would write. */
function defaultsOf(entries: Readonly<Record<string, Key | Section>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(entries).flatMap(([name, entry]) => {
      const value = isSection(entry) ? defaultsOf(entry.keys) : entry.default
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

export const BUILT_IN: PolicyLayer = {
  layer: 'built-in',
  source: 'built-in',
  directory: '/',
  values: defaultsOf(KEYS) as SandboxInput,
}
