/**
 * Which changes are to what a program of the host runs or obeys, or to what has more rights than who starts it. In a copy-on-write zone a command may make them, and apply leaves them
 * alone unless they are named. The names are those of rw zones (policy/protected.ts), the rules for git directories those of
 * native/lib/guard.h. Pure.
 */
import { GIT, GIT_NAMES } from '../policy/protected.ts'
import { isRepository, type RawChange } from './change.ts'

export interface ProtectedZone {
  /** Relative to the zone, as bytes. */
  readonly protect: readonly string[]
  /** Names in git directories that are open; undefined = git directories are not protected. */
  readonly gitOpen: readonly string[] | undefined
}

const isAtOrBelow = (path: string, place: string): boolean => path === place || path.startsWith(`${place}/`)

/** A change of its entry, which exchanges or makes or removes it; not one inside of it. */
const REPLACING: ReadonlySet<RawChange['kind']> = new Set(['added', 'deleted', 'renamed', 'type', 'symlink'])

/** The same, or one of its mode: who else may write in a git directory, and whether we can look into it. */
const OF_ENTRY: ReadonlySet<RawChange['kind']> = new Set([...REPLACING, 'mode'])

/** What lies below such a name is not in the list: a link leads to it, a renamed directory brings it along. */
const leadsOn = ({ type, kind }: RawChange): boolean => type === 'symlink' || kind === 'renamed'

/** Whether a change at `path` is one to what is at `place`. */
const reaches = (change: RawChange, path: string, place: string): boolean =>
  isAtOrBelow(path, place) || (leadsOn(change) && isAtOrBelow(place, path))

/** The predicate for one layer, by all of its changes. */
export function protectionOf(
  changes: readonly RawChange[],
  zones: readonly ProtectedZone[],
): (change: RawChange) => boolean {
  const repositories: Repositories = new Map(changes.filter(isRepository).map((one) => [keyOf(one), one]))
  const isNamed = (change: RawChange): boolean => {
    const zone = zones[change.zone]
    if (zone === undefined) return true // A record that does not have the zone: nothing of it can be judged.
    return (
      change.isPrivileged ||
      zone.protect.some((place) => reaches(change, change.path, place)) ||
      (zone.gitOpen !== undefined &&
        ((!zone.gitOpen.includes(GIT) && isInGit(change, repositories, zone.gitOpen)) ||
          isInOtherSystem(change, zone.gitOpen)))
    )
  }
  // A change that removes or replaces a directory does so to everything in it.
  const taken = new Set(changes.filter((one) => one.nested && isNamed(one)).flatMap(parentsOf))
  // What is new at a protected path is, with everything in it.
  const made = new Set(changes.filter((one) => isMaking(one) && isNamed(one)).map(keyOf))
  const isProtected = (change: RawChange): boolean =>
    isNamed(change) ||
    (REPLACING.has(change.kind) && taken.has(keyOf(change))) ||
    (made.size > 0 && parentsOf(change).some((parent) => made.has(parent)))
  // What is not renamed stays where it was.
  const sources = new Set(
    changes
      .filter((one) => one.kind === 'renamed' && isProtected(one))
      .map(({ zone, other }) => keyOf({ zone, path: other })),
  )
  const isSource = (change: RawChange): boolean =>
    change.kind === 'deleted' && [keyOf(change), ...parentsOf(change)].some((key) => sources.has(key))
  return (change) => isProtected(change) || (sources.size > 0 && isSource(change))
}

/** Where nothing was, or something else: what lies below came with it. */
export const isMaking = ({ kind }: Pick<RawChange, 'kind'>): boolean => MAKING.has(kind)
const MAKING: ReadonlySet<RawChange['kind']> = new Set(['added', 'renamed', 'type'])

const keyOf = ({ zone, path }: Pick<RawChange, 'zone' | 'path'>): string => `${zone}:${path}`

function parentsOf({ zone, path }: RawChange): readonly string[] {
  const words = path.split('/')
  return words.slice(1).map((_, index) => keyOf({ zone, path: words.slice(0, index + 1).join('/') }))
}

type Repositories = ReadonlyMap<string, RawChange>

function isInGit(change: RawChange, repositories: Repositories, open: readonly string[]): boolean {
  const { zone } = change
  const words = change.path.split('/')
  const isIn = (rest: readonly string[], root: string): boolean => {
    const repository = repositories.get(keyOf({ zone, path: root }))
    return (
      ((repository !== undefined || root.split('/').at(-1) === GIT) && isClosed(rest, change, open)) ||
      (repository?.kind === 'new-git' && isMakingRepository(rest, change))
    )
  }
  return isIn(words, '.') || words.some((_, at) => isIn(words.slice(at + 1), words.slice(0, at + 1).join('/')))
}

/** Mercurial and Jujutsu, as native/lib/repository.c has them: what is closed, and what may not become a file. */
const OTHER_SYSTEMS: ReadonlyMap<string, { readonly closed: readonly string[]; readonly pinned: readonly string[] }> =
  new Map([
    ['.hg', { closed: ['hgrc', 'hgrc-not-shared', 'sharedpath'], pinned: [] }],
    ['.jj', { closed: ['repo/config.toml', 'workspace-config.toml', 'repo/store/git_target'], pinned: ['repo'] }],
  ])

function isInOtherSystem(change: RawChange, open: readonly string[]): boolean {
  const words = change.path.split('/')
  return words.some((word, at) => {
    const system = OTHER_SYSTEMS.get(word)
    if (system === undefined || open.includes(word)) return false
    const rest = words.slice(at + 1).join('/')
    if (rest === '') return OF_ENTRY.has(change.kind) || change.type !== 'directory'
    if (system.pinned.includes(rest) && REPLACING.has(change.kind)) return true
    return system.closed.some((name) => reaches(change, rest, name))
  })
}

/** A directory with harmless files becomes one that git obeys when the last of them comes. */
const isMakingRepository = ([first = '', ...below]: readonly string[], change: RawChange): boolean =>
  below.length === 0 && REPOSITORY_PARTS.has(first) && REPLACING.has(change.kind)
const REPOSITORY_PARTS: ReadonlySet<string> = new Set(['HEAD', 'commondir', 'objects', 'refs'])

/** Whole repositories lie in them: each has names of its own, and a new one is a new git directory. */
const HOLDERS: readonly string[] = ['modules', 'worktrees']

function isClosed(rest: readonly string[], change: RawChange, open: readonly string[]): boolean {
  const closed = GIT_NAMES.filter((name) => !open.includes(name) && !HOLDERS.includes(name))
  // The git directory itself: a new one, or a file that leads to one elsewhere.
  if (rest.length === 0) return OF_ENTRY.has(change.kind) || change.type !== 'directory'
  const isClosedAt = (words: readonly string[]) => closed.some((name) => reaches(change, words.join('/'), name))
  const [first = ''] = rest
  if (!HOLDERS.includes(first)) return isClosedAt(rest)
  if (open.includes(first)) return false
  return (
    (rest.length <= 2 && OF_ENTRY.has(change.kind)) ||
    rest.some((_, index) => index >= 2 && isClosedAt(rest.slice(index)))
  )
}
