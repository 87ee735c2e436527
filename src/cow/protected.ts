/**
 * Which changes are to what a program of the host runs or obeys, or to what has more rights than who starts it. In a copy-on-write zone a command may make them, and apply leaves them
 * alone unless they are named. What is closed on the host the guard says, by the rules of rw zones (native/lib/guard.h); the names
 * (policy/protected.ts) and the rules for git directories are for what the layer itself makes. Pure.
 */
import { GIT, GIT_NAMES, REPOSITORY_SYSTEMS } from '../policy/protected.ts'
import { ancestorsOf, around, inside } from './ancestors.ts'
import { isChange, isRepository, type RawChange } from './change.ts'

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
  const repositories = placesOf(changes.filter(isRepository))
  const closed = placesOf(changes.filter(({ kind }) => kind === 'closed'))
  const isNamed = (change: RawChange): boolean => {
    const zone = zones[change.zone]
    if (zone === undefined) return true // A record that does not have the zone: nothing of it can be judged.
    return (
      change.isPrivileged ||
      isClosedOnHost(change, closed) ||
      zone.protect.some((place) => reaches(change, change.path, place)) ||
      (zone.gitOpen !== undefined &&
        ((!zone.gitOpen.includes(GIT) && isInGit(change, repositories, zone.gitOpen)) ||
          isInOtherSystem(change, zone.gitOpen)))
    )
  }
  const ancestors = ancestorsOf(changes)
  const listed = new Set(changes)
  const named = new Set(changes.filter((one) => isChange(one) && isNamed(one)))
  // A change that removes or replaces a directory does so to everything in it.
  const taken = around(
    ancestors,
    [...named].filter(({ nested }) => nested),
  )
  // What is new at a protected path is, with everything in it.
  const inMade = inside(ancestors, new Set([...named].filter(isMaking)))
  const isProtected = (change: RawChange): boolean =>
    named.has(change) ||
    (REPLACING.has(change.kind) && taken.has(change)) ||
    inMade.has(change) ||
    (!listed.has(change) && isNamed(change))
  // What is not renamed stays where it was.
  const places = new Set(
    changes
      .filter((one) => one.kind === 'renamed' && isProtected(one))
      .map(({ zone, other }) => keyOf({ zone, path: other })),
  )
  const sources = new Set(
    places.size === 0 ? [] : changes.filter((one) => one.kind === 'deleted' && places.has(keyOf(one))),
  )
  const inSources = inside(ancestors, sources)
  return (change) => isProtected(change) || sources.has(change) || (change.kind === 'deleted' && inSources.has(change))
}

/** Where nothing was, or something else: what lies below came with it. */
export const isMaking = ({ kind }: Pick<RawChange, 'kind'>): boolean => MAKING.has(kind)
const MAKING: ReadonlySet<RawChange['kind']> = new Set(['added', 'renamed', 'type'])

const keyOf = ({ zone, path }: Pick<RawChange, 'zone' | 'path'>): string => `${zone}:${path}`

/** A change at or below such a place, or one that exchanges what is above it. */
function isClosedOnHost(change: RawChange, closed: Places): boolean {
  const { zone, path } = change
  if (closed.at.has(keyOf({ zone, path: '.' }))) return true
  for (const end of endsOf(path))
    if (closed.lengths.has(end) && closed.at.has(keyOf({ zone, path: path.slice(0, end) }))) return true
  return leadsOn(change) && [...closed.at.keys()].some((place) => place.startsWith(`${zone}:${path}/`))
}

/** By place, and how long their paths are: a deep path has too many beginnings to look for each. */
interface Places {
  readonly at: ReadonlyMap<string, RawChange>
  readonly lengths: ReadonlySet<number>
}

const placesOf = (found: readonly RawChange[]): Places => ({
  at: new Map(found.map((one) => [keyOf(one), one])),
  lengths: new Set(found.map(({ path }) => path.length)),
})

/** A path that goes through more of them is left alone whatever it is: nothing but an attack has it. */
const MOST_ROOTS = 64

/** Where the words of a path end. */
function* endsOf(path: string): Generator<number> {
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) yield at
  yield path.length
}

function isInGit(change: RawChange, repositories: Places, open: readonly string[]): boolean {
  const { zone, path } = change
  const isIn = (rest: readonly string[], repository: RawChange | undefined, isNamedGit: boolean): boolean =>
    ((repository !== undefined || isNamedGit) && isClosed(rest, change, open)) ||
    (repository?.kind === 'new-git' && isMakingRepository(rest, change))
  const root = repositories.at.get(keyOf({ zone, path: '.' }))
  if (root !== undefined && isIn(path.split('/'), root, false)) return true
  let roots = 0
  for (const end of endsOf(path)) {
    const repository = repositories.lengths.has(end)
      ? repositories.at.get(keyOf({ zone, path: path.slice(0, end) }))
      : undefined
    const isNamedGit = isWord(path, end, GIT)
    if (repository === undefined && !isNamedGit) continue
    roots += 1
    if (
      roots > MOST_ROOTS ||
      isIn(
        path
          .slice(end + 1)
          .split('/')
          .filter((word) => word !== ''),
        repository,
        isNamedGit,
      )
    )
      return true
  }
  return false
}

const isWord = (path: string, end: number, word: string): boolean =>
  path.endsWith(word, end) && (end === word.length || path[end - word.length - 1] === '/')

/** Mercurial and Jujutsu: git's rules are its own. */
const OTHER_SYSTEMS = REPOSITORY_SYSTEMS.filter(({ name }) => name !== GIT)

function isInOtherSystem(change: RawChange, open: readonly string[]): boolean {
  const { path } = change
  let roots = 0
  for (const end of endsOf(path)) {
    const system = OTHER_SYSTEMS.find(({ name }) => !open.includes(name) && isWord(path, end, name))
    if (system === undefined) continue
    roots += 1
    const rest = path.slice(end + 1)
    if (roots > MOST_ROOTS) return true
    if (rest === '' && (OF_ENTRY.has(change.kind) || change.type !== 'directory')) return true
    if (rest === system.pinned && REPLACING.has(change.kind)) return true
    if (rest !== '' && system.closed.some((name) => reaches(change, rest, name))) return true
  }
  return false
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
