/** How zones add up: drafts of each layer, laid over each other by name, then what is wrong with the sum. Pure. */
import { quoteText } from '../text/units.ts'
import { type ParsedZone, ZONE_SIZE } from './keys/zone.ts'
import { type LayerSource, resolveHostPath, type SetKey } from './layer-source.ts'
import type { Origin, Zone, ZoneMode } from './values.ts'

/** A zone as far as it is known while layers are added. */
export interface DraftZone extends Omit<ParsedZone, 'name'> {
  readonly name: string
  readonly named: boolean
  readonly meansDirectory?: boolean
  readonly origin: Origin
  /** Where it is set, for messages. */
  readonly head: string
}

export function draftZones(parsed: readonly ParsedZone[], source: LayerSource): readonly DraftZone[] {
  return parsed.map((zone, index) => {
    const key = `zones.${index}`
    const hostPath =
      zone.hostPath === undefined
        ? {}
        : {
            hostPath: resolveHostPath(zone.hostPath, source),
            meansDirectory: zone.hostPath.endsWith('/'),
          }
    // A name that no file can contain: unnamed zones are never merged with others.
    const name = zone.name ?? `zone#${source.rank}.${index + 1}`
    return {
      ...zone,
      ...hostPath,
      name,
      named: zone.name !== undefined,
      origin: source.originOf(key),
      head: source.headOf(key, zone.name),
    }
  })
}

/** By name; a zone keeps its place in the order, a new one comes last. */
export function addZones(below: readonly DraftZone[] | undefined, above: readonly DraftZone[]): readonly DraftZone[] {
  const zones = new Map((below ?? []).map((zone) => [zone.name, zone]))
  for (const zone of above) {
    const same = zones.get(zone.name)
    zones.set(zone.name, same === undefined ? zone : overlay(same, zone))
  }
  return [...zones.values()]
}

/** Field by field, unless tmpfs takes the place of a host directory or the other way round: then nothing of the old zone is left. */
function overlay(below: DraftZone, above: DraftZone): DraftZone {
  const wasTmpfs = below.mode === 'tmpfs'
  const becomesTmpfs = above.mode === 'tmpfs' || (above.mode === undefined && above.hostPath === undefined && wasTmpfs)
  if (wasTmpfs !== becomesTmpfs) return above
  const set = Object.fromEntries(Object.entries(above).filter(([, value]) => value !== undefined))
  return { ...below, ...set }
}

export function zoneKeys(zones: readonly DraftZone[]): readonly SetKey[] {
  return [{ key: 'zones' }, ...zones.map(({ name, origin }) => ({ key: `zones.${name}`, at: origin.key }))]
}

export function zoneOf(draft: DraftZone): Zone {
  const mode: ZoneMode = draft.mode ?? 'ro'
  const target = draft.target ?? (draft.named ? `/${draft.name}` : undefined)
  return {
    name: draft.name,
    mode,
    ...(draft.hostPath === undefined ? {} : { hostPath: draft.hostPath }),
    ...(draft.meansDirectory === true ? { meansDirectory: true } : {}),
    ...(target === undefined ? {} : { target }),
    ...(mode === 'tmpfs' ? { size: draft.size ?? ZONE_SIZE } : {}),
    create: draft.create ?? false,
    optional: draft.optional ?? false,
    sockets: draft.sockets ?? draft.kind === 'socket',
    ...(draft.kind === undefined ? {} : { kind: draft.kind }),
    ...(draft.secret === true ? { secret: true } : {}),
    origin: draft.origin,
  }
}

/** @param broken some layer could not be read completely, so that what is missing here may have been set there */
export function zoneProblems(zones: readonly DraftZone[], broken: boolean): readonly string[] {
  return [
    ...zones.flatMap((zone) => sourceProblems({ zone, broken })),
    ...zones.flatMap((zone, index) => sharedTarget(zone, zones.slice(0, index))),
  ]
}

function sourceProblems({ zone, broken }: { readonly zone: DraftZone; readonly broken: boolean }): readonly string[] {
  const { head, mode, hostPath, size, create, optional } = zone
  if (mode === 'tmpfs') {
    const hasTarget = zone.named || zone.target !== undefined
    return [
      ...(hasTarget ? [] : [`${head} expected a name or a target together with mode tmpfs, got neither.`]),
      ...(hostPath === undefined
        ? []
        : [`${head} expected no hostPath together with mode tmpfs, got ${quoteText(hostPath)}.`]),
      ...(create === true || optional === true
        ? [`${head} expected no create or optional together with mode tmpfs, got one.`]
        : []),
    ]
  }
  // With a broken layer below, the host path may be what could not be read: one message is enough.
  return [
    ...(hostPath === undefined && !broken
      ? [`${head} expected a hostPath, from this file or one that grants it, got nothing.`]
      : []),
    ...(size === undefined ? [] : [`${head} expected size only together with mode tmpfs, got mode ${mode ?? 'ro'}.`]),
  ]
}

/** The name that was given, else what it shows. */
function owner({ named, name, hostPath }: DraftZone): string {
  return named || hostPath === undefined ? `zone "${name}"` : `the zone of ${quoteText(hostPath)}`
}

function sharedTarget(zone: DraftZone, before: readonly DraftZone[]): readonly string[] {
  const target = zoneOf(zone).target
  const other = before.find((candidate) => target !== undefined && zoneOf(candidate).target === target)
  return other === undefined
    ? []
    : [`${zone.head} expected a target of its own, got ${quoteText(target ?? '')}, which ${owner(other)} has.`]
}
