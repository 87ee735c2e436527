/** A `sandbox` section in any of its spellings -> zones, and a policy layer for all the rest. The shape is already checked. Pure. */

import path from 'node:path'
import type { KeyLines } from '../config/yaml.ts'
import type { SandboxInput } from '../policy/keys/index.ts'
import type { ZoneMode } from '../policy/values.ts'
import { parseSize } from '../text/units.ts'
import type { Problem } from './problem.ts'
import { ADVISORY_KEYS, type MountText, parseMount } from './schema.ts'
import { lineOf } from './schema-problems.ts'
import type { Requested, SandboxRequest, SourceLocation, Warning, ZoneRequest } from './worker.ts'

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
  readonly request: SandboxRequest
  readonly warnings: readonly Warning[]
  readonly problems: readonly Problem[]
}

interface RawZone {
  readonly mode?: ZoneMode
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
  const locate = locatorOf(around, sections)
  const base = resolvePath(around, around.directory, raw.root ?? (raw.mode === 'sandboxed' ? SANDBOXED_ROOT : '.'))
  const entries = [
    ...entriesOf(raw, locate),
    ...mapEntries(input.zones?.value as RawSandbox['paths'], () => olderLocation(input)),
  ]
  const zones =
    entries.length === 0 && raw.root !== undefined
      ? [rootZone({ raw, base, locate })]
      : entries.map(zoneReader(around, base))
  const isRootOnly = entries.length === 0 && raw.root !== undefined
  const request: SandboxRequest = {
    zones,
    layer: layerOf({ ...input, raw, locate }),
    ...(raw.restrict === undefined ? {} : { restrict: requested(trimmed(raw.restrict), locate('restrict')) }),
    ...(raw.readonly === undefined || isRootOnly ? {} : { readonly: requested(raw.readonly, locate('readonly')) }),
    from: locate(''),
  }
  return {
    request,
    warnings: [...entries.flatMap(modeWarning), ...zones.flatMap(advisoryWarning)],
    problems: [
      ...duplicateFields(around, sections),
      ...isolationProblem(raw, locate),
      ...entries.flatMap(entryProblems),
      ...sameNames(zones),
    ],
  }
}

const requested = <V>(value: V, from: SourceLocation): Requested<V> => ({ value, from })
const trimmed = (target: string) => (target.length > 1 ? target.replace(/\/$/, '') : target)

type Locate = (field: string) => SourceLocation

function olderLocation({ around, zones }: { readonly around: Surroundings; readonly zones?: Section }): SourceLocation {
  return { file: around.file, line: lineOf(around.lines, zones?.key ?? ''), key: zones?.key ?? '' }
}

/** The place of a dotted field: in the section that has it. */
function locatorOf({ file, lines }: Surroundings, sections: readonly Section[]): Locate {
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
  readonly from: SourceLocation
  /** Written in docker's words. */
  readonly isMount?: true
}

function entriesOf(raw: RawSandbox, locate: Locate): readonly Entry[] {
  const { zones } = raw
  const listed = Array.isArray(zones)
    ? (zones as readonly (RawZone & { readonly name: string })[]).map((zone, index) => ({
        name: zone.name,
        raw: zone,
        from: locate(`zones.${index}`),
      }))
    : mapEntries(zones as RawSandbox['paths'], (name) => locate(`zones.${name}`))
  return [
    ...listed,
    ...mapEntries(raw.paths, (name) => locate(`paths.${name}`)),
    ...mountEntries(raw.mounts ?? [], locate),
  ]
}

function mapEntries(
  zones: Readonly<Record<string, RawZone>> | undefined,
  locate: (name: string) => SourceLocation,
): readonly Entry[] {
  return Object.entries(zones ?? {}).map(([name, raw]) => ({ name, raw, from: locate(name) }))
}

function mountEntries(mounts: readonly (string | RawZone)[], locate: Locate): readonly Entry[] {
  const raws = mounts.map((mount) => (typeof mount === 'string' ? fromText(parseMount(mount)) : mount))
  const names = mountNames(raws.map((raw) => targetOf(raw) ?? '/'))
  return raws.map((raw, index) => ({ name: names[index] ?? '', raw, from: locate(`mounts.${index}`), isMount: true }))
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

function modeOf({ mode, readonly }: RawZone): ZoneMode {
  return mode ?? (readonly === false ? 'rw' : 'ro')
}

function zoneReader(around: Surroundings, base: string): (entry: Entry) => ZoneRequest {
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
  locate,
}: {
  readonly raw: RawSandbox
  readonly base: string
  readonly locate: Locate
}): ZoneRequest {
  const mode = raw.readonly === false ? 'rw' : 'ro'
  const from = locate(raw.readonly === undefined ? 'root' : 'readonly')
  return { name: 'workspace', target: '/workspace', mode, hostPath: base, from }
}

function layerOf(input: {
  readonly around: Surroundings
  readonly layer: 'worker' | 'workshop'
  readonly sections: readonly Section[]
  readonly raw: RawSandbox
  readonly locate: Locate
}): SandboxRequest['layer'] {
  const { around, layer, sections, raw } = input
  const own: ReadonlySet<string> = new Set(OWN_FIELDS)
  const rest = Object.fromEntries(Object.entries(raw).filter(([field]) => !own.has(field)))
  const backend = raw.backend ?? raw.isolation
  const values = { ...rest, ...(backend === undefined ? {} : { backend }) } as SandboxInput
  return { layer, source: around.file, directory: around.directory, values, locations: locationsOf(around, sections) }
}

/** `network.allow` -> `reviewer.worker:9`, as policy layers have it. */
function locationsOf({ file, lines }: Surroundings, sections: readonly Section[]): Readonly<Record<string, string>> {
  const below = sections.flatMap(({ key }) =>
    Object.entries(lines)
      .filter(([line]) => key === '' || line.startsWith(`${key}.`))
      .map(([line, number]) => [key === '' ? line : line.slice(key.length + 1), `${file}:${number}`] as const),
  )
  const locations = Object.fromEntries(below)
  const { isolation } = locations
  return isolation === undefined ? locations : { backend: isolation, ...locations }
}

function duplicateFields({ file, lines }: Surroundings, sections: readonly Section[]): readonly Problem[] {
  const [first, second] = sections
  if (first === undefined || second === undefined) return []
  const both = Object.keys(second.value).filter((field) => Object.hasOwn(first.value, field))
  return both.map((field) => {
    const key = `${second.key}.${field}`
    return { file, line: lineOf(lines, key), key, expected: `${field} in one section`, got: `it in ${first.key} too` }
  })
}

function isolationProblem({ isolation, backend }: RawSandbox, locate: Locate): readonly Problem[] {
  if (isolation === undefined || backend === undefined || isolation === backend) return []
  return [{ ...locate('isolation'), expected: `${backend}, which backend says`, got: isolation }]
}

function entryProblems({ name, raw, from, isMount }: Entry): readonly Problem[] {
  const sources = sourcesOf(raw)
  const isTmpfs = raw.mode === 'tmpfs'
  const claimsRw = raw.mode !== undefined && raw.mode !== 'ro'
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
            got: `mode ${raw.mode} together with readonly ${raw.readonly}`,
          },
        ]
      : []),
    ...(isTmpfs && sources.length > 0
      ? [{ ...from, expected: 'no host path together with mode tmpfs', got: sources.join(', ') }]
      : []),
    ...(!isTmpfs && raw.size !== undefined
      ? [{ ...from, expected: 'size only together with mode tmpfs', got: `mode ${modeOf(raw)}` }]
      : []),
    ...(isMount === true && (sources.length === 0 || targetOf(raw) === undefined)
      ? [{ ...from, expected: 'a source and a target', got: sources.length === 0 ? 'no source' : 'no target' }]
      : []),
    ...(isMount === true && name === '' ? [{ ...from, expected: 'a target below /', got: '/' }] : []),
  ]
}

function sameNames(zones: readonly ZoneRequest[]): readonly Problem[] {
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

function advisoryWarning({ advisory, name, from }: ZoneRequest): readonly Warning[] {
  if (advisory === undefined) return []
  const message = `zone ${name}: ${Object.keys(advisory).join(', ')}: kept, but a mount cannot enforce it.`
  return [{ code: 'W_ADVISORY', ...from, message }]
}
