/**
 * Directories that the runner keeps for commands from one run to the next, such as caches: `~/.cache/llm-do/KIND/PROJECT/NAME`, one
 * place a project, so that what a command of one project leaves is read by that project alone, and one that is `shared` by name.
 * Each step from `llm-do` on is 0700 and this user's, and no link: plan/private-steps.ts refuses any other.
 * Edge: the file system.
 */
import { createHash } from 'node:crypto'
import { lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { makeDirectories } from '../os/make-directories.ts'
import { isOwnDirectory, makePrivateDirectory } from '../os/private-files.ts'
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
  const cache = usableCache(env, uid)
  if (cache === undefined) return undefined
  const root = join(canonical(dirname(cache)), basename(cache))
  const place = join(root, kind)
  return { root, project: join(place, projectName(directory)), shared: join(place, SHARED) }
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
