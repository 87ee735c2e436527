/**
 * Approvals that last as long as a terminal session: one file a session, owner only, named by the session's leader and the
 * time it started, so that a later session with the same number has none of them.
 * Edge: the user's runtime directory.
 */
import { appendFile } from 'node:fs/promises'
import path from 'node:path'
import { ownDirectory } from '../host/own-directory.ts'
import { orElse } from '../os/look.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { isOwnDirectory, readPrivateFile } from '../os/private-files.ts'
import { bootId, identityOf, sessionLeaderOf } from '../os/process-identity.ts'
import { type Memory, processMemory } from './approval.ts'

/** More approvals than a person gives in a session; a larger file is not believed. */
const LARGEST_FILE = 1024 ** 2

/** Where sessions keep their approvals: in the directory that every run keeps read-only. */
export function approvalsDirectory(env: Readonly<Record<string, string | undefined>>, uid: number): string {
  return path.posix.join(ownDirectory(env, uid), 'approvals')
}

export interface SessionMemoryOptions {
  readonly directory: string
  readonly uid: number
  /** The process of the session, as /proc names it; this one by default. */
  readonly member?: string
}

/**
 * The memory of a terminal session; of this process alone where the session's leader is gone or out of sight (what tells
 * a session from a later one of the same number), or where the directory is not safely ours. Nothing is looked at before
 * it is asked, nothing is made before there is a key.
 */
export function sessionMemory({ directory, uid, member = 'self' }: SessionMemoryOptions): Memory {
  const own = processMemory()
  const fileNow = () => {
    const session = sessionName(member)
    return session !== undefined && isSafe(directory, uid) ? path.join(directory, session) : undefined
  }
  return {
    has: async (key) => {
      if (await own.has(key)) return true
      const file = fileNow()
      return file !== undefined && keysOf(file, uid).includes(key)
    },
    add: async (key) => {
      await own.add(key)
      // Where it cannot be made, there is nothing to remember in, and the next run asks again.
      orElse(undefined, () => makeDirectories(directory, 0o700))
      const file = fileNow()
      // A full disk forgets the answer; the next run asks again.
      if (file !== undefined) await appendFile(file, `${key}\n`, { mode: 0o600 }).catch(() => undefined)
    },
  }
}

function keysOf(file: string, uid: number): readonly string[] {
  const text = readPrivateFile(file, { uid, most: LARGEST_FILE })?.toString('utf8') ?? ''
  return text.split('\n').filter((line) => line !== '')
}

const isSafe = (directory: string, uid: number): boolean =>
  [path.dirname(directory), directory].every((path) => isOwnDirectory(path, uid, 0o022))

/** The leader's identity as a file name; undefined where /proc does not show it, or not which boot this is. */
function sessionName(member: string): string | undefined {
  const leader = sessionLeaderOf(member)
  const identity = leader === undefined || bootId() === undefined ? undefined : identityOf(leader)
  return identity?.replaceAll(/[/:]/g, '-')
}
