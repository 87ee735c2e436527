/**
 * The sum of all layers: each key adds up as its declaration in keys/ says. Nothing here touches the world.
 * Layers come from the lowest authority to the highest.
 */

import { contradictions, type Sums } from './cross-key-checks.ts'
import { ALL_KEYS, type NamedKey, type PolicyValues } from './keys/index.ts'
import { sourceOf } from './layer.ts'
import type { LayerSource } from './layer-source.ts'
import type { Policy } from './policy.ts'
import { invalidPolicy } from './policy-error.ts'
import type { CheckedLayer } from './validate-layer.ts'
import { valueAt, withValueAt } from './value-at.ts'
import type { Origin } from './values.ts'

export interface MergeOptions {
  /** Name or path of the profile that was asked for, for the result. */
  readonly profile: string
  /** The caller's home directory, absolute, for `~/`; empty without one. */
  readonly home: string
}

/** One layer's value of one key, resolved. */
interface Setting {
  readonly value: unknown
  readonly source: LayerSource
}

interface MergedKey {
  readonly path: string
  readonly sum: unknown
  readonly value: unknown
  readonly origins: readonly (readonly [key: string, origin: Origin])[]
}

/**
 * Adds up all layers.
 * @param checked in order: the built-in one first, of equal rank base first
 * @throws SandboxError POLICY_INVALID with every problem of every layer
 */
export function mergePolicies(checked: readonly CheckedLayer[], { profile, home }: MergeOptions): Policy {
  const merged = ALL_KEYS.map((named) => mergeKey(named, checked, home))
  const sums = Object.fromEntries(merged.map(({ path, sum }) => [path, sum])) as unknown as Sums
  const problems = [...checked.flatMap((layer) => layer.problems), ...contradictions({ ...sums, checked, home })]
  if (problems.length > 0) throw invalidPolicy(problems)
  const values = merged
    .filter(({ value }) => value !== undefined)
    .reduce<object>((sofar, { path, value }) => withValueAt(sofar, path, value), {}) as PolicyValues
  return { profile, ...values, protectFiles: [], origins: originsBy(merged) }
}

function mergeKey({ path, key }: NamedKey, checked: readonly CheckedLayer[], home: string): MergedKey {
  const { resolve, add, setsKeys, finish } = key.merging
  const settings = checked.flatMap(({ layer, parsed }, rank): Setting[] => {
    const written = valueAt(parsed, path)
    if (written === undefined) return []
    const source = sourceOf(layer, { rank, home })
    return [{ source, value: resolve === undefined ? written : resolve(written as never, source) }]
  })
  const sum = settings.reduce<unknown>((below, { value }) => add(below as never, value as never), undefined)
  const origins = settings.flatMap(({ value, source }) =>
    (setsKeys?.(value as never) ?? [{ key: path }]).map(
      ({ key: set, at = set }) => [set, source.originOf(at)] as const,
    ),
  )
  return { path, sum, value: finish === undefined || sum === undefined ? sum : finish(sum as never), origins }
}

function originsBy(merged: readonly MergedKey[]): Policy['origins'] {
  const all = new Map<string, readonly Origin[]>()
  for (const [key, origin] of merged.flatMap(({ origins }) => origins)) all.set(key, [...(all.get(key) ?? []), origin])
  return Object.fromEntries(all)
}
