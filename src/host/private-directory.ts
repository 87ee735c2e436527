/**
 * Directories that the runner keeps for commands from one run to the next, such as caches: `~/.cache/llm-do/KIND/PROJECT/NAME`, one
 * place a project, so that what a command of one project leaves is read by that project alone, and one that is `shared` by name.
 * Each step from `llm-do` on is 0700 and this user's, and no link: plan/private-steps.ts refuses any other.
 * Edge: the file system, processes.
 */
import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { SandboxError } from '../error.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { hostCall } from '../os/native-programs.ts'
import { isOwnDirectory, makePrivateDirectory } from '../os/private-files.ts'
import { runProgram } from '../os/run-program.ts'
import { usableCache } from './boot-cache.ts'

type Variables = Readonly<Record<string, string | undefined>>

/** Where the directories of one kind are; nothing is made yet. */
export interface PrivatePlaces {
  /** The outermost that is ours: every step from here on is private. */
  readonly root: string
  /** Holds those of this project. */
  readonly project: string
  /** Holds those that all projects of this user share. */
  readonly shared: string
}

export interface PlaceInputs {
  readonly env: Variables
  readonly uid: number
  readonly kind: string
  /** Canonical directory of the project. */
  readonly directory: string
}

/** No project has this name: theirs end in a digest. */
const SHARED = 'shared'

/** @returns undefined where this user has no cache directory */
export function privatePlaces({ env, uid, kind, directory }: PlaceInputs): PrivatePlaces | undefined {
  const place = placeOf(env, uid, kind)
  if (place === undefined) return undefined
  return { root: dirname(place), project: join(place, projectName(directory)), shared: join(place, SHARED) }
}

/** As far as it is there. */
function canonical(directory: string): string {
  try {
    return realpathSync.native(directory)
  } catch {
    return directory === '/' ? directory : join(canonical(dirname(directory)), basename(directory))
  }
}

/** The last word of the path for people, and a digest of all of it. */
function projectName(directory: string): string {
  const word = basename(directory)
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .slice(0, 40)
  return `${word}-${createHash('sha256').update(directory).digest('hex').slice(0, 16)}`
}

/**
 * Makes directories, each in the one before it, and looks at them.
 * @throws Error where one cannot be made, or is not this user's alone
 */
export function makePrivateSteps(steps: readonly string[], uid: number): void {
  const above = dirname(steps[0] ?? '/')
  if (lstatSync(above, { throwIfNoEntry: false }) === undefined) makeDirectories(above, 0o700)
  for (const step of steps) {
    makePrivateDirectory(step)
    if (!isOwnDirectory(step, uid)) throw new Error(`${step} is no directory of yours that is closed to all others`)
  }
}

/** Kept directories of one kind: `PROJECT/NAME`, sorted. */
export function listPrivate(env: Variables, uid: number, kind: string): readonly string[] {
  const place = placeOf(env, uid, kind)
  if (place === undefined) return []
  const namesIn = (directory: string): readonly string[] =>
    isOwnDirectory(directory, uid) ? readdirSync(directory) : []
  return namesIn(place)
    .flatMap((project) => namesIn(join(place, project)).map((name) => `${project}/${name}`))
    .sort()
}

/** Milliseconds: a million files on a slow disk. */
const REMOVAL_MS = 10 * 60_000

/**
 * By the native program: a command that is still running may change what is removed, and no link of its making is followed.
 * @param name `PROJECT` or `PROJECT/NAME`, of listPrivate
 * @throws SandboxError BACKEND_FAILED
 */
export async function removePrivate(
  env: Variables,
  uid: number,
  { kind, name }: { readonly kind: string; readonly name: string },
): Promise<void> {
  const path = join(placeOf(env, uid, kind) ?? '/', name)
  const call = hostCall('runs', ['remove', dirname(path), basename(path)])
  const { ok, why } = await runProgram({ ...call, patienceMs: REMOVAL_MS })
  if (!ok) throw new SandboxError('BACKEND_FAILED', `${path} cannot be removed: ${why}`, { hint: `ls -ld ${path}` })
}

function placeOf(env: Variables, uid: number, kind: string): string | undefined {
  const cache = usableCache(env, uid)
  return cache === undefined ? undefined : join(canonical(dirname(cache)), basename(cache), kind)
}
