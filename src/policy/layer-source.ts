/** Where a value comes from: for messages, and for what relative paths mean. Pure. */
import path from 'node:path'
import type { Origin } from './values.ts'

/** One layer, as the merging of keys sees it. */
export interface LayerSource {
  /** Absolute; what relative host paths are relative to. */
  readonly directory: string
  /** Position among all layers, lowest first. */
  readonly rank: number
  /** The caller's home directory, absolute; empty when there is none. */
  readonly home: string
  /** The place that sets a dotted key of the layer. */
  readonly originOf: (key: string) => Origin
  /** The head of a message about a key: place and key, or place and what people call it. */
  readonly headOf: (key: string, name?: string) => string
}

/** A key of the policy that a layer sets. */
export interface SetKey {
  readonly key: string
  /** The key in the layer itself where it is another one: zones are listed there, and named in the policy. */
  readonly at?: string
}

/** Absolute and normal, but not canonical: what is really there is looked up later. */
export function resolveHostPath(written: string, { directory, home }: Pick<LayerSource, 'directory' | 'home'>): string {
  if (written === '~') return home
  return written.startsWith('~/') ? path.join(home, written.slice(2)) : path.resolve(directory, written)
}
