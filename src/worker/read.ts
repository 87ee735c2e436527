/**
 * Text of a worker or workshop file -> its normal form. Pure: it depends on the text only.
 * An unknown key is a warning in the front matter of a worker, because other programs have their keys there. It is an error in
 * everything that grants or limits: `sandbox`, rules, workshops.
 */
import type { SandboxInput } from '../policy/keys/index.ts'
import type { ParsedZone } from '../policy/keys/zone.ts'
import { resolveHostPath } from '../policy/layer-source.ts'
import { isMapping, type Mapping } from '../text/json.ts'
import { quoteText } from '../text/units.ts'
import { type FrontMatter, readFrontMatter, readYamlFile } from './frontmatter.ts'
import { invalidWorker } from './problem.ts'
import { at, below, checkShape, type Reading, refuse, refuseValue, warn } from './reading.ts'
import {
  ADVISORY_KEYS,
  IO_KEYS,
  KNOWN_WORKER_KEYS,
  readName,
  sandboxShape,
  workerShape,
  workshopShape,
} from './schema.ts'
import { adaptSandbox, type Section } from './spellings/sandbox.ts'
import { adaptTools } from './spellings/tools.ts'
import type { SandboxRequest, Worker, Workshop, WorkshopWorker, ZoneRequest } from './worker.ts'

export interface FileText {
  /** As messages show it. */
  readonly file: string
  /** Absolute; host paths are relative to it. */
  readonly directory: string
  /** Replaces `~`; absolute, or empty when there is none. */
  readonly home: string
  readonly text: string
}

export type FileKind = 'worker' | 'workshop' | 'profile'

const isYaml = (file: string) => /\.ya?ml$/.test(file)

function frontMatterOf({ file, text }: FileText): FrontMatter & { readonly value: Mapping } {
  const frontMatter = isYaml(file)
    ? readYamlFile({ file, text })
    : readFrontMatter({ file, text, knownKeys: KNOWN_WORKER_KEYS })
  if (isMapping(frontMatter.value)) return { ...frontMatter, value: frontMatter.value }
  throw invalidWorker([
    { file, line: isYaml(file) ? 1 : 2, key: '', expected: 'a mapping of keys', got: 'something else' },
  ])
}

const readingOf = ({ file, directory, home }: FileText, { lines, warnings }: FrontMatter): Reading => ({
  file,
  directory,
  home,
  lines,
  problems: [],
  warnings: [...warnings],
})

/**
 * The kind of a file by its keys: a workshop has `workshop`, `workers`, `container` or `isolation`; a profile only `sandbox`.
 * @throws SandboxError WORKER_INVALID when it cannot be parsed
 */
export function kindOf(source: FileText): FileKind {
  const keys = Object.keys(frontMatterOf(source).value)
  if (keys.some((key) => ['workshop', 'workers', 'container', 'isolation', 'allow_worker_zones'].includes(key)))
    return 'workshop'
  return isYaml(source.file) && keys.length === 1 && keys[0] === 'sandbox' ? 'profile' : 'worker'
}

/**
 * Reads a worker, agent, sub-agent, command or skill.
 * @param fallbackName name of a file without `name`; without either the file is refused as a worker
 * @throws SandboxError WORKER_INVALID with every problem of the file
 */
export function readWorker({ fallbackName, ...source }: FileText & { readonly fallbackName?: string }): Worker {
  const frontMatter = frontMatterOf(source)
  const { value, body } = frontMatter
  const reading = readingOf(source, frontMatter)
  const name = readWorkerName(reading, value['name'], fallbackName)
  const isShaped = checkShape(reading, { value, shape: workerShape, place: below('') }) !== undefined
  if (isYaml(source.file))
    warn(
      reading,
      'W_LEGACY',
      { file: source.file, key: '' },
      'a worker in pure YAML is an old form; it has no instructions.',
    )
  warnAboutUnknownKeys(reading, value)
  const sandbox = workerSandbox(reading, value)
  const tools = isShaped ? adaptTools(reading, value) : undefined
  if (reading.problems.length > 0 || tools === undefined) throw invalidWorker(reading.problems)
  const { description, model } = value
  return {
    name,
    file: source.file,
    ...(typeof description === 'string' && { description: description.trim() }),
    ...(typeof model === 'string' && { model }),
    instructions: body,
    ...tools,
    ...(sandbox !== undefined && { sandbox }),
    io: Object.fromEntries(IO_KEYS.filter((key) => value[key] !== undefined).map((key) => [key, value[key]])),
    warnings: reading.warnings,
  }
}

function readWorkerName(reading: Reading, written: unknown, fallbackName: string | undefined): string {
  if (written !== undefined && written !== null) return String(written)
  const from = { file: reading.file, key: 'name' }
  const read = fallbackName === undefined ? undefined : readName(fallbackName)
  if (read?.ok !== true) refuse(reading, from, read ?? { expected: 'the name of the worker', got: 'nothing' })
  else warn(reading, 'W_NAME', from, `it is called ${read.value} by its file; say name: ${read.value}.`)
  return fallbackName ?? ''
}

function warnAboutUnknownKeys(reading: Reading, value: Mapping): void {
  for (const key of Object.keys(value).filter((key) => !KNOWN_WORKER_KEYS.includes(key))) {
    const meant = Object.hasOwn(sandboxShape.shape, key) ? ` Did you mean sandbox.${key}?` : ''
    const message = `the key ${quoteText(key)} means nothing here and was passed over.${meant}`
    warn(reading, 'W_UNKNOWN_KEY', { ...at(reading, key), key: '' }, message)
  }
}

function workerSandbox(reading: Reading, { sandbox, sandboxes }: Mapping): SandboxRequest | undefined {
  const own = isMapping(sandbox) ? { key: 'sandbox', value: sandbox } : undefined
  const older = isMapping(sandboxes) ? { key: 'sandboxes', value: sandboxes } : undefined
  if (own === undefined && older === undefined) return undefined
  return readSandbox(reading, 'worker', [own ?? { key: 'sandboxes', value: {} }], older)
}

/**
 * Reads a workshop, nested below `workshop` or not.
 * @throws SandboxError WORKER_INVALID with every problem of the file
 */
export function readWorkshop(source: FileText): Workshop {
  const frontMatter = frontMatterOf(source)
  const reading = readingOf(source, frontMatter)
  const { workshop, ...others } = frontMatter.value
  const isNested = workshop !== undefined
  const [value, outer] = isNested ? [workshop, 'workshop'] : [frontMatter.value, '']
  for (const key of isNested ? Object.keys(others) : [])
    refuse(reading, at(reading, key), { expected: 'the key workshop alone', got: `the key ${quoteText(key)} too` })
  checkShape(reading, { value, shape: workshopShape, place: below(outer) })
  return workshopOf(reading, isMapping(value) ? value : {}, outer)
}

/** Reads a file that has only a `sandbox` section, as a workshop without workers. */
export function readProfileZones({ name, ...source }: FileText & { readonly name: string }): Workshop {
  const frontMatter = frontMatterOf(source)
  const reading = readingOf(source, frontMatter)
  const { sandbox } = frontMatter.value
  if (!isMapping(sandbox)) refuseValue(reading, 'sandbox', 'a mapping', sandbox)
  return workshopOf(reading, { name, sandbox }, '')
}

/** @param outer dotted key of the workshop */
function workshopOf(reading: Reading, value: Mapping, outer: string): Workshop {
  const { name, description, isolation, container, sandbox, workers, allow_worker_zones } = value
  const place = below(outer)
  const sections: readonly Section[] = [
    ...(isMapping(container) ? [{ key: place('container'), value: container }] : []),
    ...(isMapping(sandbox) ? [{ key: place('sandbox'), value: sandbox }] : []),
    ...(isolation === undefined ? [] : [{ key: outer, value: { isolation } }]),
  ]
  const own = sections.length === 0 ? undefined : readSandbox(reading, 'workshop', sections)
  const listed = workersOf(reading, place('workers'), workers)
  if (reading.problems.length > 0) throw invalidWorker(reading.problems)
  return {
    name: String(name),
    file: reading.file,
    ...(typeof description === 'string' && { description }),
    ...(listed !== undefined && { workers: listed }),
    ...(own !== undefined && { sandbox: own }),
    allowWorkerZones: allow_worker_zones === true,
    warnings: reading.warnings,
  }
}

function workersOf(reading: Reading, key: string, workers: unknown): readonly WorkshopWorker[] | undefined {
  if (Array.isArray(workers)) {
    const entries = workers.map((entry: unknown, index) => {
      const { name, ...narrowing } = isMapping(entry) ? entry : { name: entry }
      return workshopWorker(reading, `${key}.${index}`, name, narrowing)
    })
    for (const { name, from } of entries.filter(
      (entry, index) => index !== entries.findIndex(({ name }) => name === entry.name),
    ))
      refuse(reading, from, { expected: 'every worker once', got: `${name} again` })
    return entries
  }
  if (!isMapping(workers)) return undefined
  return Object.entries(workers).map(([name, narrowing]) =>
    workshopWorker(reading, `${key}.${name}`, name, isMapping(narrowing) ? narrowing : {}),
  )
}

function workshopWorker(reading: Reading, key: string, name: unknown, narrowing: Mapping): WorkshopWorker {
  const from = at(reading, key)
  const read = readName(name)
  if (!read.ok) refuse(reading, from, read)
  const isNarrowed = Object.keys(narrowing).length > 0
  return {
    name: String(name),
    ...(isNarrowed && { narrowing: readSandbox(reading, 'workshop', [{ key, value: narrowing }]) }),
    from,
  }
}

/** A zone after the check of its shape; size in bytes. */
type CheckedZone = ParsedZone & { readonly name: string }

function readSandbox(
  reading: Reading,
  layer: 'worker' | 'workshop',
  sections: readonly Section[],
  older?: Section,
): SandboxRequest {
  const { value, place, locations, zoneDirectory } = adaptSandbox(reading, sections, older)
  const checked = checkShape(reading, { value, shape: sandboxShape, place })
  const written = value['zones'] as readonly Mapping[]
  const zones = ((checked?.zones ?? []) as unknown as readonly CheckedZone[]).map((zone, index): ZoneRequest => {
    const advisory = Object.entries(written[index] ?? {}).filter(([key]) =>
      (ADVISORY_KEYS as readonly string[]).includes(key),
    )
    return {
      ...zoneOf(reading, zone, zoneDirectory),
      ...(advisory.length > 0 && { advisory: Object.fromEntries(advisory) }),
      from: at(reading, place(`zones.${index}`)),
    }
  })
  checkZones(reading, zones)
  const { zones: _, restrict, readonly, ...values } = value
  return {
    zones,
    layer: { layer, source: reading.file, directory: reading.directory, values: values as SandboxInput, locations },
    ...(restrict !== undefined && {
      restrict: { value: checked?.restrict ?? '', from: at(reading, place('restrict')) },
    }),
    ...(readonly !== undefined && { readonly: { value: readonly === true, from: at(reading, place('readonly')) } }),
    from: at(reading, place('')),
  }
}

/** @param directory absolute; host paths are relative to it */
function zoneOf(reading: Reading, zone: CheckedZone, directory: string): Omit<ZoneRequest, 'from'> {
  const { name, target = `/${name}`, mode = 'ro', hostPath, size, create, optional, sockets } = zone
  return {
    name,
    target,
    mode,
    ...(hostPath !== undefined && { hostPath: resolveHostPath(hostPath, { directory, home: reading.home }) }),
    ...(hostPath === undefined && mode !== 'tmpfs' && { request: true }),
    ...(size !== undefined && { size }),
    ...(create === true && { create }),
    ...(optional === true && { optional }),
    ...(sockets === true && { sockets }),
  }
}

/** Checks that the schema of one zone cannot make. */
function checkZones(reading: Reading, zones: readonly ZoneRequest[]): void {
  for (const [index, { name, target, mode, hostPath, size, advisory, from }] of zones.entries()) {
    const other = zones.slice(0, index).find((zone) => zone.name === name || zone.target === target)
    if (mode === 'tmpfs' && hostPath !== undefined)
      refuse(reading, from, { expected: 'no host path together with mode tmpfs', got: quoteText(hostPath) })
    if (mode !== 'tmpfs' && size !== undefined)
      refuse(reading, from, { expected: 'size only together with mode tmpfs', got: `mode ${mode}` })
    if (other !== undefined)
      refuse(reading, from, {
        expected: 'a name and a target of its own',
        got: other.name === name ? `a second zone named ${name}` : `${target}, where zone ${other.name} is`,
      })
    if (advisory !== undefined)
      warn(
        reading,
        'W_ADVISORY',
        from,
        `zone ${name}: ${Object.keys(advisory).join(', ')}: kept, but a mount cannot enforce it.`,
      )
  }
}
