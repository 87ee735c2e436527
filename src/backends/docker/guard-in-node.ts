/**
 * Protected names where the guard does not exist: Docker Desktop on macOS and Windows, where no caller is root and the daemon acts in a
 * virtual machine. Existing names are covered as elsewhere. Missing ones are checked when the container is gone, and renamed aside.
 * Edge: files.
 */
import { lstatSync, readdirSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import {
  GIT,
  type Guarded,
  type PlannedZone,
  type ProtectedAttempt,
  protectedSystems,
  SandboxError,
} from '../run-kit.ts'
import { type Cover, coversOf } from './mounts.ts'

/** A zone with the closed names of each repository in it among its protected paths. */
export function withGit(zone: PlannedZone): PlannedZone {
  const { git, source } = zone
  if (git === undefined) return zone
  const systems = new Map(protectedSystems(git).map((system) => [system.name, system]))
  const inRepositories = repositoriesIn(source, new Set(systems.keys())).flatMap((path) =>
    kindOf(join(source, path)) === 'directory'
      ? (systems.get(folded(basename(path)))?.closed ?? []).map((name) => `${path}/${name}`)
      : [path],
  )
  return { ...zone, protect: [...new Set([...zone.protect, ...inRepositories])] }
}

/** Of the covers that a zone could have, those that there is something for. */
export function coversThere(zone: PlannedZone): readonly Cover[] {
  return coversOf(zone).filter(({ path }) => {
    const kind = kindOf(join(zone.source, path))
    if (kind === 'link') throw linkInTheWay(join(zone.source, path))
    return kind !== 'missing'
  })
}

export function linkInTheWay(path: string): SandboxError {
  return new SandboxError(
    'ZONE_INVALID',
    `${path} is protected, but a symbolic link is in the way, which no mount of a container can hold in place`,
    { hint: 'leave it out of protect, replace the link by what it leads to, or make the zone ro' },
  )
}

/** Looks now at what is missing; the function that it returns does so again, and renames aside what has come. */
export function watchByHand(zones: readonly PlannedZone[], runId: string): () => Guarded | undefined {
  const missing = zones.flatMap(({ source, protect }) =>
    protect.map((path) => missingName(source, path)).filter((path) => path !== undefined),
  )
  const known = zones.flatMap(({ source, git }) => {
    if (git === undefined) return []
    const names = new Set(protectedSystems(git).map(({ name }) => name))
    return [{ source, names, before: new Set(repositoriesIn(source, names)) }]
  })
  return () => {
    const unseen: ProtectedAttempt[] = []
    const look = <T>(seen: () => T, otherwise: T): T => {
      try {
        return seen()
      } catch (error) {
        if (!(error instanceof Unseen)) throw error
        unseen.push({ path: error.path, aside: '', gone: false, unseen: true })
        return otherwise
      }
    }
    const names = missing.filter((path) => look(() => kindOf(path), 'missing') !== 'missing')
    const made = known.flatMap(({ source, names, before }) =>
      look(() => repositoriesIn(source, names), [])
        .filter((path) => !before.has(path))
        .map((path) => join(source, path))
        .filter((path) => !look(() => isEmptyFile(path), true)),
    )
    const first = [...[...new Set([...names, ...made])].map((path) => setAside(path, runId)), ...unseen]
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

/** A name as the file systems of macOS and Windows compare it: `.GIT` is `.git` there. */
const folded = (name: string): string =>
  name
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()

/** Relative paths of everything that has one of the names, at any depth. */
function repositoriesIn(source: string, names: ReadonlySet<string>, below = ''): readonly string[] {
  return entriesOf(join(source, below)).flatMap(({ name, isDirectory }) => {
    const path = below === '' ? name : `${below}/${name}`
    if (names.has(folded(name))) return [path]
    return isDirectory ? repositoriesIn(source, names, path) : []
  })
}

/** An inspection that fails never counts as absence: a command can close a directory to its own user. */
class Unseen extends SandboxError {
  constructor(
    readonly path: string,
    cause: unknown,
  ) {
    const { code = '' } = cause as NodeJS.ErrnoException
    super('ZONE_INVALID', `${path} cannot be looked at (${code}), so what is protected in it is not known`, {
      hint: 'chmod u+rwx it, if it is yours; or show the zone ro',
      cause,
    })
  }
}

const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')

function entriesOf(directory: string): readonly { readonly name: string; readonly isDirectory: boolean }[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).map((entry) => ({
      name: entry.name,
      isDirectory: entry.isDirectory(),
    }))
  } catch (error) {
    if (isAbsent(error)) return []
    throw new Unseen(directory, error)
  }
}

/** It leads no version control system anywhere (native/lib/repository.h). */
function isEmptyFile(path: string): boolean {
  try {
    const seen = lstatSync(path, { throwIfNoEntry: false })
    return seen?.isFile() === true && (seen.size === 0 || folded(basename(path)) !== GIT)
  } catch (error) {
    throw new Unseen(path, error) // Its directory can be read and not searched.
  }
}

function kindOf(path: string): 'missing' | 'directory' | 'link' | 'other' {
  try {
    const seen = lstatSync(path, { throwIfNoEntry: false })
    if (seen === undefined) return 'missing'
    return seen.isSymbolicLink() ? 'link' : seen.isDirectory() ? 'directory' : 'other'
  } catch (error) {
    if (isAbsent(error)) return 'missing' // ENOTDIR: a file is in the way.
    throw new Unseen(path, error)
  }
}
