/**
 * Which changes are to what a program of the host runs or obeys. In a copy-on-write zone a command may make them, and apply leaves them
 * alone unless they are named. The names are those of rw zones (policy/protected.ts), the rules for git directories those of
 * native/lib/guard.h. Pure.
 */
import { GIT, GIT_NAMES } from '../policy/protected.ts'
import type { RawChange } from './change.ts'

export interface ProtectedZone {
  /** Relative to the zone, as bytes. */
  readonly protect: readonly string[]
  /** Names in git directories that are open; undefined = git directories are not protected. */
  readonly gitOpen: readonly string[] | undefined
}

const isAtOrBelow = (path: string, place: string): boolean => path === place || path.startsWith(`${place}/`)

/** A change of its entry, which exchanges or makes or removes it; not one inside of it. */
const REPLACING: ReadonlySet<RawChange['kind']> = new Set(['added', 'deleted', 'renamed', 'type', 'symlink'])

/** The predicate for one layer, by all of its changes. */
export function protectionOf(
  changes: readonly RawChange[],
  zones: readonly ProtectedZone[],
): (change: RawChange) => boolean {
  const repositories = changes.filter(({ kind }) => kind === 'git')
  const isNamed = (change: RawChange): boolean => {
    const zone = zones[change.zone]
    if (zone === undefined) return true // A record that does not have the zone: nothing of it can be judged.
    const roots = repositories.filter((one) => one.zone === change.zone).map(({ path }) => path)
    return (
      zone.protect.some((place) => isAtOrBelow(change.path, place)) ||
      (zone.gitOpen !== undefined && isInGit(change, roots, zone.gitOpen))
    )
  }
  // Whoever removes or replaces a directory does so to everything in it.
  const taken = new Set(changes.filter((one) => one.nested && isNamed(one)).flatMap(parentsOf))
  // What is new at a protected path is, with everything in it.
  const made = new Set(changes.filter((one) => isMaking(one) && isNamed(one)).map(keyOf))
  return (change) =>
    isNamed(change) ||
    (REPLACING.has(change.kind) && taken.has(keyOf(change))) ||
    (made.size > 0 && parentsOf(change).some((parent) => made.has(parent)))
}

/** Where nothing was, or something else: what lies below came with it. */
export const isMaking = ({ kind }: Pick<RawChange, 'kind'>): boolean => MAKING.has(kind)
const MAKING: ReadonlySet<RawChange['kind']> = new Set(['added', 'renamed', 'type'])

const keyOf = ({ zone, path }: Pick<RawChange, 'zone' | 'path'>): string => `${zone}:${path}`

function parentsOf({ zone, path }: RawChange): readonly string[] {
  const words = path.split('/')
  return words.slice(1).map((_, index) => keyOf({ zone, path: words.slice(0, index + 1).join('/') }))
}

function isInGit(change: RawChange, repositories: readonly string[], open: readonly string[]): boolean {
  const words = change.path.split('/')
  const named = words.flatMap((word, index) => (word === GIT ? [words.slice(index + 1)] : []))
  const bare = repositories.flatMap((root) => restBelow(change.path, root))
  return [...named, ...bare].some((rest) => isClosed(rest, change, open))
}

/** The words of a path behind a root, in a list; empty when it does not lie there. */
function restBelow(path: string, root: string): readonly (readonly string[])[] {
  if (root === '.') return [path.split('/')]
  if (!isAtOrBelow(path, root)) return []
  return [path === root ? [] : path.slice(root.length + 1).split('/')]
}

/** Whole repositories lie in them: each has names of its own, and a new one is a new git directory. */
const HOLDERS: readonly string[] = ['modules', 'worktrees']

function isClosed(rest: readonly string[], change: RawChange, open: readonly string[]): boolean {
  const closed = GIT_NAMES.filter((name) => !open.includes(name) && !HOLDERS.includes(name))
  // The git directory itself: a new one, or a file that leads to one elsewhere.
  if (rest.length === 0) return REPLACING.has(change.kind) || change.type !== 'directory'
  const isClosedAt = (words: readonly string[]) => closed.some((name) => isAtOrBelow(words.join('/'), name))
  const [first = ''] = rest
  if (!HOLDERS.includes(first)) return isClosedAt(rest)
  if (open.includes(first)) return false
  return (
    (rest.length <= 2 && REPLACING.has(change.kind)) ||
    rest.some((_, index) => index >= 2 && isClosedAt(rest.slice(index)))
  )
}
