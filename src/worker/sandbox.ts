/** A `sandbox` section in any of its spellings -> zones, and a policy layer for all the rest. The shape is already checked. Pure. */

import path from 'node:path'
import type { KeyLines } from '../config/yaml.ts'
import type { SandboxInput } from '../policy/keys/index.ts'
import { parseSize } from '../text/units.ts'
import type { Problem } from './problem.ts'
import { ADVISORY_KEYS, type MountText, parseMount } from './schema.ts'
import { lineOf } from './schema-problems.ts'
import type { Place, SandboxWish, Warning, Wish, ZoneWish } from './worker.ts'

/** What the text of a file is read with. */
export interface Surroundings {
  /** As messages show it. */
  readonly file: string
  /** Absolute; what host paths are relative to. */
  readonly directory: string
  /** What `~/` stands for, absolute; empty when there is none. */
  readonly home: string
  readonly lines: KeyLines
}

export interface Section {
  /** Dotted key of the section. */
  readonly key: string
  readonly value: object
}

export interface ReadSandbox {
  readonly wish: SandboxWish
  readonly warnings: readonly Warning[]
  readonly problems: readonly Problem[]
}

interface RawZone {
  readonly mode?: 'ro' | 'rw' | 'tmpfs'
  readonly hostPath?: string
  readonly path?: string
  readonly root?: string
  readonly host_path?: string
  readonly source?: string
  readonly target?: string
  readonly mount_point?: string
  readonly readonly?: boolean
  readonly size?: string | number
  readonly create?: boolean
  readonly optional?: boolean
  readonly sockets?: boolean
}

/** Fields that are put into other words here; every other one is a key of the policy. */
interface RawSandbox {
  readonly zones?: readonly (RawZone & { readonly name: string })[] | Readonly<Record<string, RawZone>>
  readonly paths?: Readonly<Record<string, RawZone>>
  readonly mounts?: readonly (string | RawZone)[]
  readonly root?: string
  readonly mode?: 'direct' | 'sandboxed'
  readonly readonly?: boolean
  readonly restrict?: string
  readonly isolation?: 'docker' | 'process' | 'namespace' | 'auto'
  readonly backend?: string
}
const OWN_FIELDS = ['zones', 'paths', 'mounts', 'root', 'mode', 'readonly', 'restrict', 'isolation', 'backend'] as const

/** Where a sandboxed worker of old keeps its files. */
const SANDBOXED_ROOT = '.sandbox'

/**
 * @param sections at least one; a field may stand in one of them only
 * @param zones by name, from the older section of that name
 */
export function readSandbox(input: {
  readonly around: Surroundings
  readonly layer: 'worker' | 'workshop'
  readonly sections: readonly Section[]
  readonly zones?: Section
}): ReadSandbox {
  const { around, sections } = input
  const raw: RawSandbox = Object.assign({}, ...sections.map(({ value }) => value))
  const place = placesIn(around, sections)
  const base = resolvePath(around, around.directory, raw.root ?? (raw.mode === 'sandboxed' ? SANDBOXED_ROOT : '.'))
  const entries = [
    ...entriesOf(raw, place),
    ...mapEntries(input.zones?.value as RawSandbox['paths'], () => olderPlace(input)),
  ]
  const zones =
    entries.length === 0 && raw.root !== undefined
      ? [rootZone({ raw, base, place })]
      : entries.map(zoneReader(around, base))
  const isRootOnly = entries.length === 0 && raw.root !== undefined
  const wish: SandboxWish = {
    zones,
    layer: layerOf({ ...input, raw, place }),
    ...(raw.restrict === undefined ? {} : { restrict: wished(trimmed(raw.restrict), place('restrict')) }),
    ...(raw.readonly === undefined || isRootOnly ? {} : { readonly: wished(raw.readonly, place('readonly')) }),
    from: place(''),
  }
  return {
    wish,
    warnings: [...entries.flatMap(modeWarning), ...zones.flatMap(advisoryWarning)],
    problems: [
      ...twiceSaid(around, sections),
      ...isolationProblem(raw, place),
      ...entries.flatMap(entryProblems),
      ...sameNames(zones),
    ],
  }
}

const wished = <V>(value: V, from: Place): Wish<V> => ({ value, from })
const trimmed = (target: string) => (target.length > 1 ? target.replace(/\/$/, '') : target)

type PlaceOf = (field: string) => Place

function olderPlace({ around, zones }: { readonly around: Surroundings; readonly zones?: Section }): Place {
  return { file: around.file, line: lineOf(around.lines, zones?.key ?? ''), key: zones?.key ?? '' }
}

/** The place of a dotted field: in the section that has it. */
function placesIn({ file, lines }: Surroundings, sections: readonly Section[]): PlaceOf {
  return (field) => {
    const [first = ''] = field.split('.')
    const section = sections.find(({ value }) => Object.hasOwn(value, first)) ?? sections[0]
    const key = [section?.key, field].filter((part) => part !== undefined && part !== '').join('.')
    return { file, line: lineOf(lines, key), key }
  }
}

function resolvePath({ home }: Surroundings, base: string, written: string): string {
  if (written === '~') return home
  return written.startsWith('~/') ? path.join(home, written.slice(2)) : path.resolve(base, written)
}

/** A zone as it is written, whichever way. */
interface Entry {
  readonly name: string
  readonly raw: RawZone
  readonly from: Place
  /** Written in docker's words. */
  readonly isMount?: true
}

function entriesOf(raw: RawSandbox, place: PlaceOf): readonly Entry[] {
  const { zones } = raw
  const listed = Array.isArray(zones)
    ? (zones as readonly (RawZone & { readonly name: string })[]).map((zone, index) => ({
        name: zone.name,
        raw: zone,
        from: place(`zones.${index}`),
      }))
    : mapEntries(zones as RawSandbox['paths'], (name) => place(`zones.${name}`))
  return [
    ...listed,
    ...mapEntries(raw.paths, (name) => place(`paths.${name}`)),
    ...mountEntries(raw.mounts ?? [], place),
  ]
}

function mapEntries(
  zones: Readonly<Record<string, RawZone>> | undefined,
  placeOf: (name: string) => Place,
): readonly Entry[] {
  return Object.entries(zones ?? {}).map(([name, raw]) => ({ name, raw, from: placeOf(name) }))
}

function mountEntries(mounts: readonly (string | RawZone)[], place: PlaceOf): readonly Entry[] {
  const raws = mounts.map((mount) => (typeof mount === 'string' ? fromText(parseMount(mount)) : mount))
  const names = mountNames(raws.map((raw) => targetOf(raw) ?? '/'))
  return raws.map((raw, index) => ({ name: names[index] ?? '', raw, from: place(`mounts.${index}`), isMount: true }))
}

function fromText(mount: MountText | undefined): RawZone {
  return mount === undefined ? {} : { ...mount }
}

/** The last part of the target where no other mount has the same, else the whole of it. */
function mountNames(targets: readonly string[]): readonly string[] {
  const short = targets.map((target) => zoneWord(path.posix.basename(target)))
  return short.map((name, index) =>
    name !== '' && short.indexOf(name) === short.lastIndexOf(name) ? name : zoneWord((targets[index] ?? '').slice(1)),
  )
}

const zoneWord = (text: string) => text.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 64)

function sourcesOf(raw: RawZone): readonly string[] {
  return [raw.hostPath, raw.path, raw.root, raw.host_path, raw.source].filter((source) => source !== undefined)
}

function targetOf(raw: RawZone): string | undefined {
  return raw.target ?? raw.mount_point
}

function modeOf({ mode, readonly }: RawZone): 'ro' | 'rw' | 'tmpfs' {
  return mode ?? (readonly === false ? 'rw' : 'ro')
}

function zoneReader(around: Surroundings, base: string): (entry: Entry) => ZoneWish {
  return ({ name, raw, from }) => {
    const [source] = sourcesOf(raw)
    const mode = modeOf(raw)
    const size = raw.size === undefined ? undefined : parseSize(raw.size)
    const advisory = Object.entries(raw).filter(([key]) => ADVISORY_KEYS.includes(key))
    return {
      name,
      target: trimmed(targetOf(raw) ?? `/${name}`),
      mode,
      ...(source === undefined ? {} : { hostPath: resolvePath(around, base, source) }),
      ...(source === undefined && mode !== 'tmpfs' ? { request: true } : {}),
      ...(size?.ok === true ? { size: size.value } : {}),
      ...(raw.create === true ? { create: true } : {}),
      ...(raw.optional === true ? { optional: true } : {}),
      ...(raw.sockets === true ? { sockets: true } : {}),
      ...(advisory.length === 0 ? {} : { advisory: Object.fromEntries(advisory) }),
      from,
    }
  }
}

/** A root alone is the directory at /workspace. */
function rootZone({
  raw,
  base,
  place,
}: {
  readonly raw: RawSandbox
  readonly base: string
  readonly place: PlaceOf
}): ZoneWish {
  const mode = raw.readonly === false ? 'rw' : 'ro'
  const from = place(raw.readonly === undefined ? 'root' : 'readonly')
  return { name: 'workspace', target: '/workspace', mode, hostPath: base, from }
}

function layerOf(input: {
  readonly around: Surroundings
  readonly layer: 'worker' | 'workshop'
  readonly sections: readonly Section[]
  readonly raw: RawSandbox
  readonly place: PlaceOf
}): SandboxWish['layer'] {
  const { around, layer, sections, raw } = input
  const own: ReadonlySet<string> = new Set(OWN_FIELDS)
  const rest = Object.fromEntries(Object.entries(raw).filter(([field]) => !own.has(field)))
  const backend = raw.backend ?? raw.isolation
  const values = { ...rest, ...(backend === undefined ? {} : { backend }) } as SandboxInput
  return { layer, source: around.file, directory: around.directory, values, places: placesOf(around, sections) }
}

/** `network.allow` -> `reviewer.worker:9`, as policy layers have it. */
function placesOf({ file, lines }: Surroundings, sections: readonly Section[]): Readonly<Record<string, string>> {
  const below = sections.flatMap(({ key }) =>
    Object.entries(lines)
      .filter(([line]) => key === '' || line.startsWith(`${key}.`))
      .map(([line, number]) => [key === '' ? line : line.slice(key.length + 1), `${file}:${number}`] as const),
  )
  const places = Object.fromEntries(below)
  const { isolation } = places
  return isolation === undefined ? places : { backend: isolation, ...places }
}

function twiceSaid({ file, lines }: Surroundings, sections: readonly Section[]): readonly Problem[] {
  const [first, second] = sections
  if (first === undefined || second === undefined) return []
  const both = Object.keys(second.value).filter((field) => Object.hasOwn(first.value, field))
  return both.map((field) => {
    const key = `${second.key}.${field}`
    return { file, line: lineOf(lines, key), key, expected: `${field} in one section`, got: `it in ${first.key} too` }
  })
}

function isolationProblem({ isolation, backend }: RawSandbox, place: PlaceOf): readonly Problem[] {
  if (isolation === undefined || backend === undefined || isolation === backend) return []
  return [{ ...place('isolation'), expected: `${backend}, which backend says`, got: isolation }]
}

function entryProblems({ name, raw, from, isMount }: Entry): readonly Problem[] {
  const sources = sourcesOf(raw)
  const isTmpfs = raw.mode === 'tmpfs'
  const claimsRw = raw.mode === 'rw' || raw.mode === 'tmpfs'
  return [
    ...(sources.length > 1
      ? [{ ...from, expected: 'one host path', got: `${sources.length} (${sources.join(', ')})` }]
      : []),
    ...(raw.target !== undefined && raw.mount_point !== undefined
      ? [{ ...from, expected: 'one place inside', got: 'target and mount_point' }]
      : []),
    ...(raw.readonly !== undefined && raw.mode !== undefined && raw.readonly === claimsRw
      ? [
          {
            ...from,
            expected: 'a mode and readonly that agree',
            got: `mode ${raw.mode} beside readonly ${raw.readonly}`,
          },
        ]
      : []),
    ...(isTmpfs && sources.length > 0
      ? [{ ...from, expected: 'no host path beside mode tmpfs', got: sources.join(', ') }]
      : []),
    ...(!isTmpfs && raw.size !== undefined
      ? [{ ...from, expected: 'size only beside mode tmpfs', got: `mode ${modeOf(raw)}` }]
      : []),
    ...(isMount === true && (sources.length === 0 || targetOf(raw) === undefined)
      ? [{ ...from, expected: 'a source and a target', got: sources.length === 0 ? 'no source' : 'no target' }]
      : []),
    ...(isMount === true && name === '' ? [{ ...from, expected: 'a target below /', got: '/' }] : []),
  ]
}

function sameNames(zones: readonly ZoneWish[]): readonly Problem[] {
  return zones.flatMap((zone, index) => {
    const other = zones.slice(0, index).find(({ name, target }) => name === zone.name || target === zone.target)
    if (other === undefined) return []
    const what =
      other.name === zone.name ? `a second zone named ${zone.name}` : `${zone.target}, where zone ${other.name} is`
    return [{ ...zone.from, expected: 'a name and a target of its own', got: what }]
  })
}

function modeWarning({ raw, from, isMount, name }: Entry): readonly Warning[] {
  if (isMount !== true || raw.mode !== undefined || raw.readonly !== undefined) return []
  const message = `mount ${name} names no mode and is read-only; docker would make it read-write. Say ro or rw.`
  return [{ code: 'W_MODE', ...from, message }]
}

function advisoryWarning({ advisory, name, from }: ZoneWish): readonly Warning[] {
  if (advisory === undefined) return []
  const message = `zone ${name}: ${Object.keys(advisory).join(', ')}: kept, but a mount cannot enforce it.`
  return [{ code: 'W_ADVISORY', ...from, message }]
}
