/**
 * The names by which a path is reached: each step as written and each place that a symbolic link leads to on the way. Pure.
 *
 * A command that can replace one of these steps decides what the next run reads, so a writable zone keeps every step: an existing one is
 * covered, a missing one is not to be made, and a symbolic link, which nothing can be mounted on, is a reason to refuse the zone.
 */
import { posix } from 'node:path'
import type { PathFact } from '../host/facts.ts'
import { ancestorsOf, isWithin, normal, shown } from './well-known-paths.ts'

/** The kernel's own bound (MAXSYMLINKS). */
const MOST_LINKS = 40

export interface NameStep {
  /** Canonical directory and name; the step itself may be a link. */
  readonly path: string
  readonly fact: PathFact
}

export interface NameWalk {
  readonly steps: readonly NameStep[]
  /** Where the name ends; for a missing one where it would be. */
  readonly end: string
  /** A path that was not looked at yet: the walk stopped there. */
  readonly unresolved?: string
}

type Facts = Readonly<Record<string, PathFact>>

/** The paths that a first inspection of a name asks for; links on the way add more, see `openPlaces`. */
export function stepsAsWritten(name: string): readonly string[] {
  const path = normal(name)
  return [...ancestorsOf(path), path]
}

/** Follows a name step by step, as the kernel does. */
export function walkName(name: string, paths: Facts): NameWalk {
  const steps: NameStep[] = []
  let at = '/'
  let links = 0
  const rest = wordsOf(normal(name))
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '..') {
      at = posix.dirname(at)
      continue
    }
    const path = posix.join(at, word)
    const fact = paths[path]
    if (fact === undefined) return { steps, end: posix.join(path, ...rest), unresolved: path }
    steps.push({ path, fact })
    if (fact.link === undefined) {
      at = path
      // Below what is missing or closed there is nothing to look at.
      if (fact.kind !== 'directory') return { steps, end: posix.join(path, ...rest) }
      continue
    }
    links += 1
    if (links > MOST_LINKS || fact.link === '') return { steps, end: posix.join(path, ...rest) }
    if (posix.isAbsolute(fact.link)) at = '/'
    rest.unshift(...wordsOf(fact.link))
  }
  return { steps, end: at }
}

function wordsOf(path: string): string[] {
  return path.split('/').filter((word) => word !== '' && word !== '.')
}

/** The paths to inspect before these names can be resolved further. */
export function unresolvedPaths(names: readonly string[], paths: Facts): readonly string[] {
  return names.flatMap((name) => walkName(name, paths).unresolved ?? [])
}

/** Where these names end. */
export function endsOf(names: readonly string[], paths: Facts): readonly string[] {
  return names.map((name) => walkName(name, paths).end)
}

/** Links on the way of these names that lie in a zone, where a command could replace them; one line of a message each. */
export function linksInZone(names: readonly string[], zone: string, paths: Facts): readonly string[] {
  const lines = names.flatMap((name) => {
    const { steps, unresolved } = walkName(name, paths)
    if (unresolved !== undefined)
      return [`${shown(name)}, which decides what the next run may do, is behind too many symbolic links`]
    const step = steps.find(({ path, fact }) => fact.link !== undefined && isWithin(path, zone))
    if (step === undefined) return []
    const { path, fact } = step
    const whose = path === normal(name) ? '' : ` on the way to ${shown(name)}`
    return [
      `${shown(path)} is a symbolic link to ${shown(fact.link ?? '')}${whose}, which decides what the next run may do: a command could replace the link. Put a real file or directory in its place, name ${shown(fact.real)} itself, or show the zone read-only`,
    ]
  })
  return [...new Set(lines)]
}
