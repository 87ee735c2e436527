/**
 * The secret that seals what is left on disk for the client: 32 random bytes of this user, see native/lib/seal.h, and the seal itself.
 * Edge: file system (the parent of the runs directory), the kernel's random numbers.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { isOwnDirectory, makePrivateDirectory, readPrivateFile, writePrivateFile } from '../os/private-files.ts'
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
    makePrivateDirectory(directory)
    if (!isOwnDirectory(directory, uid)) return undefined
    return readSecret(directory, uid) ?? makeSecret(directory, uid)
  } catch {
    return undefined // A read-only or full file system: the next run plans again.
  }
}

/** The same checks as in native/lib/seal.c. */
function readSecret(directory: string, uid: number): Buffer | undefined {
  const bytes = readPrivateFile(join(directory, 'key'), { uid, most: SECRET_BYTES })
  return bytes?.length === SECRET_BYTES ? bytes : undefined
}

/**
 * Whole or not at all. Of two runs that make the first key at once the last one's stays, and what the other has sealed is planned
 * again. A hard link would leave a key with two names, which is refused, if a run were killed before it took one away.
 */
function makeSecret(directory: string, uid: number): Buffer | undefined {
  const isThere = lstatSync(join(directory, 'key'), { throwIfNoEntry: false }) !== undefined
  if (!isThere) writePrivateFile({ directory, name: 'key', uid }, randomBytes(SECRET_BYTES))
  return readSecret(directory, uid)
}

/** HMAC with BLAKE2b-512, hexadecimal: `is_sealed` in native/lib/seal.c asks for the same. */
export function sealOf(secret: Uint8Array, bytes: Uint8Array): string {
  return createHmac('blake2b512', secret).update(bytes).digest('hex')
}
