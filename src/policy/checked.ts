/**
 * Layers with what they say. The schema is loaded only where somebody says something that was not read when the program was
 * built. Pure.
 */
import { BUILT_IN } from './built-in.ts'
import type { CheckedLayer } from './check.ts'
import { KNOWN } from './known.ts'
import { inOrder, type PolicyLayer } from './layer.ts'

/** All layers of a policy, from the built-in one to that of the highest authority. */
export async function checkLayers(layers: readonly PolicyLayer[]): Promise<readonly CheckedLayer[]> {
  const all = [BUILT_IN, ...inOrder(layers)].map((layer) => ({ layer, known: knownLayer(layer) }))
  const known = all.flatMap((one) => one.known ?? [])
  if (known.length === all.length) return known
  const { checkLayer } = await import('./check.ts')
  return all.map((one) => one.known ?? checkLayer(one.layer))
}

function knownLayer(layer: PolicyLayer): CheckedLayer | undefined {
  const said = layer === BUILT_IN ? KNOWN.builtIn : saidBy(layer)
  return said && { layer, said, problems: layer.problems ?? [] }
}

/** Who says nothing is understood. What is no mapping is for the schema to refuse, whatever its type promised. */
function saidBy({ said, values }: PolicyLayer): CheckedLayer['said'] | undefined {
  const isMapping = typeof values === 'object' && values !== null && !Array.isArray(values)
  return said ?? (isMapping && Object.keys(values).length === 0 ? {} : undefined)
}
