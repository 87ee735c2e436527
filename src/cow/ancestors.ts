/**
 * Which changes lie in which: in time that grows with their number and the length of their paths, however deep they are. Changes come as
 * native/tools/layers.c lists them: a directory before what is in it, and nothing else between. Pure.
 */
import { isChange, type RawChange } from './change.ts'

/** Of each change the nearest directory above it that is in the list, too; the root of a zone does not count. */
export type Ancestors = ReadonlyMap<RawChange, RawChange>

export function ancestorsOf(changes: readonly RawChange[]): Ancestors {
  const nearest = new Map<RawChange, RawChange>()
  const above: RawChange[] = []
  for (const change of changes) {
    if (!isChange(change) || change.path === '.') continue
    while (above.length > 0 && !isBelow(change, above.at(-1))) above.pop()
    const parent = above.at(-1)
    if (parent !== undefined) nearest.set(change, parent)
    above.push(change)
  }
  return nearest
}

const isBelow = ({ zone, path }: RawChange, above: RawChange | undefined): boolean =>
  above?.zone === zone &&
  path.length > above.path.length &&
  path[above.path.length] === '/' &&
  path.startsWith(above.path)

/** All that lies in one of these. */
export function inside(ancestors: Ancestors, those: ReadonlySet<RawChange>): ReadonlySet<RawChange> {
  const found = new Set<RawChange>()
  if (those.size === 0) return found
  for (const [change, parent] of ancestors) if (those.has(parent) || found.has(parent)) found.add(change)
  return found
}

/** All that one of these lies in. */
export function around(ancestors: Ancestors, those: Iterable<RawChange>): ReadonlySet<RawChange> {
  const found = new Set<RawChange>()
  for (const one of those)
    for (let at = ancestors.get(one); at !== undefined && !found.has(at); at = ancestors.get(at)) found.add(at)
  return found
}
