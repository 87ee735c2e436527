/** The name of a plan: a digest of all it says, the same for the same decisions. Pure. */
import { createHash } from 'node:crypto'
import type { PathFact } from '../host/facts.ts'
import type { Plan } from './plan.ts'
import { byText, isWithin } from './well-known-paths.ts'

/** A directory of the host: the one that the caller stands in. */
export interface Place {
  /** Canonical. */
  readonly path: string
  readonly dev: number
  readonly ino: PathFact['ino']
  readonly uid: number
  readonly gid: number
}

/**
 * A plan with its name, which is computed at its first use: it takes node's cryptography, and a command need not wait for that
 * to be loaded.
 */
export function named(plan: Omit<Plan, 'hash'>, place: Place): Plan {
  const made: { hash?: string } = {}
  return {
    ...plan,
    get hash() {
      made.hash ??= nameIn(place, planDigest(plan, place))
      return made.hash
    },
  }
}

/**
 * SHA-256 over the canonical JSON of a plan, with a mark in the place of the caller's directory: the same wherever the caller stands. Without
 * the name itself and without what is given as the words of the command are.
 */
export function planDigest(plan: Omit<Plan, 'hash'>, place: Place): string {
  const { hash: _, ...decided } = { hash: '', ...plan, env: plan.env.filter(({ from }) => from !== 'given') }
  return sha256(canonicalJson(withoutPlace(decided, place)))
}

/** 16 hexadecimal digits: what a digest is called in this directory. The same as name_in of native/lib/any-directory.c. */
export function nameIn({ path, dev, ino, uid, gid }: Place, digest: string): string {
  return sha256(`${digest}\0${path}\0${dev}:${ino}:${uid}:${gid}`).slice(0, 16)
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A control character, which no other text of a plan has. */
const MARK = '\u0001'

function withoutPlace(value: unknown, place: Place): unknown {
  if (typeof value === 'string') return markPlace(value, place, MARK)
  if (Array.isArray(value)) return value.map((item) => withoutPlace(item, place))
  if (value === null || typeof value !== 'object') return value
  const known = isAt(value, place) ? { ...value, dev: 0, ino: 0, uid: 0, gid: 0 } : value
  return Object.fromEntries(Object.entries(known).map(([key, item]) => [key, withoutPlace(item, place)]))
}

const isAt = (value: object, { path }: Place): boolean => 'source' in value && 'ino' in value && value.source === path

/** A path at or below the place, with the mark instead of it; everything else as it is. */
export function markPlace(text: string, { path }: Place, mark: string): string {
  return path !== '/' && isWithin(text, path) ? `${mark}${text.slice(path.length)}` : text
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
