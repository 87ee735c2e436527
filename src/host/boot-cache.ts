/**
 * Remembers for one boot what was costly to find out. A convenience: whatever goes wrong with it, the answer is "not remembered".
 * Edge: file system (the cache directory).
 *
 * One private file a key, `facts-<checksum of the key>.json`, in a directory that only this user can write: 0700 and owned by the user,
 * else it is not used.
 */
import { lstatSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fnv1a64 } from '../os/checksum.ts'
import { orElse } from '../os/look.ts'
import {
  dropOldest,
  isOwnDirectory,
  makePrivateDirectory,
  readPrivateFile,
  writePrivateFile,
} from '../os/private-files.ts'
import { mappingIn } from '../text/json.ts'

/** Files kept; the oldest go. Each boot, user, container and terminal session has its own key. */
const MOST_FILES = 32
const LARGEST_FILE = 64 * 1024

/** `$XDG_CACHE_HOME/llm-do`, else `~/.cache/llm-do`; undefined when neither is known. */
export function cacheDirectory(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { XDG_CACHE_HOME: base, HOME: home } = env
  // The XDG base directory specification: a relative path is to be ignored.
  if (base?.startsWith('/')) return join(base, 'llm-do')
  return home?.startsWith('/') ? join(home, '.cache', 'llm-do') : undefined
}

/**
 * The same, where only this user decides what is there. root with the HOME of another user (sudo may keep it) has no cache: it would
 * be made, and looked for, where that user can put links.
 */
export function usableCache(env: Readonly<Record<string, string | undefined>>, uid: number): string | undefined {
  const directory = cacheDirectory(env)
  if (directory === undefined) return undefined
  const base = dirname(directory)
  const around = env['XDG_CACHE_HOME']?.startsWith('/') === true ? [base] : [dirname(base), base]
  return around.every((path) => isOwnOrMissing(path, uid)) ? directory : undefined
}

function isOwnOrMissing(path: string, uid: number): boolean {
  return orElse(false, () => {
    const seen = lstatSync(path, { throwIfNoEntry: false })
    return seen === undefined || seen.uid === uid
  })
}

export interface CacheInputs {
  readonly directory: string
  readonly key: string
  readonly uid: number
}

/** The value that was stored under exactly this key, or undefined. */
export function recall({ directory, key, uid }: CacheInputs): unknown {
  if (!isOwnDirectory(directory, uid)) return undefined
  const bytes = readPrivateFile(join(directory, nameFor(key)), { uid, most: LARGEST_FILE })
  const entry = bytes === undefined ? undefined : mappingIn(bytes.toString('utf8'))
  return entry?.key === key ? entry.value : undefined
}

/** Stores a value; silently does not when the place is read-only, full or not ours. */
export function remember({ directory, key, uid }: CacheInputs, value: unknown): void {
  try {
    makePrivateDirectory(dirname(directory))
    makePrivateDirectory(directory)
  } catch {
    return // Not remembered is only slower.
  }
  if (writePrivateFile({ directory, name: nameFor(key), uid }, JSON.stringify({ key, value })))
    dropOldest(directory, MOST_FILES, (name) => /^facts-[0-9a-f]{16}\.json$/.test(name))
}

export interface Sought<V> {
  readonly find: () => Promise<V>
  /** Whether an answer is good until the next boot; any other is sought again. */
  readonly isLasting: (found: V) => boolean
  /** Whether a remembered answer still holds. */
  readonly holds: (known: V) => boolean
}

/** The remembered value, or else a new one. @param inputs undefined = nothing is remembered */
export async function recallOrFind<V>(inputs: CacheInputs | undefined, sought: Sought<V>): Promise<V> {
  const known = inputs === undefined ? undefined : (recall(inputs) as V | undefined)
  if (known !== undefined && sought.holds(known)) return known
  const found = await sought.find()
  if (inputs !== undefined && sought.isLasting(found)) remember(inputs, found)
  return found
}

function nameFor(key: string): string {
  return `facts-${fnv1a64(Buffer.from(key))}.json`
}
