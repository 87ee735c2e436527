/**
 * Layers, validated. The schema is loaded only for values that were not parsed when the program was built. Pure.
 */
import { isMapping } from '../text/json.ts'
import { BUILT_IN } from './built-in.ts'
import { inOrder, type PolicyLayer } from './layer.ts'
import { PRECOMPILED } from './precompiled.ts'
import type { CheckedLayer } from './validate-layer.ts'

/** All layers of a policy, from the built-in one to that of the highest authority. */
export async function checkLayers(layers: readonly PolicyLayer[]): Promise<readonly CheckedLayer[]> {
  const all = [BUILT_IN, ...inOrder(layers)].map((layer) => ({ layer, known: knownLayer(layer) }))
  const known = all.flatMap((one) => one.known ?? [])
  if (known.length === all.length) return known
  const { checkLayer } = await import('./validate-layer.ts')
  return all.map((one) => one.known ?? checkLayer(one.layer))
}

function knownLayer(layer: PolicyLayer): CheckedLayer | undefined {
  const parsed = layer === BUILT_IN ? PRECOMPILED.builtIn : parsedBefore(layer)
  return parsed && { layer, parsed, problems: layer.problems ?? [] }
}

/** An empty layer needs no schema. A value that is not a mapping goes to the schema, which rejects it. */
function parsedBefore({ parsed, values }: PolicyLayer): CheckedLayer['parsed'] | undefined {
  return parsed ?? (isMapping(values) && Object.keys(values).length === 0 ? {} : undefined)
}
