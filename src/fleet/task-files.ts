/**
 * The regular files of a task's directory, before and after it: what the task has made or changed becomes a ZIP. The directory is opened
 * step by step by descriptors, so no link in it is ever followed; by then no process of the task lives any more.
 * Edge: the file system.
 */
import { constants, rmdirSync } from 'node:fs'
import { chmod, type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ZipFile } from 'yazl'

export interface PackBounds {
  /** Bytes of all files together. */
  readonly bytes: number
  readonly files: number
}

/** A report carries them in Base64 in one body. */
export const PACK_BOUNDS: PackBounds = { bytes: 32 * 1024 * 1024, files: 10_000 }

/** Directories below the task's own, of which each is open while what is in it is read. */
const DEEPEST = 128
/** Names that are looked at, whatever they are: a command can make millions of empty ones. */
const MOST_NAMES = 200_000

/** There are more names than are looked at. */
export class TooManyFiles extends Error {}

/** The files that a task has made. */
export interface Packed {
  /** A ZIP; absent where no file is left for it. */
  readonly zip?: Buffer
  /** Files that are not in it, `NAME: WHY`. */
  readonly left: readonly string[]
}

interface FoundFile {
  /** Relative, with slashes. */
  readonly name: string
  /** Its own while it is visited. */
  readonly handle: FileHandle
}

/** Identifies the content of a file; a command cannot set the time of a change of its inode. */
export type Stamps = ReadonlyMap<string, string>

async function stampOf(handle: FileHandle): Promise<string> {
  const { ino, size, mtimeNs, ctimeNs } = await handle.stat({ bigint: true })
  return [ino, size, mtimeNs, ctimeNs].join(':')
}

/** @throws TooManyFiles */
export async function stampFiles(directory: string): Promise<Stamps> {
  const stamps = new Map<string, string>()
  const see = async ({ name, handle }: FoundFile): Promise<void> => void stamps.set(name, await stampOf(handle))
  await visit(directory, { see, leave: () => undefined })
  return stamps
}

/**
 * Packs the files that are not as `before` has them. A file that cannot be packed is left out and named; the others are packed all the same.
 * @throws TooManyFiles
 */
export async function packChanges(directory: string, before: Stamps, bounds = PACK_BOUNDS): Promise<Packed> {
  const zip = new ZipFile()
  const left: string[] = []
  const leave = (name: string, why: string): void => void left.push(`${name}: ${why}`)
  let [files, bytes] = [0, 0]
  const see = async ({ name, handle }: FoundFile): Promise<void> => {
    if (before.get(name) === (await stampOf(handle))) return
    const { size, mode } = await handle.stat()
    if (files >= bounds.files) return leave(name, `more than ${bounds.files} changed files`)
    if (bytes + size > bounds.bytes) return leave(name, `more than ${bounds.bytes} bytes of changed files`)
    // yazl would pack `a\\b` as `a/b`, and refuses what other systems take for a path of their own, such as `C:x`.
    if (name.includes('\\')) return leave(name, 'no archive can hold this name')
    const content = await handle.readFile()
    try {
      zip.addBuffer(content, name, { mode: mode & 0o777, mtime: EPOCH })
    } catch {
      return leave(name, 'no archive can hold this name')
    }
    files += 1
    bytes += size
  }
  await visit(directory, { see, leave })
  if (files === 0) return { left }
  zip.end()
  const chunks: Buffer[] = []
  for await (const chunk of zip.outputStream) chunks.push(Buffer.from(chunk as Uint8Array))
  return { zip: Buffer.concat(chunks), left }
}

/** The first moment that ZIP can express: the same files are the same archive. */
const EPOCH = new Date(1980, 0, 1)

async function visit(directory: string, visitor: Omit<Walk, 'names'>): Promise<void> {
  const walk = { names: 0, ...visitor }
  const handle = await open(directory, DIRECTORY_FLAGS)
  try {
    await visitBelow({ handle, prefix: '', depth: 0 }, walk)
  } finally {
    await handle.close()
  }
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants
const DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW

interface Visited {
  readonly handle: FileHandle
  /** Of the names in it: empty, or ends in a slash. */
  readonly prefix: string
  readonly depth: number
}

interface Walk {
  names: number
  readonly see: (file: FoundFile) => Promise<void>
  /** Something that cannot be looked at; the rest can. */
  readonly leave: (name: string, why: string) => void
}

async function visitBelow({ handle, prefix, depth }: Visited, walk: Walk): Promise<void> {
  // As openat(2), which node lacks: the descriptor names the directory, whatever its path leads to now.
  const here = `/proc/self/fd/${handle.fd}`
  const names = (await readdir(here)).toSorted()
  walk.names += names.length
  if (walk.names > MOST_NAMES) throw new TooManyFiles(`more than ${MOST_NAMES} names`)
  if (depth > DEEPEST) return walk.leave(prefix, `more than ${DEEPEST} directories in each other`)
  for (const name of names) {
    const at = `${prefix}${name}`
    try {
      await visitOne({ path: `${here}/${name}`, at, depth }, walk)
    } catch (error) {
      // For example a mode without the right to read; a full table of descriptors is not the file's fault.
      const { code = '' } = error as NodeJS.ErrnoException
      if (!['EACCES', 'EPERM', 'ELOOP', 'ENXIO', 'ENOENT'].includes(code)) throw error
      walk.leave(at, `it cannot be opened (${code})`)
    }
  }
}

async function visitOne({ path, at, depth }: { path: string; at: string; depth: number }, walk: Walk): Promise<void> {
  const seen = await lstat(path).catch(() => undefined)
  if (seen === undefined) return walk.leave(at, 'its name is not UTF-8')
  if (!seen.isDirectory() && !seen.isFile()) return
  // O_NONBLOCK: it was a regular file a moment ago, and what it is now must not make us wait.
  const flags = seen.isDirectory() ? DIRECTORY_FLAGS : O_RDONLY | O_NOFOLLOW | O_NONBLOCK
  const found = await open(path, flags)
  try {
    const isFile = (await found.stat()).isFile()
    if (seen.isDirectory()) await visitBelow({ handle: found, prefix: `${at}/`, depth: depth + 1 }, walk)
    else if (isFile) await walk.see({ name: at, handle: found })
  } finally {
    await found.close()
  }
}

/** Also where a command has left directories that not even their owner may enter. */
export async function removeTree(directory: string): Promise<void> {
  if (removeEmpty(directory)) return
  try {
    await rm(directory, { recursive: true, force: true })
  } catch {
    await openUp(directory)
    await rm(directory, { recursive: true, force: true })
  }
}

/** One call for what most tasks leave, an empty directory and no archive. @returns whether nothing is there any more */
function removeEmpty(directory: string): boolean {
  try {
    rmdirSync(directory)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

async function openUp(directory: string): Promise<void> {
  await chmod(directory, 0o700)
  for (const entry of await readdir(directory, { withFileTypes: true }))
    if (entry.isDirectory()) await openUp(join(directory, entry.name))
}
