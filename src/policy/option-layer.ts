/** Options become one layer: what each sets is added to what the others set, with the place of each. Pure. */
import type { SandboxInput } from './keys/index.ts'
import type { FlagValues } from './keys/key.ts'
import type { PolicyLayer } from './layer.ts'
import { OPTIONS, type OptionDeclaration } from './options.ts'
import { isMapping } from './value-at.ts'
import type { Layer } from './values.ts'

/** What was given: `true` for a switch (and for an optional value left out), a list for what repeats. Keys are option names. */
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
  const sum = settings.reduce(addSetting, { values: {}, locations: {}, problems: [] })
  return { layer, source, directory: cwd, ...sum, values: sum.values as SandboxInput }
}

function textsOf(value: GivenOptions[string]): readonly string[] {
  if (value === undefined) return []
  return typeof value === 'object' ? value : [String(value)]
}

interface Sum {
  readonly values: object
  readonly locations: Readonly<Record<string, string>>
  readonly problems: readonly string[]
}

function addSetting(sum: Sum, { location, sets }: { readonly location: string; readonly sets: FlagValues }): Sum {
  if ('problem' in sets) return { ...sum, problems: [...sum.problems, `${location}: ${sets.problem}`] }
  const keys = keysSetBy({ below: sum.values, above: sets.values, key: '' })
  const locations = Object.fromEntries(keys.map((key) => [key, location]))
  return { ...sum, values: combine(sum.values, sets.values) as object, locations: { ...sum.locations, ...locations } }
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
