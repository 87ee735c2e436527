/**
 * A ZIP file that somebody else made -> a new private directory. Nothing else has the directory yet, and nothing but directories and
 * regular files is ever made in it, so no name can lead out of it by a link.
 * Edge: the file system.
 */
import { createWriteStream } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Entry, openPromise, type ZipFile } from 'yauzl'
import { neutralise, utf8In } from '../core.ts'

/** The archive is at fault, or larger than is taken: another machine would refuse it, too. */
export class ArchiveError extends Error {}

export interface ArchiveBounds {
  /** Bytes of the archive itself. */
  readonly archiveBytes: number
  /** Bytes of all files together, as they are written. */
  readonly bytes: number
  /** Files and directories, those that names only imply among them. */
  readonly entries: number
  /** Times that the files may be larger than the archive, once they are larger than `ratioFromBytes`. */
  readonly ratio: number
  readonly ratioFromBytes: number
}

const MiB = 1024 * 1024

export const ARCHIVE_BOUNDS: ArchiveBounds = {
  archiveBytes: 256 * MiB,
  bytes: 1024 * MiB,
  entries: 50_000,
  // Deflate cannot do better than 1032:1; source code and logs stay below 20:1.
  ratio: 100,
  ratioFromBytes: 16 * MiB,
}

/**
 * Writes what arrives to a new file.
 * @throws ArchiveError for more than `most` bytes; whatever the source fails with
 */
export async function receiveArchive(source: AsyncIterable<Uint8Array>, file: string, most: number): Promise<void> {
  await pipeline(source, counting(most, 'the archive'), createWriteStream(file, { flags: 'wx', mode: 0o600 }))
}

/** @throws ArchiveError; then the directory holds a part of the files */
export async function unpack(archive: string, directory: string, bounds = ARCHIVE_BOUNDS): Promise<void> {
  try {
    const { size } = await stat(archive)
    const zip = await openPromise(archive, { strictFileNames: true, autoClose: false })
    try {
      await unpackAll(zip, new Unpacking(directory, mostBytes(size, bounds), bounds.entries))
    } finally {
      zip.close()
    }
  } catch (error) {
    if (isOurFault(error)) throw error
    throw error instanceof ArchiveError
      ? error
      : new ArchiveError(reasonOf(error as NodeJS.ErrnoException), { cause: error })
  }
}

/** The sender of the archive does not learn where it is unpacked. */
const reasonOf = ({ message, code, syscall }: NodeJS.ErrnoException): string =>
  syscall === undefined ? neutralise(message) : `it cannot be unpacked (${syscall}: ${code ?? ''})`

/** A full disk is not the archive's fault. */
const isOurFault = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE', 'EACCES'].includes(
    (error as NodeJS.ErrnoException).code ?? '',
  )

const mostBytes = (archiveBytes: number, { bytes, ratio, ratioFromBytes }: ArchiveBounds): number =>
  Math.min(bytes, Math.max(ratioFromBytes, archiveBytes * ratio))

async function unpackAll(zip: ZipFile, unpacking: Unpacking): Promise<void> {
  // The directory of the archive says how many; it may say too few, so they are counted as well.
  unpacking.checkCount(zip.entryCount)
  for await (const entry of zip.eachEntry()) await unpacking.add(zip, entry)
}

class Unpacking {
  private bytes = 0
  private readonly files = new Set<string>()
  /** Including directories that only names imply. */
  private readonly directories = new Set<string>()

  constructor(
    private readonly directory: string,
    private readonly mostBytes: number,
    private readonly mostEntries: number,
  ) {}

  checkCount(count: number): void {
    if (count > this.mostEntries) throw new ArchiveError(`more than ${this.mostEntries} files and directories`)
  }

  async add(zip: ZipFile, entry: Entry): Promise<void> {
    const fileName = nameOf(entry)
    const isDirectory = fileName.endsWith('/')
    const steps = stepsOf(fileName)
    checkKind(entry, isDirectory)
    await this.makeDirectories(isDirectory ? steps : steps.slice(0, -1))
    if (isDirectory) return
    const name = steps.join('/')
    if (this.files.has(name)) throw new ArchiveError(`two files have the name ${shown(name)}`)
    if (this.directories.has(name)) throw new ArchiveError(`${shown(name)} is a file and a directory`)
    this.files.add(name)
    this.checkCount(this.files.size + this.directories.size)
    await this.write(zip, entry, join(this.directory, name))
  }

  private async makeDirectories(steps: readonly string[]): Promise<void> {
    for (const [at] of steps.entries()) {
      const name = steps.slice(0, at + 1).join('/')
      if (this.directories.has(name)) continue
      if (this.files.has(name)) throw new ArchiveError(`${shown(name)} is a file and a directory`)
      this.directories.add(name)
      this.checkCount(this.files.size + this.directories.size)
      await mkdir(join(this.directory, name), { mode: 0o755 })
    }
  }

  private async write(zip: ZipFile, entry: Entry, file: string): Promise<void> {
    const content = await zip.openReadStreamPromise(entry)
    const left = this.mostBytes - this.bytes
    const count = (bytes: number): void => {
      this.bytes += bytes
    }
    // `wx` neither follows nor replaces what is there, such as a directory of that name.
    const output = createWriteStream(file, { flags: 'wx', mode: isExecutable(entry) ? 0o755 : 0o644 })
    await pipeline(content, counting(left, 'its files', count), output)
  }
}

/** Longest name of one step and of all in Linux (limits.h: NAME_MAX, PATH_MAX), with room for the directory itself. */
const LONGEST_STEP = 255
const LONGEST_NAME = 3_000
const DEEPEST = 64

/** General purpose bit 11: the name is UTF-8 (APPNOTE.TXT 4.4.4). */
const IS_UTF8 = 0x800

/** Without that mark a name may be in any encoding. Today's archivers that leave it out write UTF-8; other bytes are refused. */
function nameOf({ fileName, fileNameRaw, generalPurposeBitFlag }: Entry): string {
  if ((generalPurposeBitFlag & IS_UTF8) !== 0) return fileName
  const text = utf8In(fileNameRaw)
  if (text === undefined)
    throw new ArchiveError(`a name that cannot be used, because it is not UTF-8: ${shown(fileName)}`)
  return text
}

/** yauzl has refused absolute names, `..` and backslashes already; this does not rely on it. */
function stepsOf(name: string): readonly string[] {
  const steps = name.replace(/\/$/, '').split('/')
  const isPlain = (step: string): boolean =>
    step !== '' && step !== '.' && step !== '..' && Buffer.byteLength(step) <= LONGEST_STEP
  if (
    !steps.every(isPlain) ||
    /[\0\\\ufffd]/.test(name) ||
    Buffer.byteLength(name) > LONGEST_NAME ||
    steps.length > DEEPEST
  )
    throw new ArchiveError(`a name that cannot be used: ${shown(name)}`)
  return steps
}

const S_IFMT = 0o170000
const S_IFDIR = 0o040000
const S_IFREG = 0o100000

/** The mode that Unix archivers keep in the upper half; others leave 0 there. */
const unixMode = ({ externalFileAttributes }: Entry): number => externalFileAttributes >>> 16

function checkKind(entry: Entry, isDirectory: boolean): void {
  const kind = unixMode(entry) & S_IFMT
  if (kind !== 0 && kind !== (isDirectory ? S_IFDIR : S_IFREG))
    throw new ArchiveError(`${shown(entry.fileName)} is neither a regular file nor a directory`)
  if (!entry.canDecodeFileData())
    throw new ArchiveError(`${shown(entry.fileName)} is encrypted, or packed in an unknown way`)
}

/** Nothing else of a mode is taken over: no set-uid, no writing by others. */
const isExecutable = (entry: Entry): boolean => (unixMode(entry) & 0o100) !== 0

const shown = (name: string): string => `"${neutralise(name.slice(0, 100))}"`

/** Passes on at most so many bytes, whatever was declared. */
function counting(most: number, what: string, count: (bytes: number) => void = () => undefined): Transform {
  let seen = 0
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      seen += chunk.length
      count(chunk.length)
      if (seen > most) done(new ArchiveError(`${what} would take more than is allowed here (stopped at ${most} bytes)`))
      else done(null, chunk)
    },
  })
}
