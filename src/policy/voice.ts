/** What one layer says, ready to be added to others: read by the schema, with the places its words came from. Pure. */
import path from 'node:path'
import { type PolicyLayer, placeOf } from './layer.ts'
import type { Origin } from './policy.ts'
import type { SandboxSaid } from './schema.ts'

/** A checked layer, and what its words depend on beside itself. */
export interface Voice {
  readonly said: SandboxSaid
  readonly layer: PolicyLayer
  /** Position among all layers, lowest first. */
  readonly rank: number
  /** The caller's home directory, absolute; empty when there is none. */
  readonly home: string
}

/** A key of the policy about which a layer said something. */
export interface SpokenKey {
  readonly key: string
  /** The key in the layer itself where it is another one: zones are listed there, and named in the policy. */
  readonly at?: string
}

export function originOf(layer: PolicyLayer, key: string): Origin {
  return { layer: layer.layer, source: placeOf(layer, key), key }
}

/** Absolute and normal, but not canonical: what is really there is looked up later. */
export function resolveHostPath(input: {
  readonly path: string
  readonly layer: PolicyLayer
  readonly home: string
}): string {
  const { path: written, layer, home } = input
  if (written === '~') return home
  return written.startsWith('~/') ? path.join(home, written.slice(2)) : path.resolve(layer.directory, written)
}
