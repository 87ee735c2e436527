/**
 * Protected names where there is no guard: Docker Desktop on macOS and Windows, where no caller is root and the daemon acts in a virtual
 * machine. What exists is covered as elsewhere; what does not is looked for when the container is gone, and renamed aside.
 * Edge: files.
 */
import { lstatSync, readdirSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { PlannedZone } from '../../plan/plan.ts'
import type { Guarded, ProtectedAttempt } from '../outcome.ts'
import { type Cover, coversOf } from './mounts.ts'

const GIT = '.git'

/** What git runs, obeys or is led by, in each git directory: native/lib/guard.c. */
const CLOSED_IN_GIT = [
  'config',
  'config.worktree',
  'commondir',
  'gitdir',
  'hooks',
  'info/attributes',
  'objects/info/alternates',
  'objects/info/http-alternates',
  'modules',
  'worktrees',
] as const

/** A zone with the closed names of each git directory in it among its protected paths. */
export function withGit(zone: PlannedZone): PlannedZone {
  const { git, source } = zone
  if (git === undefined) return zone
  const closed = CLOSED_IN_GIT.filter((name) => !(git.open as readonly string[]).includes(name))
  const inGit = gitIn(source).flatMap((path) =>
    kindOf(join(source, path)) === 'directory' ? closed.map((name) => `${path}/${name}`) : [path],
  )
  return { ...zone, protect: [...new Set([...zone.protect, ...inGit])] }
}

/** Of the covers that a zone could have, those that there is something for. */
export function coversThere(zone: PlannedZone): readonly Cover[] {
  return coversOf(zone).filter(({ path }) => kindOf(join(zone.source, path)) !== 'missing')
}

/** Looks now at what is missing; the function that it returns does so again, and renames aside what has come. */
export function watchByHand(zones: readonly PlannedZone[], runId: string): () => Guarded | undefined {
  const missing = zones.flatMap(({ source, protect }) =>
    protect.map((path) => missingName(source, path)).filter((path) => path !== undefined),
  )
  const known = new Map(
    zones.map((zone) => [zone.source, zone.git === undefined ? undefined : new Set(gitIn(zone.source))]),
  )
  return () => {
    const names = missing.filter((path) => kindOf(path) !== 'missing')
    const git = [...known].flatMap(([source, before]) =>
      before === undefined
        ? []
        : gitIn(source)
            .filter((path) => !before.has(path))
            .map((path) => join(source, path)),
    )
    const first = [...new Set([...names, ...git])].map((path) => setAside(path, runId))
    if (first.length === 0) return undefined
    return { attempts: { count: first.length, first }, setId: { count: 0, first: [] }, configLocked: false }
  }
}

function setAside(path: string, runId: string): ProtectedAttempt {
  const aside = `${basename(path)}.set-aside.${runId}`
  try {
    renameSync(path, join(dirname(path), aside))
    return { path, aside, gone: false }
  } catch (error) {
    return { path, aside: '', gone: (error as NodeJS.ErrnoException).code === 'ENOENT' }
  }
}

/** The path on the host when nothing is there. A directory on the way is not protected, and may be made. */
function missingName(source: string, path: string): string | undefined {
  const file = join(source, path)
  return kindOf(file) === 'missing' ? file : undefined
}

/** Relative paths of everything that is called .git, at any depth. */
function gitIn(source: string, below = ''): readonly string[] {
  return entriesOf(join(source, below)).flatMap(({ name, isDirectory }) => {
    const path = below === '' ? name : `${below}/${name}`
    if (name === GIT) return [path]
    return isDirectory ? gitIn(source, path) : []
  })
}

function entriesOf(directory: string): readonly { readonly name: string; readonly isDirectory: boolean }[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).map((entry) => ({
      name: entry.name,
      isDirectory: entry.isDirectory(),
    }))
  } catch {
    return [] // A user that cannot read it can make nothing there, and the command has no more rights than this user.
  }
}

function kindOf(path: string): 'missing' | 'directory' | 'other' {
  try {
    const seen = lstatSync(path, { throwIfNoEntry: false })
    return seen === undefined ? 'missing' : seen.isDirectory() ? 'directory' : 'other'
  } catch {
    return 'missing' // ENOTDIR: a file is in the way.
  }
}
