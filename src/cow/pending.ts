/**
 * Lists the pending changes of a run with copy-on-write zones. A layer without changes is removed.
 * Edge: the layers (layers.ts).
 */
import { SandboxError } from '../error.ts'
import type { Change, LayerZone } from './change.ts'
import { type Applied, applyLayer, discardLayer, firstChanges, hasApplied, type LayerPlace, layerAt } from './layers.ts'
import { summary } from './summary.ts'

export interface PendingChanges {
  /** For `llm-do diff`, `apply` and `discard`. */
  readonly id: string
  readonly zones: readonly LayerZone[]
  /** How many there are of each kind. */
  readonly counts: Readonly<Record<string, number>>
  /** Changes that are left out of `changes`; deletions never are. */
  readonly omitted: number
  /** The result of `apply: on-success`; absent without it, and after a command that failed. */
  readonly applied?: Applied
  /** For people, one line. */
  readonly message: string
}

export interface Pending {
  readonly cow: PendingChanges
  readonly changes: readonly Change[]
}

/** Of those that are no deletions. */
const MOST_LISTED = 1000

export interface Ended {
  readonly layer?: LayerPlace
}

/** A result is not lost because its changes cannot be listed: they wait all the same. */
export async function pendingAfter({ layer: place }: Ended): Promise<Pending | undefined> {
  if (place === undefined) return undefined
  return await pendingIn(place).catch((error: unknown) => {
    if (!(error instanceof SandboxError)) throw error
    const message = `the changes of ${place.id} cannot be listed: ${error.message}`
    return { cow: { id: place.id, zones: [], counts: {}, omitted: 0, message }, changes: [] }
  })
}

async function pendingIn(place: LayerPlace): Promise<Pending | undefined> {
  const layer = layerAt(place)
  const changes = await firstChanges(layer)
  if (changes.length === 0 && hasApplied(place)) return undefined // An undo needs it.
  if (changes.length === 0) return await discardLayer(place).then(nothing, nothing)
  const { zones } = layer.record
  const listed = bounded(changes)
  return {
    cow: {
      id: place.id,
      zones: zones.map(({ source, target }) => ({ source, target })),
      counts: summary(changes).counts,
      omitted: changes.length - listed.length,
      message: `${summary(changes).text}: llm-do diff ${place.id.slice(0, SHOWN_ID)}`,
    },
    changes: listed,
  }
}

/** Pending changes are never none, so empty counts mean that they could not be listed: then no decision about them is possible. */
export const isListed = ({ counts }: PendingChanges): boolean => Object.keys(counts).length > 0

/** Applies all of it. What cannot be is kept, and the message says so. */
export async function appliedPending(cow: PendingChanges, place: LayerPlace): Promise<PendingChanges> {
  return await applyPending(cow, place).catch((error: unknown) => {
    if (!(error instanceof SandboxError)) throw error
    return { ...cow, message: `${cow.message}; nothing was applied: ${error.message}` }
  })
}

async function applyPending(cow: PendingChanges, place: LayerPlace): Promise<PendingChanges> {
  const applied = await applyLayer(layerAt(place))
  const short = cow.id.slice(0, SHOWN_ID)
  const left = applied.protected.length + applied.special.length
  const rest = `${left === 0 ? '' : `, ${left} left out`}${applied.narrowed === 0 ? '' : `, ${applied.narrowed} modes narrowed`}`
  const message =
    applied.conflicts.length > 0
      ? `${cow.message}; nothing was applied, the host has changed ${applied.conflicts.length} of them`
      : `${applied.applied} applied${rest}: llm-do undo ${short}`
  return { ...cow, applied, message }
}

/** Characters of an ID for people; any number that is unambiguous will do. */
const SHOWN_ID = 8

const nothing = (): undefined => undefined

function bounded(changes: readonly Change[]): readonly Change[] {
  const others = changes.filter(({ kind }) => kind !== 'deleted')
  if (others.length <= MOST_LISTED) return changes
  const kept = new Set(others.slice(0, MOST_LISTED))
  return changes.filter((change) => change.kind === 'deleted' || kept.has(change))
}
