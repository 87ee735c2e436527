/**
 * Remembers for one boot what was costly to find out. A convenience: whatever goes wrong with it, the answer is "not remembered".
 * Edge: file system (the cache directory), randomness (temporary names).
 *
 * One file a key, `facts-<digest of the key>.json`, in a directory that only this user can write: 0700 and owned by the user, else it is
 * not used. A file is written under a temporary name and renamed, so nobody reads half of one.
 */
import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

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

export interface CacheInputs {
  readonly directory: string
  readonly key: string
  readonly uid: number
}

/** What was stored under exactly this key, or undefined. */
export async function recall({ directory, key, uid }: CacheInputs): Promise<unknown> {
  if (!(await isPrivate(directory, uid))) return undefined
  const text = await readPrivate(join(directory, nameFor(key)), uid)
  const entry = text === undefined ? undefined : parsed(text)
  return entry?.key === key ? entry.value : undefined
}

/** Stores a value; silently does not when the place is read-only, full or not ours. */
export async function remember({ directory, key, uid }: CacheInputs, value: unknown): Promise<void> {
  const temporary = join(directory, `.${randomUUID()}`)
  try {
    await makeDirectory(dirname(directory))
    await makeDirectory(directory)
    if (!(await isPrivate(directory, uid))) return
    await writeNew(temporary, JSON.stringify({ key, value }))
    await rename(temporary, join(directory, nameFor(key)))
    await dropOldest(directory)
  } catch {
    // Not remembered is only slower. A file that was begun on a full disk must not stay.
    await rm(temporary, { force: true }).catch(() => undefined)
  }
}

export interface Sought<V> {
  readonly find: () => Promise<V>
  /** Whether an answer is good until the next boot; any other is sought again. */
  readonly isLasting: (found: V) => boolean
  /** Whether a remembered answer still holds. */
  readonly holds: (known: V) => Promise<boolean>
}

/** What is remembered, else what is found. @param place undefined = nothing is remembered */
export async function recallOrFind<V>(place: CacheInputs | undefined, sought: Sought<V>): Promise<V> {
  const known = place === undefined ? undefined : ((await recall(place)) as V | undefined)
  if (known !== undefined && (await sought.holds(known))) return known
  const found = await sought.find()
  if (place !== undefined && sought.isLasting(found)) await remember(place, found)
  return found
}

/** One level at a time: node's `recursive` never returns where the system refuses to make directories, as in /proc. */
export async function makeDirectory(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

function nameFor(key: string): string {
  return `facts-${createHash('sha256').update(key).digest('hex').slice(0, 16)}.json`
}

async function isPrivate(directory: string, uid: number): Promise<boolean> {
  const seen = await lstat(directory).catch(() => undefined)
  return seen?.isDirectory() === true && seen.uid === uid && (seen.mode & 0o077) === 0
}

async function readPrivate(file: string, uid: number): Promise<string | undefined> {
  // O_NONBLOCK: a FIFO of this name would make us wait for a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  )
  if (handle === undefined) return undefined
  try {
    const seen = await handle.stat()
    const ours = seen.isFile() && seen.uid === uid && (seen.mode & 0o022) === 0 && seen.size <= LARGEST_FILE
    return ours ? await handle.readFile('utf8') : undefined
  } catch {
    // Unreadable is the same as not there.
    return undefined
  } finally {
    await handle.close()
  }
}

async function writeNew(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
  } finally {
    await handle.close()
  }
}

async function dropOldest(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => /^facts-[0-9a-f]{16}\.json$/.test(name))
  if (names.length <= MOST_FILES) return
  const dated = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(directory, name))).mtimeMs })),
  )
  const old = dated.sort((a, b) => b.at - a.at).slice(MOST_FILES)
  await Promise.all(old.map(({ name }) => rm(join(directory, name), { force: true })))
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
