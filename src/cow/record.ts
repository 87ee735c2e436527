/** The record of a layer (native/lib/layer.h): what it belongs to. Pure. */
import { orElse } from '../os/look.ts'
import { launchEntries, type Verb } from '../text/launch-entries.ts'
import type { LayerZone } from './change.ts'

export interface LayerRecord {
  readonly profile: string
  /** Milliseconds since 1970. */
  readonly sinceMs: number
  readonly keepMs: number
  /** Of the kernel that it was made under. */
  readonly boot: string
  /** The layer has copies of whole directories. */
  readonly isCopy: boolean
  readonly zones: readonly LayerZone[]
}

/** @returns undefined for bytes that are no record of this version */
export function parseRecord(bytes: Uint8Array): LayerRecord | undefined {
  const entries = orElse([], () => launchEntries(bytes, 'latin1'))
  const wordsOf = (wanted: Verb) => entries.find(([verb]) => verb === wanted)?.slice(1)
  const zones = entries.filter(([verb]) => verb === 'zone')
  const since = wordsOf('since')
  if (since === undefined) return undefined
  return {
    profile: wordsOf('profile')?.[0] ?? '',
    sinceMs: Number(since[0]) * 1000 + Math.floor(Number(since[1]) / 1_000_000),
    keepMs: Number(wordsOf('keep')?.[0] ?? 0),
    boot: wordsOf('boot')?.[0] ?? '',
    isCopy: zones.some(([, , , mode]) => mode === 'copy'),
    zones: zones.map(([, source = '', target = '']) => ({ source: utf8(source), target: utf8(target) })),
  }
}

const utf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8')
