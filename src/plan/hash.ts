/** The name of a plan: a digest of all it says, the same for the same decisions. Pure. */
import { createHash } from 'node:crypto'
import { PLACE_OPTIONS, PLACE_ZONES_MAX } from '../contract.ts'
import type { PathFact } from '../host/facts.ts'
import type { Plan } from './plan.ts'
import { byText, isWithin } from './well-known-paths.ts'

/** A directory of the host, by its canonical path. */
export type Place = Pick<PathFact, 'path' | 'dev' | 'ino' | 'uid' | 'gid'>

/** The one that the caller stands in, then those that the command line names as sources of zones, in the order of their targets. */
export type Places = readonly [Place, ...Place[]]

/** Flags whose value is `SRC[:TARGET]`. */
const OF_PLACES: readonly string[] = PLACE_OPTIONS.map((option) => `flag ${option}`)

/**
 * The directories that a plan is for. Each one on the command line needs a target, since the source's path would be all over
 * the plan, and may not lie in another one.
 */
export function placesOf({ zones }: Pick<Plan, 'zones'>, caller: Place): Places {
  const isNear = (one: Place, other: Place): boolean => isWithin(one.path, other.path) || isWithin(other.path, one.path)
  const named = zones
    .filter(({ from, kind, source, target }) => OF_PLACES.includes(from) && kind === 'directory' && source !== target)
    .filter(({ source }) => source !== caller.path)
    .map(({ source: path, dev, ino, uid, gid }): Place => ({ path, dev, ino, uid, gid }))
  const isApart = named.every((one, at) => [caller, ...named.slice(0, at)].every((other) => !isNear(one, other)))
  return isApart && named.length <= PLACE_ZONES_MAX ? [caller, ...named] : [caller]
}

/**
 * A plan with its name, which is computed at its first use: it takes node's cryptography, and a command need not wait for that
 * to be loaded.
 */
export function named(plan: Omit<Plan, 'hash'>, caller: Place): Plan {
  const made: { hash?: string } = {}
  return {
    ...plan,
    get hash() {
      made.hash ??= nameIn(placesOf(plan, caller), planDigest(plan, placesOf(plan, caller)))
      return made.hash
    },
  }
}

/**
 * SHA-256 over the canonical JSON of a plan, with marks in the place of directories: the same for all of them. Without the name itself and
 * without what is given as the words of the command are.
 */
export function planDigest(plan: Omit<Plan, 'hash'>, places: Places): string {
  const { hash: _, ...decided } = { hash: '', ...plan, env: plan.env.filter(({ from }) => from !== 'given') }
  return sha256(canonicalJson(withoutPlaces(decided, places)))
}

/** 16 hexadecimal digits: what a digest is called for these directories. The same as name_in of native/lib/any-directory.c. */
export function nameIn(places: Places, digest: string): string {
  const identities = places.map(({ path, dev, ino, uid, gid }) => `\0${path}\0${dev}:${ino}:${uid}:${gid}`)
  return sha256(`${digest}${identities.join('')}`).slice(0, 16)
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Begins with a control character, which no other text of a plan has. */
const markOf = (at: number): string => `\u0001${at}`

function withoutPlaces(value: unknown, places: Places): unknown {
  if (typeof value === 'string') return markPlaces(value, places, markOf)
  if (Array.isArray(value)) return value.map((item) => withoutPlaces(item, places))
  if (value === null || typeof value !== 'object') return value
  const known = isAt(value, places) ? { ...value, dev: 0, ino: 0, uid: 0, gid: 0 } : value
  return Object.fromEntries(Object.entries(known).map(([key, item]) => [key, withoutPlaces(item, places)]))
}

const isAt = (value: object, places: Places): boolean =>
  'source' in value && 'ino' in value && places.some(({ path }) => value.source === path)

/** A path at or below one of the places, with its mark instead; everything else as it is. */
export function markPlaces(text: string, places: Places, mark: (at: number) => string): string {
  const at = places.findIndex(({ path }) => path !== '/' && isWithin(text, path))
  return at === -1 ? text : `${mark(at)}${text.slice(places[at]?.path.length)}`
}

/** JSON without whitespace and with sorted keys: one text for one value. Keys without a value are left out, as JSON does. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return `{${entries
    .sort(([a], [b]) => byText(a, b))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`)
    .join(',')}}`
}
