/** Denials that the walls count themselves: limits, full scratch file systems, protected names. Pure. */
import type { Outcome } from '../backends/outcome.ts'
import type { Plan, Scratch } from '../plan/plan.ts'
import { SANDBOX_HOME } from '../plan/well-known-paths.ts'
import { sizeWord } from '../text/units.ts'
import { shellWord } from './hints.ts'
import { flagName } from './protected.ts'
import type { Denial, Reason } from './result.ts'

/** The suggested value for a limit that was reached: doubling it needs few attempts. */
const twice = (limit: number | undefined): number => 2 * (limit ?? 0)

type Refused = Omit<Denial, 'evidence' | 'count'> & { readonly count?: number }

/** In the order in which the client writes it (native/client/result-json.c). */
export const refused = ({ layer, operation, target, count = 1, fix, key }: Refused): Denial => ({
  ...{ layer, operation, target, count, fix, key },
  evidence: 'sandbox',
})

export function limitDenials(
  reason: Reason,
  { events, zonesGrown }: Outcome,
  { limits, layer }: Plan,
): readonly Denial[] {
  const { oomKill = 0, pidsMax = 0 } = events ?? {}
  const memory = refused({
    layer: 'limit',
    operation: 'allocate',
    target: 'memory',
    count: Math.max(1, oomKill),
    fix: `--memory ${sizeWord(twice(limits.memory?.max))}`,
    key: 'resources.memory',
  })
  const pids = refused({
    layer: 'limit',
    operation: 'fork',
    target: 'processes',
    count: pidsMax,
    fix: `--pids ${twice(limits.pids?.max)}`,
    key: 'resources.pids',
  })
  const disk = refused({
    layer: 'limit',
    operation: 'write',
    target: 'copy-on-write changes',
    fix: `--cow-size ${sizeWord(twice(layer?.size))}`,
    key: 'cow.size',
  })
  const written = refused({
    layer: 'limit',
    operation: 'write',
    target: 'writable zones',
    fix: `--rw-size ${sizeWord(twice(limits.rwSize))}`,
    key: 'resources.rwSize',
  })
  return [
    ...(reason === 'memory' || oomKill > 0 ? [memory] : []),
    ...(pidsMax > 0 ? [pids] : []),
    ...(reason === 'disk' ? [zonesGrown === true ? written : disk] : []),
  ]
}

/** Scratch file systems with separate keys in the policy; the others are zones. */
const SCRATCH_KEYS: Readonly<Record<string, { readonly flag: string; readonly key: string }>> = {
  '/tmp': { flag: '--tmp', key: 'resources.tmp' },
  '/run': { flag: '--run', key: 'resources.run' },
  '/dev/shm': { flag: '--shm', key: 'resources.shm' },
  [SANDBOX_HOME]: { flag: '--home', key: 'resources.home' },
}

/** A write that a full scratch file system refused. @param target the very path, where it is known */
export function fullDenial({ target: mounted, size }: Scratch, target = mounted): Omit<Denial, 'evidence'> {
  const own = SCRATCH_KEYS[mounted]
  const room = sizeWord(twice(size))
  const fix = own === undefined ? `--tmpfs ${shellWord(`${mounted}:${room}`)}` : `${own.flag} ${room}`
  return { layer: 'limit', operation: 'write', target, count: 1, fix, key: own?.key ?? 'zones' }
}

export function fullDenials({ full = [] }: Outcome, { scratch }: Plan): readonly Denial[] {
  return scratch.filter(({ target }) => full.includes(target)).map((one) => refused(fullDenial(one)))
}

/** Names that were made and set aside. */
export function guardDenials({ guarded }: Outcome, { zones }: Plan): readonly Denial[] {
  const made = (guarded?.attempts.first ?? []).filter(({ unseen }) => unseen !== true)
  return made.map(({ path }) => {
    const [name] = flagName(path, zones)
    return refused({
      layer: 'guard',
      operation: 'create',
      target: path,
      fix: name === undefined ? '' : `--protect-not ${shellWord(name)}`,
      key: name === undefined ? '' : 'protectNot',
    })
  })
}
