/** The record of a layer (native/lib/layer.h): what it belongs to. Pure. */
import { LAUNCH_FILE_MAGIC, VERBS } from '../contract.ts'
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

interface Entry {
  readonly verb: string
  readonly words: readonly string[]
}

/** @returns undefined for bytes that are no record of this version */
export function parseRecord(bytes: Uint8Array): LayerRecord | undefined {
  const entries = entriesOf(Buffer.from(bytes).toString('latin1').split('\0'))
  const since = entries?.find(({ verb }) => verb === 'since')?.words
  if (entries === undefined || since === undefined) return undefined
  return {
    profile: entries.find(({ verb }) => verb === 'profile')?.words[0] ?? '',
    sinceMs: Number(since[0]) * 1000 + Math.floor(Number(since[1]) / 1_000_000),
    keepMs: Number(entries.find(({ verb }) => verb === 'keep')?.words[0] ?? 0),
    boot: entries.find(({ verb }) => verb === 'boot')?.words[0] ?? '',
    isCopy: entries.some(({ verb, words }) => verb === 'zone' && words[2] === 'copy'),
    zones: zonesOf(entries),
  }
}

function entriesOf([magic, ...words]: readonly string[]): readonly Entry[] | undefined {
  if (magic !== LAUNCH_FILE_MAGIC) return undefined
  const entries: Entry[] = []
  for (let at = 0; words[at] !== 'end'; ) {
    const verb = words[at]
    if (verb === undefined || !Object.hasOwn(VERBS, verb)) return undefined
    const length = VERBS[verb as keyof typeof VERBS]
    entries.push({ verb, words: words.slice(at + 1, at + 1 + length) })
    at += 1 + length
  }
  return entries
}

const zonesOf = (entries: readonly Entry[]): LayerRecord['zones'] =>
  entries
    .filter(({ verb }) => verb === 'zone')
    .map(({ words: [source = '', target = ''] }) => ({ source: utf8(source), target: utf8(target) }))

const utf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8')
