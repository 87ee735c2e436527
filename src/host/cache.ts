/**
 * Remembers for one boot what was costly to find out. A convenience: whatever goes wrong with it, the answer is "not remembered".
 * Edge: file system (the cache directory), randomness (temporary names).
 *
 * One file a key, `facts-<sum of the key>.json`, in a directory that only this user can write: 0700 and owned by the user, else it is
 * not used. A file is written under a temporary name and renamed, so nobody reads half of one.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { randomHex } from '../random.ts'
import { sumOf } from '../sum.ts'

/** Files kept; the oldest go. Each boot, user, container and terminal session has a key of its own. */
const MOST_FILES = 16
const LARGEST_FILE = 64 * 1024

/** `$XDG_CACHE_HOME/llm-do`, else `~/.cache/llm-do`; undefined when neither is known. */
export function cacheDirectory(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { XDG_CACHE_HOME: base, HOME: home } = env
  // The XDG base directory specification: a relative path is to be ignored.
  if (base?.startsWith('/')) return join(base, 'llm-do')
  return home?.startsWith('/') ? join(home, '.cache', 'llm-do') : undefined
}

/**
 * The same, where only this user decides what is there. root with the HOME of somebody else (sudo may keep it) has no cache: it would
 * be made, and looked for, where that user can put links.
 */
export function usableCache(env: Readonly<Record<string, string | undefined>>, uid: number): string | undefined {
  const directory = cacheDirectory(env)
  if (directory === undefined) return undefined
  const base = dirname(directory)
  const around = env['XDG_CACHE_HOME']?.startsWith('/') === true ? [base] : [dirname(base), base]
  return around.every((place) => isOwnOrMissing(place, uid)) ? directory : undefined
}

function isOwnOrMissing(place: string, uid: number): boolean {
  try {
    const seen = lstatSync(place, { throwIfNoEntry: false })
    return seen === undefined || seen.uid === uid
  } catch {
    return false
  }
}

export interface CacheInputs {
  readonly directory: string
  readonly key: string
  readonly uid: number
}

/** What was stored under exactly this key, or undefined. */
export function recall({ directory, key, uid }: CacheInputs): unknown {
  if (!isPrivate(directory, uid)) return undefined
  const text = readPrivate(join(directory, nameFor(key)), uid)
  const entry = text === undefined ? undefined : parsed(text)
  return entry?.key === key ? entry.value : undefined
}

/** Stores a value; silently does not when the place is read-only, full or not ours. */
export function remember({ directory, key, uid }: CacheInputs, value: unknown): void {
  const temporary = join(directory, `.${randomHex(16)}`)
  try {
    makeDirectory(dirname(directory))
    makeDirectory(directory)
    if (!isPrivate(directory, uid)) return
    writeFileSync(temporary, JSON.stringify({ key, value }), { flag: 'wx', mode: 0o600 })
    renameSync(temporary, join(directory, nameFor(key)))
    dropOldest(directory)
  } catch {
    forget(temporary) // Not remembered is only slower.
  }
}

/** A file that was begun on a full disk must not stay. */
function forget(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // A place in which nothing can be removed has nothing of ours.
  }
}

export interface Sought<V> {
  readonly find: () => Promise<V>
  /** Whether an answer is good until the next boot; any other is sought again. */
  readonly isLasting: (found: V) => boolean
  /** Whether a remembered answer still holds. */
  readonly holds: (known: V) => boolean
}

/** What is remembered, else what is found. @param place undefined = nothing is remembered */
export async function recallOrFind<V>(place: CacheInputs | undefined, sought: Sought<V>): Promise<V> {
  const known = place === undefined ? undefined : (recall(place) as V | undefined)
  if (known !== undefined && sought.holds(known)) return known
  const found = await sought.find()
  if (place !== undefined && sought.isLasting(found)) remember(place, found)
  return found
}

/** One level at a time: node's `recursive` never returns where the system refuses to make directories, as in /proc. */
export function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function nameFor(key: string): string {
  return `facts-${sumOf(Buffer.from(key))}.json`
}

function isPrivate(directory: string, uid: number): boolean {
  try {
    const seen = lstatSync(directory, { throwIfNoEntry: false })
    return seen?.isDirectory() === true && seen.uid === uid && (seen.mode & 0o077) === 0
  } catch {
    return false // Not to be looked at is the same as not ours.
  }
}

function readPrivate(file: string, uid: number): string | undefined {
  try {
    // O_NONBLOCK: a FIFO of this name would make us wait for a writer.
    const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      return isOurs(fd, uid) ? readFileSync(fd, 'utf8') : undefined
    } finally {
      closeSync(fd)
    }
  } catch {
    return undefined // Unreadable is the same as not there.
  }
}

function isOurs(fd: number, uid: number): boolean {
  const seen = fstatSync(fd)
  return seen.isFile() && seen.uid === uid && (seen.mode & 0o022) === 0 && seen.size <= LARGEST_FILE
}

function dropOldest(directory: string): void {
  const names = readdirSync(directory).filter((name) => /^facts-[0-9a-f]{16}\.json$/.test(name))
  if (names.length <= MOST_FILES) return
  const dated = names.map((name) => ({ name, at: statSync(join(directory, name)).mtimeMs }))
  const old = dated.sort((a, b) => b.at - a.at).slice(MOST_FILES)
  for (const { name } of old) rmSync(join(directory, name), { force: true })
}

function parsed(text: string): { readonly key?: unknown; readonly value?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return value !== null && typeof value === 'object' ? value : undefined
  } catch {
    // Not ours, or cut: the same as not there.
    return undefined
  }
}
