/**
 * Files that only this user may read or write: each is written under a temporary name and renamed, so that no reader sees half of one,
 * and is not believed when another user could have changed it. What cannot be written or read safely counts as missing.
 * Edge: the file system, randomness (temporary names).
 */
import {
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { orElse, withOpenFile } from './look.ts'
import { randomHex } from './random-id.ts'

/** One level: the directory above has to exist, so that a missing home directory is not made. */
export function makePrivateDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** A directory, no link to one, that belongs to this user. @param forbidden mode bits that must not be set */
export function isOwnDirectory(directory: string, uid: number, forbidden = 0o077): boolean {
  // A directory that may not be looked at is not ours.
  return orElse(false, () => {
    const found = lstatSync(directory, { throwIfNoEntry: false })
    return found?.isDirectory() === true && found.uid === uid && (found.mode & forbidden) === 0
  })
}

export interface PrivateFile {
  /** Private already, else nothing is written. */
  readonly directory: string
  readonly name: string
  readonly uid: number
  /** On disk before it has its name: a power cut leaves the whole file or none. */
  readonly isFlushed?: boolean
}

/** @returns false where the place is read-only, full or not ours */
export function writePrivateFile(file: PrivateFile, content: string | Uint8Array): boolean {
  const { directory, name, uid, isFlushed = false } = file
  if (!isOwnDirectory(directory, uid)) return false
  const temporary = join(directory, `.${randomHex(16)}`)
  try {
    writeFileSync(temporary, content, { flag: 'wx', mode: 0o600, flush: isFlushed })
    renameSync(temporary, join(directory, name))
    return true
  } catch {
    removeIfPossible(temporary)
    return false
  }
}

/** A file that was begun on a full disk must not stay. */
function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // Where nothing can be removed, nothing was made.
  }
}

/** @returns undefined unless it is a regular file of this user with one name, closed to all others, of at most that many bytes */
export function readPrivateFile(
  file: string,
  { uid, most }: { readonly uid: number; readonly most: number },
): Buffer | undefined {
  const read = (fd: number): Buffer | undefined => {
    const found = fstatSync(fd)
    const isPrivate = found.isFile() && found.uid === uid && found.nlink === 1 && (found.mode & 0o177) === 0
    return isPrivate && found.size <= most ? readFileSync(fd) : undefined
  }
  return orElse(undefined, () => withOpenFile(file, read, constants.O_NOFOLLOW))
}

/** Keeps the newest files of those whose names fit. */
export function dropOldest(directory: string, most: number, isOne: (name: string) => boolean = () => true): void {
  try {
    const names = readdirSync(directory).filter(isOne)
    if (names.length <= most) return
    const dated = names.map((name) => ({ name, at: statSync(join(directory, name)).mtimeMs }))
    const old = dated.sort((a, b) => b.at - a.at).slice(most)
    for (const { name } of old) rmSync(join(directory, name), { force: true })
  } catch {
    // Another run is dropping them too.
  }
}
