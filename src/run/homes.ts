/**
 * Home directories that are kept by a name, for the next runs of one user in one directory: caches and logins of an agent stay, and
 * another project never sees them.
 *
 *     STATE/homes/HASH/NAME    the home: the command may do there as it likes, its mode included
 *     STATE/homes/HASH/.project    the canonical path that the hash is of
 *
 * Every directory above a home belongs to this user alone (0700), and anything else there is refused. Simultaneous runs share a home.
 * Edge: the file system, processes.
 */
import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { SandboxError } from '../error.ts'
import { homesDirectory } from '../host/own-directory.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { checkNativePrograms, hostCall, nativeDirectory } from '../os/native-programs.ts'
import { isOwnDirectory, makePrivateDirectory, readPrivateFile, writePrivateFile } from '../os/private-files.ts'
import { runProgram } from '../os/run-program.ts'
import { SANDBOX_HOME, shown } from '../plan/well-known-paths.ts'
import type { Policy } from '../policy/policy.ts'
import type { Zone } from '../policy/values.ts'
import { shellWord } from '../text/shell-word.ts'
import type { Environment } from './caller.ts'

export interface HomeCaller {
  readonly env: Environment
  readonly uid: number
  /** Canonical. */
  readonly project: string
}

/** 64 bits: a search for two directories of the same hash is not worth it, and `.project` would tell them apart. */
const HASH_LENGTH = 16
const hashOf = (project: string): string => createHash('sha256').update(project).digest('hex').slice(0, HASH_LENGTH)

/**
 * The policy with the home as a zone; a zone that somebody has put there stays.
 * @throws SandboxError ZONE_INVALID where what has its name is not ours
 */
export function withHome(policy: Policy, { env, uid, project }: HomeCaller): Policy {
  const isTaken = policy.zones.some(({ target }) => target === SANDBOX_HOME)
  if (policy.home === null || isTaken) return policy
  const homes = homesDirectory(env, uid)
  if (homes === undefined)
    throw refusal('a home is kept in the state directory, and there is none', 'export HOME or XDG_STATE_HOME')
  const hostPath = join(homes, hashOf(project), policy.home)
  checkHome(hostPath, { uid, project })
  const origin = policy.origins['home']?.at(-1) ?? { layer: 'built-in', source: 'built-in', key: 'home' }
  const zone: Zone = {
    name: 'home',
    mode: 'rw',
    hostPath,
    target: SANDBOX_HOME,
    create: true,
    optional: false,
    // Nobody listens there but commands that have the same home: agents talk to servers of their own.
    sockets: true,
    isHome: true,
    origin,
  }
  return { ...policy, zones: [...policy.zones, zone] }
}

/** Every step from the state directory down is a directory of this user; above the home it is closed to all others. */
function checkHome(home: string, { uid, project }: Pick<HomeCaller, 'uid' | 'project'>): void {
  const holder = dirname(home)
  const above = [dirname(dirname(holder)), dirname(holder), holder]
  const wrong = [
    ...above.filter((path) => isThere(path) && !isOwnDirectory(path, uid)),
    ...(isThere(home) && !isOwnDirectory(home, uid, 0) ? [home] : []),
  ]
  const [first] = wrong
  if (first !== undefined) throw notOurs(first, uid)
  if (isThere(home) && projectOf(holder, uid) !== project) throw notOurs(holder, uid)
}

/** @throws SandboxError ZONE_INVALID where it cannot be made, or is not ours when it is there */
export function makeHome(home: string, { uid, project }: Pick<HomeCaller, 'uid' | 'project'>): string {
  const holder = dirname(home)
  const homes = dirname(holder)
  const state = dirname(homes)
  try {
    makeDirectories(dirname(state), 0o700)
    for (const path of [state, homes, holder]) makePrivateDirectory(path)
    // A home whose project is not on record would be refused by every later run.
    const isNew = isOwnDirectory(holder, uid) && projectOf(holder, uid) === undefined
    if (isNew && !writePrivateFile({ directory: holder, name: PROJECT, uid }, project))
      throw Object.assign(new Error(), { code: `${join(holder, PROJECT)} cannot be written` })
    makePrivateDirectory(home)
  } catch (cause) {
    throw refusal(
      `home ${shown(home)} cannot be made: ${(cause as NodeJS.ErrnoException).code}`,
      `ls -ld ${homes}; df -h ${homes}; df -i ${homes}`,
    )
  }
  checkHome(home, { uid, project })
  const { dev, ino } = lstatSync(home)
  return `${dev} ${ino}`
}

const PROJECT = '.project'
/** PATH_MAX of linux/limits.h. */
const LONGEST_PATH = 4096
const projectOf = (holder: string, uid: number): string | undefined =>
  readPrivateFile(join(holder, PROJECT), { uid, most: LONGEST_PATH })?.toString('utf8')

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

function notOurs(path: string, uid: number): SandboxError {
  const isOpen = isOwnDirectory(path, uid, 0) && !isOwnDirectory(path, uid)
  const hint = isOpen ? `chmod 700 ${shellWord(path)}` : `ls -ld ${shellWord(path)}`
  return refusal(`${shown(path)} is to hold a home that is kept, and is no private directory of yours`, hint)
}

const refusal = (message: string, hint: string): SandboxError => new SandboxError('ZONE_INVALID', message, { hint })

export interface KeptHome {
  readonly project: string
  readonly name: string
  readonly path: string
}

/** Sorted by project and name; what is not ours is left out. */
export function listHomes(env: Environment, uid: number): readonly KeptHome[] {
  const homes = homesDirectory(env, uid)
  if (homes === undefined || !isOwnDirectory(homes, uid)) return []
  const found = readdirSync(homes).flatMap((hash) => {
    const holder = join(homes, hash)
    const project = isOwnDirectory(holder, uid) ? projectOf(holder, uid) : undefined
    if (project === undefined) return []
    const names = readdirSync(holder).filter((name) => !name.startsWith('.'))
    return names.map((name) => ({ project, name, path: join(holder, name) }))
  })
  return found.toSorted((a, b) => (`${a.project}\0${a.name}` < `${b.project}\0${b.name}` ? -1 : 1))
}

/** Milliseconds; caches of years. */
const REMOVING_MS = 600_000

/**
 * Removes by the native program, which follows no link: a command that has the home may be running. It then has an empty home.
 * @throws SandboxError ZONE_INVALID where it cannot be removed
 */
export async function removeHome({ path }: KeptHome): Promise<void> {
  const directory = nativeDirectory()
  checkNativePrograms(directory, process.arch)
  const call = hostCall('runs', ['remove', dirname(path), basename(path)], directory)
  const { ok, why } = await runProgram({ ...call, patienceMs: REMOVING_MS })
  if (!ok) throw refusal(`home ${shown(path)} cannot be removed: ${why}`, 'llm-do ps   # a run may be at work in it')
  if (readdirSync(dirname(path)).every((name) => name === PROJECT)) rmSync(dirname(path), { recursive: true })
}
