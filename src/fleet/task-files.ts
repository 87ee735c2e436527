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

export class TooManyFiles extends Error {}

interface FoundFile {
  /** Relative, with slashes. */
  readonly name: string
  /** Its own while it is visited. */
  readonly handle: FileHandle
}

/** What a file is known by; a command cannot set the time of a change of its inode. */
export type Stamps = ReadonlyMap<string, string>

async function stampOf(handle: FileHandle): Promise<string> {
  const { ino, size, mtimeNs, ctimeNs } = await handle.stat({ bigint: true })
  return [ino, size, mtimeNs, ctimeNs].join(':')
}

/** @throws TooManyFiles */
export async function stampFiles(directory: string): Promise<Stamps> {
  const stamps = new Map<string, string>()
  await visit(directory, async ({ name, handle }) => {
    stamps.set(name, await stampOf(handle))
  })
  return stamps
}

/**
 * @returns the ZIP of the files that are not as `before` has them; undefined when there are none
 * @throws TooManyFiles when they are more than the bounds
 */
export async function packChanges(
  directory: string,
  before: Stamps,
  bounds = PACK_BOUNDS,
): Promise<Buffer | undefined> {
  const zip = new ZipFile()
  let [files, bytes] = [0, 0]
  await visit(directory, async ({ name, handle }) => {
    if (before.get(name) === (await stampOf(handle))) return
    const { size, mode } = await handle.stat()
    files += 1
    bytes += size
    if (files > bounds.files || bytes > bounds.bytes)
      throw new TooManyFiles(`more than ${bounds.files} changed files, or ${bounds.bytes} bytes of them`)
    zip.addBuffer(await handle.readFile(), name, { mode: mode & 0o777, mtime: EPOCH })
  })
  if (files === 0) return undefined
  zip.end()
  const chunks: Buffer[] = []
  for await (const chunk of zip.outputStream) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks)
}

/** The first moment that ZIP can express: the same files are the same archive. */
const EPOCH = new Date(1980, 0, 1)

async function visit(directory: string, see: (file: FoundFile) => Promise<void>): Promise<void> {
  const walk = { names: 0, see }
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
}

async function visitBelow({ handle, prefix, depth }: Visited, walk: Walk): Promise<void> {
  // As openat(2), which node lacks: the descriptor names the directory, whatever its path leads to now.
  const here = `/proc/self/fd/${handle.fd}`
  const names = (await readdir(here)).toSorted()
  walk.names += names.length
  if (walk.names > MOST_NAMES || depth > DEEPEST)
    throw new TooManyFiles(`more than ${MOST_NAMES} names, or more than ${DEEPEST} directories in each other`)
  for (const name of names) {
    const path = `${here}/${name}`
    // A name that is not UTF-8 is not found by what node makes of it: no archive could hold it.
    const seen = await lstat(path).catch(() => undefined)
    if (seen?.isDirectory() !== true && seen?.isFile() !== true) continue
    // O_NONBLOCK: it was a regular file a moment ago, and what it is now must not make us wait.
    const flags = seen.isDirectory() ? DIRECTORY_FLAGS : O_RDONLY | O_NOFOLLOW | O_NONBLOCK
    const found = await open(path, flags)
    try {
      const isFile = (await found.stat()).isFile()
      if (seen.isDirectory()) await visitBelow({ handle: found, prefix: `${prefix}${name}/`, depth: depth + 1 }, walk)
      else if (isFile) await walk.see({ name: `${prefix}${name}`, handle: found })
    } finally {
      await found.close()
    }
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
