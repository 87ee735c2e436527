/**
 * The layer of a person at a terminal: a program that waits for keys has no default timeout. The layer stands right
 * above the shipped profile, so that any other profile, variable or flag that names a timeout wins. Pure.
 */
import type { PolicyLayer } from './layer.ts'

const AT_TERMINAL: PolicyLayer = {
  layer: 'profile',
  source: 'stdin and stderr are terminals',
  directory: '/',
  values: { resources: { timeout: 'none' } },
  parsed: { resources: { timeout: null } },
}

/**
 * @param layers of a profile, base first
 * @param standard the file of the profile `default` that comes with the program
 */
export function withTerminal(layers: readonly PolicyLayer[], standard: string): readonly PolicyLayer[] {
  const above = layers.findIndex(({ source }) => source === standard) + 1
  return [...layers.slice(0, above), AT_TERMINAL, ...layers.slice(above)]
}
