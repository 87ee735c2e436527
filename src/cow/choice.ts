/** Which changes of a layer are applied. Pure. */
import { posix } from 'node:path'
import { type Ancestors, ancestorsOf, around, inside } from './ancestors.ts'
import { isChange, isRepository, type LayerZone, type RawChange, rawOf } from './change.ts'
import { isMaking } from './protected.ts'

export interface ChoiceInputs {
  readonly changes: readonly RawChange[]
  readonly zones: readonly LayerZone[]
  /** As the caller wrote them: relative to the zone, or absolute on the host; empty = everything. */
  readonly paths: readonly string[]
  readonly isProtected: (change: RawChange) => boolean
  readonly force: boolean
  /** Nothing protected is chosen, named or not: who names the paths is not a person. */
  readonly withoutProtected?: boolean
}

export interface Choice {
  readonly chosen: readonly RawChange[]
  /** Left out because nobody named them. */
  readonly protectedOnes: readonly RawChange[]
  /** Left out because they are devices, FIFOs or sockets. */
  readonly special: readonly RawChange[]
  readonly conflicts: readonly RawChange[]
  /** Paths of the caller that name no change. */
  readonly unknown: readonly string[]
}

export function choose({ changes: all, zones, paths, isProtected, force, withoutProtected }: ChoiceInputs): Choice {
  const changes = all.filter(isChange)
  const places = paths.map((path) => placesOf(path, zones))
  const isMeant = (change: RawChange) =>
    paths.length === 0 || places.some((alternatives) => alternatives.some((place) => isAtOrBelow(change, place)))
  const made = new Set(changes.filter(isMaking).map(keyOf))
  // Naming what is new names what is in it.
  const isNamed = (change: RawChange) =>
    places.some((alternatives) =>
      alternatives.some(
        (place) => isAtOrBelow(change, place) && (place.path === change.path || made.has(keyOf(place))),
      ),
    )
  const meant = changes.filter(isMeant)
  const isSpecial = ({ type, kind }: RawChange) => type === 'other' && kind !== 'deleted'
  const special = meant.filter(isSpecial)
  const isLeft = (change: RawChange) => withoutProtected === true || !isNamed(change)
  const protectedOnes = meant.filter((change) => !isSpecial(change) && isProtected(change) && isLeft(change))
  const out = new Set([...special, ...protectedOnes])
  const kept = meant.filter((change) => !out.has(change))
  const ancestors = ancestorsOf(changes)
  const chosen = [...kept, ...parentsNeeded(kept, ancestors)]
  return {
    chosen,
    protectedOnes: outermost(protectedOnes, ancestors),
    special,
    conflicts: force ? [] : chosen.filter(({ conflict }) => conflict),
    unknown: paths.filter(
      (_, index) => !changes.some((change) => places[index]?.some((place) => isAtOrBelow(change, place))),
    ),
  }
}

interface Place {
  readonly zone: number
  readonly path: string
}

/** An absolute path lies in one zone; a relative one may be meant in each. */
function placesOf(path: string, zones: readonly LayerZone[]): readonly Place[] {
  const tidy = posix.normalize(path).replace(/(?<=.)\/$/, '')
  if (!posix.isAbsolute(tidy)) return zones.map((_, zone) => ({ zone, path: rawOf(tidy) }))
  return zones.flatMap(({ source }, zone) =>
    `${tidy}/`.startsWith(`${source}/`) ? [{ zone, path: rawOf(posix.relative(source, tidy)) || '.' }] : [],
  )
}

const isAtOrBelow = (change: Place, { zone, path }: Place): boolean =>
  change.zone === zone && (path === '.' || change.path === path || change.path.startsWith(`${path}/`))

/** A path in a directory that is new needs the directory. */
function parentsNeeded(kept: readonly RawChange[], ancestors: Ancestors): readonly RawChange[] {
  const chosen = new Set(kept)
  return [...around(ancestors, kept)].filter((one) => isMaking(one) && !chosen.has(one))
}

/** One line for a tree is enough. */
function outermost(left: readonly RawChange[], ancestors: Ancestors): readonly RawChange[] {
  const trees = new Set(left.filter((one) => isMaking(one) || one.kind === 'deleted'))
  const below = inside(ancestors, trees)
  return left.filter((one) => !below.has(one))
}

const keyOf = ({ zone, path }: Place): string => `${zone}:${path}`

/** The choice in the words of native/tools/layers.c. */
export function choiceBytes(chosen: readonly RawChange[], force: boolean): Uint8Array {
  const kind = (change: RawChange): string => (isRepository(change) ? 'g' : force ? 'y' : 'n')
  return Buffer.from(chosen.map((change) => `${change.zone}\0${kind(change)}\0${change.path}\0`).join(''), 'latin1')
}
