/** Options become one layer: what each says is added to what the others said, and who said it is remembered. Pure. */
import type { PolicyLayer } from './layer.ts'
import type { SandboxInput } from './schema.ts'

/** What one value of one option says as policy, or (without its place) why it says nothing. */
export type Spoken = { readonly values: SandboxInput } | { readonly problem: string }

export type Said = Required<Pick<PolicyLayer, 'values' | 'places' | 'problems'>>

export function addSaid(said: Said, { place, spoken }: { readonly place: string; readonly spoken: Spoken }): Said {
  if ('problem' in spoken) return { ...said, problems: [...said.problems, `${place}: ${spoken.problem}`] }
  const values = combine(said.values, spoken.values) as SandboxInput
  const places = Object.fromEntries(
    placesOf({ below: said.values, above: spoken.values, key: '' }).map((key) => [key, place]),
  )
  return { ...said, values, places: { ...said.places, ...places } }
}

/** Lists continue, mappings fill up, anything else is replaced: of an option given twice the last counts. */
function combine(below: unknown, above: unknown): unknown {
  if (Array.isArray(below) && Array.isArray(above)) return [...below, ...above]
  if (!isMapping(below) || !isMapping(above)) return above
  const added = Object.entries(above).map(([key, value]) => [
    key,
    Object.hasOwn(below, key) ? combine(below[key], value) : value,
  ])
  return Object.fromEntries([...Object.entries(below), ...added])
}

interface Addition {
  readonly below: unknown
  readonly above: unknown
  readonly key: string
}

/** The dotted keys that are new or changed; the elements of a list are counted on from those that were there. */
function placesOf({ below, above, key }: Addition): readonly string[] {
  const prefix = key === '' ? '' : `${key}.`
  if (Array.isArray(above)) {
    const before = Array.isArray(below) ? below.length : 0
    return [...above.map((_, index) => `${prefix}${before + index}`), key]
  }
  if (!isMapping(above)) return [key]
  const inner = isMapping(below) ? below : {}
  const within = Object.entries(above).flatMap(([name, value]) =>
    placesOf({ below: inner[name], above: value, key: prefix + name }),
  )
  return key === '' ? within : [...within, key]
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
