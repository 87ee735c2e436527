/**
 * UNIX sockets and FIFOs that a command could not make: a writable zone is closed to them, and so is a scratch directory above such a zone. It
 * gets EACCES, as for any file, so what it says has to be about one of them. Pure.
 */
import { usesLandlock } from '../plan/landlock.ts'
import type { Plan, PlannedZone } from '../plan/plan.ts'
import { isBelow, isWithin } from '../plan/well-known-paths.ts'
import { zoneFlag } from './hints.ts'
import type { Denial } from './result.ts'
import { pathsSaidIn } from './stderr-denials.ts'

/** The same words as in native/client/result.c. */
const DENIED = /permission denied|EACCES/i
const ABOUT_SOCKETS = /mkfifo|fifo|bind|listen|socket|\.sock/i

/** @param text the end of stderr */
export function socketDenials(text: string, command: readonly string[], plan: Plan): readonly Denial[] {
  if (!usesLandlock(plan) || ![text, ...command].some((words) => ABOUT_SOCKETS.test(words))) return []
  const lines = text.split('\n').filter((line) => DENIED.test(line))
  const found = lines.flatMap((line) =>
    pathsSaidIn(line, plan.workdir).flatMap((path) => socketDenial(path, plan) ?? []),
  )
  return found.filter(({ target }, at) => found.findIndex((one) => one.target === target) === at)
}

/** A socket or FIFO at this path is refused for a zone that is closed to them. */
export function socketDenial(path: string, { zones, scratch }: Plan): Denial | undefined {
  const closed = zones.filter(({ mode, kind, sockets }) => mode !== 'ro' && kind === 'directory' && !sockets)
  const outer = scratch.find(({ target }) => isWithin(path, target))
  const zone =
    closed.find(({ target }) => isWithin(path, target)) ??
    closed.find(({ target }) => outer && isBelow(target, outer.target))
  return zone && { ...REFUSED, target: `${path} (socket or FIFO)`, fix: opened(zone) }
}

const REFUSED = {
  layer: 'mount',
  operation: 'create',
  count: 1,
  key: 'zones',
  evidence: 'stderr',
} as const

/** The flag that shows the same zone with sockets. */
const opened = (zone: PlannedZone): string => `${zoneFlag(zone, zone.mode)}:sockets`
