/**
 * Lists the refusals that the observer of a run has seen, with the flag for each: a write or a connection most often stopped the
 * command, and the last thing that it tried before it gave up. Pure.
 */
import { posix } from 'node:path'
import type { ObservedReport, Outcome } from '../backends/outcome.ts'
import type { Observation, Observed } from '../contract.ts'
import { isDangerousSocket } from '../plan/known-sockets.ts'
import type { Plan } from '../plan/plan.ts'
import { holdsCredentials, isCredential, normal } from '../plan/well-known-paths.ts'
import type { InvisiblePath } from './hints.ts'
import { allowFix } from './network.ts'
import type { Denial } from './result.ts'
import { showFix, writeDenial } from './stderr-denials.ts'

/** Paths inside that the host does not have, and what it has in their place above the workspace (src/run/led-out.ts), where that may be told. */
export type LedPaths = ReadonlyMap<string, InvisiblePath | undefined>

export interface ObservedBy {
  readonly plan: Plan
  /** Home directories of this machine, the caller's among them. */
  readonly homes: readonly string[]
  readonly led?: LedPaths
}

type Seen = Omit<Denial, 'count' | 'evidence'>

/** In the order of their weight. @returns undefined without an observer, or for one that missed events */
export function observedDenials({ observed }: Outcome, by: ObservedBy): readonly Denial[] | undefined {
  if (observed === undefined || observed.isLost || observed.unread > 0) return undefined
  return observed.rows.toSorted(byWeight).flatMap((row): readonly Denial[] => {
    const path = row.what === 'unreachable' ? row.path : normal(row.path)
    const seen = isTold({ ...row, path }, by.homes) ? seenRow({ ...row, path }, by) : undefined
    return seen === undefined ? [] : [{ ...seen, count: row.count, evidence: 'sandbox' }]
  })
}

function seenRow({ what, path }: Observed, { plan, led }: ObservedBy): Seen | undefined {
  if (led?.has(path) !== true) return SEEN[what](path, plan)
  const elsewhere = led.get(path)
  if (elsewhere === undefined) return undefined
  const { path: target, flags = '' } = elsewhere
  return hidden('read', target, { fix: flags, key: flags === '' ? '' : 'zones' })
}

/** Programs look for a file in many places, and go on without. */
const isLook = ({ what }: Observed): boolean => what === 'hidden-read'

const byWeight = (one: Observed, other: Observed): number =>
  Number(isLook(one)) - Number(isLook(other)) || other.last - one.last

const SEEN: Readonly<Record<Observation, (path: string, plan: Plan) => Seen>> = {
  'read-only': (path, plan) =>
    writeDenial(path, plan) ?? { layer: 'mount', operation: 'write', target: path, fix: '', key: '' },
  'hidden-read': (path, plan) => hidden('read', path, showFix(path, 'ro', plan)),
  'hidden-write': (path, plan) => hidden('write', path, showFix(path, 'rw', plan)),
  'hidden-create': (path, plan) => hidden('write', path, showFix(posix.dirname(path), 'rw', plan)),
  'hidden-execute': (path, plan) => hidden('execute', path, showFix(path, 'ro', plan)),
  'hidden-socket': (path, plan) =>
    hidden('connect', path, isDangerousSocket(path) ? { fix: '', key: '' } : showFix(path, 'socket', plan)),
  unreachable: (path) => ({ layer: 'network', operation: 'connect', target: path, ...allowAddress(path) }),
}

const hidden = (operation: string, target: string, fix: Pick<Denial, 'fix' | 'key'>): Seen => ({
  layer: 'mount',
  operation,
  target,
  ...fix,
})

/** `ADDRESS:PORT` or `[ADDRESS]:PORT`. */
function allowAddress(place: string): Pick<Denial, 'fix' | 'key'> {
  const at = place.lastIndexOf(':')
  return allowFix(place.slice(0, at).replace(/^\[|\]$/g, ''), Number(place.slice(at + 1)))
}

/** Services of the system that programs ask if they are there. */
const ASKED_IN_PASSING =
  /^\/(?:var\/)?run\/(?:nscd|systemd|dbus|utmp|user|resolvconf)(?:\/|$)|^\/var\/(?:lib\/(?:sss|nscd)|db|log)(?:\/|$)/

/** Python keeps what it has compiled there, and works without. */
const KEPT_IN_PASSING = /\/__pycache__(?:\/|$)/

/** Whether the host has something in a place of credentials, or in its own part of /etc, is not told. */
function isTold({ what, path }: Observed, homes: readonly string[]): boolean {
  if (what === 'read-only') return !KEPT_IN_PASSING.test(path)
  if (what === 'unreachable') return true
  if (/^\/(?:etc|boot)(?:\/|$)/.test(path) || ASKED_IN_PASSING.test(path)) return false
  // A socket is mounted alone, in whatever directory of the system it is.
  if (what === 'hidden-socket') return !homes.some((home) => isCredential(path, home))
  const shown = what === 'hidden-create' ? posix.dirname(path) : path
  return !homes.some((home) => holdsCredentials(shown, home))
}

export function observerWarnings({ observed }: Outcome): readonly string[] {
  if (observed === undefined) return []
  const { isLost, omitted, unread } = observed satisfies ObservedReport
  return [
    ...(isLost
      ? ['the observer of --explain ended before the command, whose observed calls have failed since (ENOSYS)']
      : []),
    ...(unread > 0 ? [`--explain could not look at ${unread} calls: this user may not look into the sandbox`] : []),
    ...(omitted > 0 ? [`--explain leaves out ${omitted} further refusals`] : []),
  ]
}
