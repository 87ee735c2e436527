/**
 * Where the runner keeps what is its own: records of live runs, pools, approvals, and the secret that seals the launch cache.
 * Edge: file system (lstat, access); makes nothing.
 *
 * root has /run/llm-do. A user has the runtime directory of the session, which is emptied with it: $XDG_RUNTIME_DIR, else
 * /run/user/UID. Where there is none the records go below /tmp, and where another user took that name, below the cache directory or
 * under a name with a number. Every verb looks in the same order, so that ps and prune find what exec made.
 */
import { constants, lstatSync, type Stats, statSync } from 'node:fs'
import { posix } from 'node:path'
import { may, orElse } from '../os/look.ts'
import { cacheDirectory } from './boot-cache.ts'

type Variables = Readonly<Record<string, string | undefined>>

const ROOT = '/run/llm-do'
/** Names below /tmp; another user that takes all of them can keep this user from having records there. */
const MOST_NAMES = 9

/**
 * The directory that holds the secret. Not below /tmp or a home, which zones show.
 * @returns undefined where this user has no runtime directory
 */
export const secretDirectory = (env: Variables, uid: number): string | undefined => secretDirectories(env, uid)[0]

/** All directories that hold a secret of this user, whichever variables a run has: no zone may show them. */
export function secretDirectories(env: Variables, uid: number): readonly string[] {
  if (uid === 0) return [ROOT]
  return runtimeDirectories(env, uid).filter((directory) => isUsable(directory, uid))
}

/** Holds the records of live runs and what a user allowed for a session. */
export function ownDirectory(env: Variables, uid: number): string {
  const first = secretDirectory(env, uid)
  if (first !== undefined) return first
  const candidates = withoutRuntimeDirectory(env, uid)
  return candidates.find((candidate) => isUsable(candidate, uid)) ?? sharedName(uid)
}

/**
 * Of live runs: written by launch, read by `llm-do ps`. Out of reach of every command, since a record says what is removed after a run.
 * launch makes the last two directories, follows no link to them, and refuses them when another user owns them.
 */
export const runsDirectory = (env: Variables, uid: number): string => posix.join(ownDirectory(env, uid), 'runs')

/** Holds one directory for each pool of the user: next to the records of runs, see native/client/pool-client.c. */
export const poolsDirectory = (env: Variables, uid: number): string => posix.join(ownDirectory(env, uid), 'pool')

/** Every directory that `ownDirectory` can be, also where a later run has other variables. */
export function ownDirectories(env: Variables, uid: number): readonly string[] {
  return uid === 0 ? [ROOT] : [...secretDirectories(env, uid), ...withoutRuntimeDirectory(env, uid)]
}

const sharedName = (uid: number): string => `/tmp/llm-do-${uid}`

function withoutRuntimeDirectory(env: Variables, uid: number): readonly string[] {
  const shared = sharedName(uid)
  const cache = cacheDirectory(env)
  const numbered = Array.from({ length: MOST_NAMES }, (_, index) => `${shared}-${index + 1}`)
  return [shared, ...(cache === undefined ? [] : [posix.join(cache, 'run')]), ...numbered]
}

/** The directory that survives a boot, by the XDG base directory rules; undefined for a user with neither variable nor home. */
export function stateDirectory(
  { XDG_STATE_HOME: said = '', HOME: home = '' }: Variables,
  uid: number,
): string | undefined {
  if (uid === 0) return '/var/lib/llm-do'
  const base = [said, posix.join(home || '.', '.local/state')].find((candidate) => posix.isAbsolute(candidate))
  return base === undefined ? undefined : posix.join(base, 'llm-do')
}

/** Of homes that are kept by a name (run/homes.ts). */
export function homesDirectory(env: Variables, uid: number): string | undefined {
  const state = stateDirectory(env, uid)
  return state === undefined ? undefined : posix.join(state, 'homes')
}

/** The same rule as in native/lib/seal.c. */
function runtimeDirectories({ XDG_RUNTIME_DIR: runtimeDirectory = '' }: Variables, uid: number): readonly string[] {
  const standard = `/run/user/${uid}`
  const bases = [
    ...(posix.isAbsolute(runtimeDirectory) && isOwn(statusOf(statSync, runtimeDirectory), uid, 0o022)
      ? [runtimeDirectory]
      : []),
    ...(isOwn(statusOf(statSync, standard), uid, 0o077) ? [standard] : []),
  ]
  return bases.map((base) => posix.join(base, 'llm-do'))
}

/** It is ours alone, or can be made. */
function isUsable(directory: string, uid: number): boolean {
  const seen = statusOf(lstatSync, directory)
  return seen === undefined ? canBeMade(directory) : isOwn(seen, uid, 0o077)
}

function canBeMade(directory: string): boolean {
  const parent = posix.dirname(directory)
  if (statusOf(statSync, parent) === undefined) return parent !== directory && canBeMade(parent)
  return may(parent, constants.W_OK | constants.X_OK)
}

function isOwn(seen: Stats | undefined, uid: number, forbidden: number): boolean {
  return seen?.isDirectory() === true && seen.uid === uid && (seen.mode & forbidden) === 0
}

function statusOf(stat: typeof lstatSync | typeof statSync, path: string): Stats | undefined {
  // Closed to us, or in the way of a file: as good as not there.
  return orElse(undefined, () => stat(path, { throwIfNoEntry: false }))
}
