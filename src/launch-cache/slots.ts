/** The caller's directory as a slot in the words of a launch file (native/lib/any-directory.h). Pure. */
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import { PLACE_SLOT } from '../contract.ts'
import { markPlace, type Place } from '../plan/hash.ts'

/** Begins every slot. */
export const SLOT_MARK = String.fromCharCode(PLACE_SLOT)

export const SLOTS = {
  path: `${SLOT_MARK}p`,
  device: `${SLOT_MARK}d`,
  inode: `${SLOT_MARK}i`,
  hash: `${SLOT_MARK}h`,
  pool: `${SLOT_MARK}n`,
} as const

/** What stands in the slots. */
export interface Fillings {
  readonly place: Place
  /** Of the plan. */
  readonly hash: string
}

/** Records with slots for a path at or below the directory, for its numbers where it is a zone, and for the hash. */
export function slotted(records: readonly LaunchRecord[], fillings: Fillings): readonly LaunchRecord[] {
  return records.map((record) => withSlots(record, fillings))
}

function withSlots(record: LaunchRecord, { place, hash }: Fillings): LaunchRecord {
  const [verb, ...words] = record
  const isZone = verb === 'zone' && words[0] === place.path
  const shown = isZone ? [...words.slice(0, 3), SLOTS.device, SLOTS.inode, ...words.slice(5)] : words
  return [verb, ...shown.map((word) => inWord(word, place, hash))] as unknown as LaunchRecord
}

const inWord = (word: string | number, place: Place, hash: string): string | number =>
  typeof word === 'string' ? markPlace(word, place, SLOTS.path).replaceAll(hash, SLOTS.hash) : word
