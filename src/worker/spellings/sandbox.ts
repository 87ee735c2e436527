/**
 * Every spelling of a `sandbox` section -> the section in normal form, still unchecked. Pure.
 * Only names and places change here. A key that is in none of these tables stays as it is, and the schema of the normal form refuses it.
 */
import path from 'node:path'
import { resolveHostPath } from '../../policy/layer-source.ts'
import { readHostPath } from '../../policy/readers.ts'
import { listWords } from '../../text/choices.ts'
import { isMapping, type Mapping } from '../../text/json.ts'
import { at, below, checkShape, type Reading, refuse, refuseValue, warn } from '../reading.ts'
import { ISOLATIONS, mountShape } from '../schema.ts'

/** Keys of a zone that mean another key. */
const ZONE_SPELLINGS: ReadonlyMap<string, string> = new Map([
  ['path', 'hostPath'],
  ['root', 'hostPath'],
  ['host_path', 'hostPath'],
  ['mount_point', 'target'],
])
const MOUNT_SPELLINGS: ReadonlyMap<string, string> = new Map([...ZONE_SPELLINGS, ['source', 'hostPath']])
/** Host paths of a section with `mode: sandboxed` are relative to this directory. */
const SANDBOXED_ROOT = '.sandbox'
const MOUNT_TEXT = /^(?<source>[^:]+):(?<target>\/[^:]*)(?::(?<mode>ro|rw))?$/
const EXPECTED_MOUNT = 'SOURCE:TARGET, SOURCE:TARGET:ro or SOURCE:TARGET:rw with an absolute TARGET'

export interface Section {
  /** Dotted key of the section. */
  readonly key: string
  readonly value: Mapping
}

export interface AdaptedSandbox {
  readonly value: Mapping
  /** Dotted key of `value` -> dotted key of the file. */
  readonly place: (key: string) => string
  /** Dotted key of `value` -> `FILE:LINE`, as policy layers have it. */
  readonly locations: Readonly<Record<string, string>>
  /** Absolute; host paths of zones are relative to it. */
  readonly zoneDirectory: string
}

/** A zone as it is written. */
interface Entry {
  /** Dotted, of the file. */
  readonly key: string
  readonly value: unknown
  /** Absent where the zone itself has the name. */
  readonly name?: string
  readonly spellings?: ReadonlyMap<string, string>
}

/**
 * @param sections at least one; a key may be in one of them only
 * @param older zones by name, from the section `sandboxes`
 */
export function adaptSandbox(reading: Reading, sections: readonly Section[], older?: Section): AdaptedSandbox {
  refuseTwice(reading, sections)
  const outer = below(sections[0]?.key ?? '')
  const written = sections.flatMap(({ key, value }) =>
    Object.keys(value).map((name) => [name, below(key)(name)] as const),
  )
  const isolated = written.flatMap(([name, key]) => (name === 'isolation' ? [['backend', key] as const] : []))
  const places = new Map([...isolated, ...written])
  const locate = (name: string) => places.get(name) ?? outer(name)
  const merged: Mapping = Object.fromEntries(sections.flatMap(({ value }) => Object.entries(value)))
  const { zones, paths, mounts, root, mode, isolation, ...values } = merged
  const listed = [
    ...(Array.isArray(zones)
      ? zones.map((value, index) => ({ key: `${locate('zones')}.${index}`, value }))
      : byName(reading, locate('zones'), zones)),
    ...byName(reading, locate('paths'), paths),
    ...mountEntries(reading, locate('mounts'), mounts),
    ...byName(reading, older?.key ?? '', older?.value),
  ]
  const isRootAlone = listed.length === 0 && root !== undefined
  const { readonly, ...rest } = values
  const entries = isRootAlone ? [rootEntry(locate, readonly)] : listed
  const backend = backendOf(reading, locate('isolation'), { isolation, backend: values['backend'] })
  return {
    value: { ...(isRootAlone ? rest : values), ...backend, zones: entries.map((entry) => zoneOf(reading, entry)) },
    place: (key) => {
      const [first = '', index = '', ...inner] = key.split('.')
      const entry = first === 'zones' ? entries[Number(index)] : undefined
      return entry === undefined ? locate(first) + key.slice(first.length) : placeInZone(entry, inner)
    },
    locations: locationsOf(reading, places),
    zoneDirectory: zoneDirectory(reading, locate, { root, mode }),
  }
}

function refuseTwice(reading: Reading, [first, ...others]: readonly Section[]): void {
  for (const { key, value } of others)
    for (const name of Object.keys(value).filter((name) => Object.hasOwn(first?.value ?? {}, name))) {
      const problem = { expected: `${name} in one section`, got: `it in ${first?.key} too` }
      refuse(reading, at(reading, below(key)(name)), problem)
    }
}

function byName(reading: Reading, key: string, zones: unknown): readonly Entry[] {
  if (isMapping(zones)) return Object.entries(zones).map(([name, value]) => ({ key: `${key}.${name}`, name, value }))
  if (zones !== undefined) refuseValue(reading, key, 'zones by name', zones)
  return []
}

/** A root alone is the directory at /workspace. */
function rootEntry(locate: (name: string) => string, readonly: unknown): Entry {
  const key = locate(readonly === undefined ? 'root' : 'readonly')
  return { key, name: 'workspace', value: { hostPath: '.', ...(readonly !== undefined && { readonly }) } }
}

/** A mount has the name of its target: the last part, or the whole where two mounts have the same last part. */
function mountEntries(reading: Reading, key: string, mounts: unknown): readonly Entry[] {
  if (mounts !== undefined && !Array.isArray(mounts)) refuseValue(reading, key, 'a list', mounts)
  const list: readonly unknown[] = Array.isArray(mounts) ? mounts : []
  const read = list.flatMap((mount, index) => mountOf(reading, `${key}.${index}`, mount))
  const names = read.map(({ name }) => name)
  const isAlone = (name: string) => names.indexOf(name) === names.lastIndexOf(name)
  return read.map((mount) => ({ ...mount, name: isAlone(mount.name) ? mount.name : zoneWord(mount.target.slice(1)) }))
}

const zoneWord = (text: string) => text.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 64)

/** @returns nothing after noting what is wrong */
function mountOf(reading: Reading, key: string, mount: unknown) {
  const raw: unknown = typeof mount === 'string' ? MOUNT_TEXT.exec(mount)?.groups : mount
  const { type: _, ...value }: Mapping = isMapping(raw) ? raw : {}
  if (!isMapping(raw)) refuseValue(reading, key, EXPECTED_MOUNT, mount)
  if (!isMapping(raw) || checkShape(reading, { value: raw, shape: mountShape, place: below(key) }) === undefined)
    return []
  const from = at(reading, key)
  const target = String(value['target'] ?? value['mount_point'] ?? '')
  const name = zoneWord(path.posix.basename(target))
  const says = Object.keys(value).filter((own) => value[own] !== undefined)
  const isWithout = (field: string) => !says.some((own) => (MOUNT_SPELLINGS.get(own) ?? own) === field)
  const missing = isWithout('hostPath') ? 'no source' : isWithout('target') ? 'no target' : undefined
  if (missing !== undefined) refuse(reading, from, { expected: 'a source and a target', got: missing })
  else if (name === '') refuse(reading, from, { expected: 'a target below /', got: '/' })
  else if (isWithout('mode') && isWithout('readonly')) warn(reading, 'W_MODE', from, modelessMount(name))
  return name === '' ? [] : [{ key, name, target, value, spellings: MOUNT_SPELLINGS }]
}

const modelessMount = (name: string) =>
  `mount ${name} names no mode and is read-only; docker would make it read-write. Say ro or rw.`

/** The zone under the normal names of its keys, with one mode. */
function zoneOf(reading: Reading, { key, name, value, spellings = ZONE_SPELLINGS }: Entry): unknown {
  if (!isMapping(value)) return value
  const normal = (field: string) => spellings.get(field) ?? field
  const fields = Object.keys(value)
  for (const field of new Set(fields.map(normal))) {
    const written = fields.filter((other) => normal(other) === field)
    if (written.length > 1) refuse(reading, at(reading, key), { expected: `one ${field}`, got: written.join(' and ') })
  }
  if (name !== undefined && fields.includes('name'))
    refuse(reading, at(reading, key), { expected: 'no name inside', got: 'a second name' })
  const { readonly, ...zone } = Object.fromEntries(fields.map((field) => [normal(field), value[field]]))
  return { ...(name !== undefined && { name }), ...zone, ...modeOf(reading, key, { mode: zone['mode'], readonly }) }
}

/** `readonly` as a mode. */
function modeOf(reading: Reading, key: string, { mode, readonly }: Mapping): Mapping {
  if (readonly === undefined) return {}
  if (typeof readonly !== 'boolean') refuseValue(reading, `${key}.readonly`, 'true or false', readonly)
  if (mode === undefined) return { mode: readonly === false ? 'rw' : 'ro' }
  if (readonly === (mode !== 'ro')) {
    const got = `mode ${String(mode)} together with readonly ${String(readonly)}`
    refuse(reading, at(reading, key), { expected: 'a mode and readonly that agree', got })
  }
  return {}
}

function placeInZone({ key, name, value, spellings = ZONE_SPELLINGS }: Entry, inner: readonly string[]): string {
  const [field, ...rest] = inner
  if (field === undefined || (field === 'name' && name !== undefined)) return key
  const written = isMapping(value) ? Object.keys(value).find((own) => spellings.get(own) === field) : undefined
  return [key, written ?? field, ...rest].join('.')
}

/** Absolute. */
function zoneDirectory(reading: Reading, locate: (name: string) => string, { root, mode }: Mapping): string {
  if (mode !== undefined && mode !== 'direct' && mode !== 'sandboxed')
    refuseValue(reading, locate('mode'), 'direct or sandboxed', mode)
  const read = readHostPath(root ?? (mode === 'sandboxed' ? SANDBOXED_ROOT : '.'))
  if (!read.ok) refuse(reading, at(reading, locate('root')), read)
  return resolveHostPath(read.ok ? read.value : '.', reading)
}

function backendOf(reading: Reading, key: string, { isolation, backend }: Mapping): Mapping {
  if (isolation === undefined) return {}
  if (!ISOLATIONS.some((word) => word === isolation)) refuseValue(reading, key, listWords(ISOLATIONS), isolation)
  else if (backend !== undefined && backend !== isolation)
    refuse(reading, at(reading, key), { expected: `${String(backend)}, which backend says`, got: String(isolation) })
  return { backend: backend ?? isolation }
}

function locationsOf({ file, lines }: Reading, places: ReadonlyMap<string, string>): Readonly<Record<string, string>> {
  const found = [...places].flatMap(([name, place]) =>
    Object.entries(lines)
      .filter(([key]) => key === place || key.startsWith(`${place}.`))
      .map(([key, line]) => [name + key.slice(place.length), `${file}:${line}`] as const),
  )
  return Object.fromEntries(found)
}
