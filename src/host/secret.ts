/**
 * The secret that seals what is left on disk for the front-end: 32 random bytes of this user, see native/lib/seal.h, and the seal itself.
 * Edge: file system (the directory beside the runs directory), the kernel's random numbers.
 */
import { createHmac, randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { randomHex } from '../random.ts'
import { makeDirectory } from './cache.ts'
import { secretDirectory } from './own-directory.ts'

const SECRET_BYTES = 32

export interface SecretInputs {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly uid: number
}

/**
 * Reads the secret, and makes it when there is none.
 * @returns undefined where this user has no directory for it, or it is not safely ours: then nothing can be sealed
 */
export function takeSecret({ env, uid }: SecretInputs): Buffer | undefined {
  const directory = secretDirectory(env, uid)
  if (directory === undefined) return undefined
  try {
    makeDirectory(directory)
    const seen = lstatSync(directory)
    if (!seen.isDirectory() || seen.uid !== uid || (seen.mode & 0o077) !== 0) return undefined
    return readSecret(directory, uid) ?? makeSecret(directory, uid)
  } catch {
    return undefined // A read-only or full file system: the next run plans again.
  }
}

/** The same checks as in native/lib/seal.c. */
function readSecret(directory: string, uid: number): Buffer | undefined {
  const fd = openIfThere(join(directory, 'key'))
  if (fd === undefined) return undefined
  try {
    const seen = fstatSync(fd)
    const isOurs = seen.isFile() && seen.uid === uid && (seen.mode & 0o177) === 0 && seen.nlink === 1
    const bytes = Buffer.alloc(SECRET_BYTES)
    return isOurs && seen.size === SECRET_BYTES && readSync(fd, bytes) === SECRET_BYTES ? bytes : undefined
  } finally {
    closeSync(fd)
  }
}

function openIfThere(file: string): number | undefined {
  try {
    return openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
}

/**
 * Whole or not at all. Of two runs that make the first key at once the last one's stays, and what the other has sealed is planned
 * again. A hard link would leave a key with two names, which is refused, if a run were killed before it took one away.
 */
function makeSecret(directory: string, uid: number): Buffer | undefined {
  const [temporary, key] = [join(directory, `.${randomHex(16)}`), join(directory, 'key')]
  try {
    if (lstatSync(key, { throwIfNoEntry: false }) !== undefined) return readSecret(directory, uid)
    writeFileSync(temporary, randomBytes(SECRET_BYTES), { flag: 'wx', mode: 0o600 })
    renameSync(temporary, key)
  } catch {
    rmSync(temporary, { force: true }) // Nothing can be written here, or not enough.
  }
  return readSecret(directory, uid)
}

/** HMAC with BLAKE2b-512, hexadecimal: `is_sealed` in native/lib/seal.c asks for the same. */
export function sealOf(secret: Uint8Array, bytes: Uint8Array): string {
  return createHmac('blake2b512', secret).update(bytes).digest('hex')
}
