/** One layer of a policy: what a file, the environment or the command line sets, still unchecked. */
import type { ParsedSandbox, SandboxInput } from './keys/index.ts'
import type { LayerSource } from './layer-source.ts'
import type { Layer } from './values.ts'

export interface PolicyLayer {
  readonly layer: Layer
  /** The file that says it, or `command line`, `environment`. */
  readonly source: string
  /** Absolute; what relative host paths are relative to. */
  readonly directory: string
  /** Unchecked: mergePolicies() checks it and reports every mistake. */
  readonly values: SandboxInput
  /** The schema's result for exactly these values, where it is known beforehand. */
  readonly parsed?: ParsedSandbox
  /** Dotted key (`resources.memory`, `zones.0`) -> the exact place that says it: `ci.yaml:7`, `--memory`. */
  readonly locations?: Readonly<Record<string, string>>
  /** `values` is an object of a program, called `source`: a message about a key names the place in it. */
  readonly isObject?: true
  /** Problems of text that could not become a value, one finished line each. */
  readonly problems?: readonly string[]
}

/** Authority, lowest first: a later one replaces what an earlier one set. */
export const LAYER_ORDER: readonly Layer[] = [
  'built-in',
  'profile',
  'workshop',
  'worker',
  'docker-environment',
  'environment',
  'flag',
]

/** Layers of equal rank keep their order. */
export function inOrder(layers: readonly PolicyLayer[]): readonly PolicyLayer[] {
  return LAYER_ORDER.flatMap((rank) => layers.filter(({ layer }) => layer === rank))
}

/** A key as a member of an object: `zones.0.mode` -> `.zones[0].mode`. */
function memberOf(key: string): string {
  const parts = key === '' ? [] : key.split('.')
  return parts.map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`)).join('')
}

/** The place that says a key, as exactly as the layer knows: the key's own, else the nearest one around it, else the source. */
export function locationOf(layer: PolicyLayer, key: string): string {
  if (layer.isObject === true) return `${layer.source}${memberOf(key)}`
  return nearestTo(key, layer.locations ?? {}) ?? layer.source
}

/** The place of a key, else of the nearest key around it. */
export function nearestTo<T>(key: string, places: Readonly<Record<string, T>>): T | undefined {
  const parts = key.split('.')
  const around = parts.map((_, index) => parts.slice(0, parts.length - index).join('.'))
  const found = around.find((candidate) => Object.hasOwn(places, candidate))
  return found === undefined ? undefined : places[found]
}

/** The layer, as the merging of keys sees it. */
export function sourceOf(layer: PolicyLayer, { rank, home }: Pick<LayerSource, 'rank' | 'home'>): LayerSource {
  return {
    directory: layer.directory,
    rank,
    home,
    originOf: (key) => ({ layer: layer.layer, source: locationOf(layer, key), key }),
    headOf: (key, name = key) => headOf(layer, layer.isObject === true ? key : name),
  }
}

/** True where the place is a flag or variable, whose name is the key. */
export function isSpoken(layer: PolicyLayer): boolean {
  return layer.layer === 'flag' || layer.layer === 'environment' || layer.layer === 'docker-environment'
}

/** The head of a message about a key: place and key. */
export function headOf(layer: PolicyLayer, key: string): string {
  const location = locationOf(layer, key)
  return isSpoken(layer) || key === '' ? `${location}:` : `${location}: ${key}:`
}
