/** Options become one layer: what each sets is added to what the others set, with the place of each. Pure. */
import { isMapping } from '../text/json.ts'
import type { SandboxInput } from './keys/index.ts'
import type { FlagValues } from './keys/key.ts'
import type { PolicyLayer } from './layer.ts'
import { OPTIONS, type OptionDeclaration } from './options.ts'
import type { Layer } from './values.ts'

/** The given options: `true` for a switch (and for an optional value left out), a list for a repeated one. Keys are option names. */
export type GivenOptions = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/**
 * The layer of the command line.
 * @param given by option name; options that are not policy are passed over
 * @param cwd absolute; what host paths are relative to
 */
export function flagLayer(given: GivenOptions, cwd: string): PolicyLayer {
  return layerOfOptions({ given, cwd, layer: 'flag', source: 'command line', locationName: ({ name }) => `--${name}` })
}

/** The layer of options from anywhere; `placeName` is how a message calls one. */
export function layerOfOptions(input: {
  readonly given: GivenOptions
  readonly cwd: string
  readonly layer: Layer
  readonly source: string
  readonly locationName: (option: OptionDeclaration) => string
}): PolicyLayer {
  const { given, cwd, layer, source, locationName } = input
  const settings = OPTIONS.flatMap((option) => {
    const location = locationName(option)
    return textsOf(given[option.name]).flatMap((text) =>
      option.sets === undefined ? [] : [{ location, sets: option.sets(text) }],
    )
  })
  const sum: Sum = { values: {}, locations: {}, problems: [] }
  for (const setting of settings) addSetting(sum, setting)
  return { layer, source, directory: cwd, ...sum, values: sum.values as SandboxInput }
}

function textsOf(value: GivenOptions[string]): readonly string[] {
  if (value === undefined) return []
  return typeof value === 'object' ? value : [String(value)]
}

/** Grows in place: a copy for each option would take time with the square of their number. */
interface Sum {
  readonly values: Mapping
  readonly locations: Record<string, string>
  readonly problems: string[]
}

type Mapping = Record<string, unknown>

function addSetting(sum: Sum, { location, sets }: { readonly location: string; readonly sets: FlagValues }): void {
  if ('problem' in sets) {
    sum.problems.push(`${location}: ${sets.problem}`)
    return
  }
  for (const key of keysSetBy({ below: sum.values, above: sets.values, key: '' })) sum.locations[key] = location
  addTo(sum.values, sets.values)
}

/** Lists continue, mappings fill up, anything else is replaced: of an option given twice the last counts. */
function addTo(below: Mapping, above: object): void {
  for (const [name, value] of Object.entries(above)) {
    const known = Object.hasOwn(below, name) ? below[name] : undefined
    if (Array.isArray(known) && Array.isArray(value)) known.push(...value)
    else if (isMapping(known) && isMapping(value)) addTo(known, value)
    else define(below, name, copyOf(value))
  }
}

/** An option may set a constant of its declaration, which must not grow. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return [...value]
  if (!isMapping(value)) return value
  const copy: Mapping = {}
  addTo(copy, value)
  return copy
}

/** A variable may be called `__proto__`. */
const define = (to: Mapping, name: string, value: unknown) =>
  Object.defineProperty(to, name, { value, writable: true, enumerable: true, configurable: true })

interface Addition {
  readonly below: unknown
  readonly above: unknown
  readonly key: string
}

/** The dotted keys that are new or changed; the elements of a list are counted on from those that were there. */
function keysSetBy({ below, above, key }: Addition): readonly string[] {
  const prefix = key === '' ? '' : `${key}.`
  if (Array.isArray(above)) {
    const before = Array.isArray(below) ? below.length : 0
    return [...above.map((_, index) => `${prefix}${before + index}`), key]
  }
  if (!isMapping(above)) return [key]
  const inner = isMapping(below) ? below : {}
  const within = Object.entries(above).flatMap(([name, value]) =>
    keysSetBy({ below: inner[name], above: value, key: prefix + name }),
  )
  return key === '' ? within : [...within, key]
}
