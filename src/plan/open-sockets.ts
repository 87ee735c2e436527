/** Warnings of a plan about sockets and FIFOs in its zones, where Landlock does not close them. Pure. */
import { LANDLOCK_CLOSES_SOCKETS } from '../contract.ts'
import { named, type Place } from './hash.ts'
import { closesSockets } from './landlock.ts'
import type { BackendTraits } from './offers.ts'
import type { Plan, PlannedZone } from './plan.ts'
import { shown } from './well-known-paths.ts'

/** Zones that must be searched for sockets and FIFOs: Landlock closes sockets from its version 9 on, and FIFOs never. */
export function zonesWithOpenSockets(plan: Plan, { hasLandlock }: BackendTraits): readonly PlannedZone[] {
  const { zones, layer } = plan
  if (!hasLandlock || closesSockets(plan)) return []
  // Sockets and FIFOs of a copy lead nowhere.
  const isCopied = ({ mode }: PlannedZone): boolean => mode === 'cow' && layer?.upper === 'copy'
  // No server listens in an installation, and some of them hold thousands of files.
  const isSearched = ({ kind, sockets, from }: PlannedZone): boolean =>
    kind === 'directory' && !sockets && !from.startsWith('toolchain ')
  return zones.filter((zone) => isSearched(zone) && !isCopied(zone))
}

const whyOpen = ({ landlockAbi, seccomp }: Plan): string =>
  landlockAbi >= LANDLOCK_CLOSES_SOCKETS ? `seccomp ${seccomp.profile} leaves it open` : 'this kernel cannot close it'

/** Source of a zone -> sockets and FIFOs in it. */
export type OpenSockets = Readonly<Record<string, { readonly open: readonly string[] }>>

/** The plan with one warning for each zone that has some. */
export function warnOfOpenSockets(
  plan: Plan,
  place: Place,
  { zones, openSockets }: { readonly zones: readonly PlannedZone[]; readonly openSockets: OpenSockets },
): Plan {
  const warnings = zones.flatMap(({ source, target }) => {
    const [first, ...rest] = openSockets[source]?.open ?? []
    if (first === undefined) return []
    const more = rest.length === 0 ? '' : ` and ${rest.length} more`
    return [
      `${target}: ${shown(first)}${more} leads to a process of the host, and ${whyOpen(plan)}; keep it out of the zone, or set sockets: true if it is meant`,
    ]
  })
  if (warnings.length === 0) return plan
  const { hash: _, ...rest } = { ...plan, warnings: [...plan.warnings, ...warnings] }
  return named(rest, place)
}
