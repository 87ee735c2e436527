/** Directories as slots in the words of a launch file (native/lib/any-directory.h). Pure. */
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import { PLACE_OPTIONS, PLACE_SLOT, PLACE_ZONES_MAX } from '../contract.ts'
import { markPlaces, type Places } from '../plan/hash.ts'

/** Begins every slot. */
export const SLOT_MARK = String.fromCharCode(PLACE_SLOT)

/** @param at number of the directory */
export const pathSlot = (at: number): string => `${SLOT_MARK}${at}p`
export const POOL_SLOT = `${SLOT_MARK}0n`
const HASH_SLOT = `${SLOT_MARK}0h`

/** The values of the slots. */
export interface Fillings {
  readonly places: Places
  /** Of the plan. */
  readonly hash: string
}

/** Records with slots for a path at or below a directory, for its numbers where it is a zone, and for the hash. */
export function slotted(records: readonly LaunchRecord[], fillings: Fillings): readonly LaunchRecord[] {
  return records.map((record) => withSlots(record, fillings))
}

function withSlots(record: LaunchRecord, { places, hash }: Fillings): LaunchRecord {
  const [verb, ...words] = record
  const at = verb === 'zone' ? places.findIndex(({ path }) => words[0] === path) : -1
  const numbers = [`${SLOT_MARK}${at}d`, `${SLOT_MARK}${at}i`]
  const shown = at === -1 ? words : [...words.slice(0, 3), ...numbers, ...words.slice(5)]
  return [verb, ...shown.map((word) => inWord(word, places, hash))] as unknown as LaunchRecord
}

const inWord = (word: string | number, places: Places, hash: string): string | number =>
  typeof word === 'string' ? markPlaces(word, places, pathSlot).replaceAll(hash, HASH_SLOT) : word

/* ---- the command line ---- */

export interface NamedPlaces {
  /** The words with slots in the place of the sources. */
  readonly options: readonly string[]
  /** In the order of their targets, which is that of the slots. */
  readonly sources: readonly string[]
}

/** `SRC:TARGET`, with nothing else that could be divided. */
const PLACE = /^(?<source>\/[^:]*):(?<target>\/(?:(?!:\/).)*)$/s

const OF_PLACES = new Set<string>(PLACE_OPTIONS)

/** The words of zones that can have slots, as find_places in native/client/call.c finds them. */
export function namedPlaces(options: readonly string[]): NamedPlaces {
  const found = options.flatMap((word, at) => {
    const [name = ''] = word.split('=', 1)
    const from = OF_PLACES.has(options[at - 1] ?? '') ? 0 : OF_PLACES.has(name) && name !== word ? name.length + 1 : -1
    const { source, target } = (from === -1 ? undefined : PLACE.exec(word.slice(from))?.groups) ?? {}
    return source === undefined || target === undefined ? [] : [{ at, from, source, target }]
  })
  if (found.length > PLACE_ZONES_MAX) return { options, sources: [] }
  const sorted = found.toSorted((a, b) => Buffer.compare(Buffer.from(a.target), Buffer.from(b.target)))
  const slotOf = new Map(sorted.map(({ at, from, source }, index) => [at, { from, source, slot: pathSlot(index + 1) }]))
  return {
    options: options.map((word, at) => {
      const { from, source, slot } = slotOf.get(at) ?? { from: 0, source: '', slot: '' }
      return `${word.slice(0, from)}${slot}${word.slice(from + source.length)}`
    }),
    sources: sorted.map(({ source }) => source),
  }
}
