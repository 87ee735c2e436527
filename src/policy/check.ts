/** Reads a layer by the schema and says everything that is wrong with it, one line each. Pure. */
import type { z } from 'zod'
import { quoteText, quoteValue } from '../unit.ts'
import { KEY_ROWS } from './key-table.ts'
import { KEYS, type ParsedSandbox } from './keys/index.ts'
import { isSection, type Key, type Section } from './keys/key.ts'
import { headOf, type PolicyLayer } from './layer.ts'
import { nearest } from './nearest.ts'
import { parseSandbox, SECTIONS, sandboxSchema } from './schema.ts'

export interface CheckedLayer {
  readonly layer: PolicyLayer
  /** What could be understood; keys with a problem are left out, so that later checks can still be made. */
  readonly parsed: ParsedSandbox
  readonly problems: readonly string[]
}

type Issue = z.core.$ZodIssue

export function checkLayer(written: PolicyLayer): CheckedLayer {
  const layer = withNewNames(written)
  const result = parseSandbox(layer.values)
  if (result.success) return { layer, parsed: withEngine(result.data), problems: layer.problems ?? [] }
  const { issues } = result.error
  const problems = [...(layer.problems ?? []), ...issues.flatMap((issue) => problemsOf(layer, issue))]
  return { layer, parsed: withEngine(parseRest(layer.values, issues)), problems }
}

/** Old name -> new one, dotted. */
const RENAMED: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(KEYS as Readonly<Record<string, Key | Section>>).flatMap(([name, entry]) =>
    isSection(entry) ? Object.entries(entry.renamed).map(([old, now]) => [`${name}.${old}`, `${name}.${now}`]) : [],
  ),
)

/** Places are looked up by the names of today. */
function withNewNames(layer: PolicyLayer): PolicyLayer {
  const old = Object.entries(layer.places ?? {}).filter(([key]) => Object.hasOwn(RENAMED, key))
  if (old.length === 0) return layer
  return {
    ...layer,
    places: { ...Object.fromEntries(old.map(([key, place]) => [RENAMED[key], place])), ...layer.places },
  }
}

/** An alias such as `backend: bwrap` also chooses the engine. */
function withEngine(parsed: ParsedSandbox): ParsedSandbox {
  const engine = parsed.engine ?? parsed.backend?.engine
  return engine === undefined ? parsed : { ...parsed, engine }
}

/** With more mistakes than this nothing else in the layer is worth a look. */
const MOST_MISTAKES = 100

/** The layer without what was not understood: the smallest key or, where it is in a list, the whole list; of zones only the one. */
function parseRest(values: unknown, issues: readonly Issue[]): ParsedSandbox {
  const paths = issues.flatMap(doomed)
  if (paths.length > MOST_MISTAKES) return {}
  const rest = parseSandbox(paths.reduce(without, values))
  return rest.success ? rest.data : {}
}

function doomed({ path, ...issue }: Issue): readonly (readonly PropertyKey[])[] {
  if (path[0] === 'zones' && path.length > 1) return [path.slice(0, 2)]
  const inList = path.findIndex((part) => typeof part === 'number')
  if (inList > 0) return [path.slice(0, inList)]
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path]
}

/** A copy without one path. A zone leaves an empty one, so that the others keep their positions. */
function without(value: unknown, path: readonly PropertyKey[]): unknown {
  const [first, ...rest] = path
  if (Array.isArray(value)) return value.map((element, index) => (index === first ? {} : element))
  if (typeof value !== 'object' || value === null) return {}
  const entries = Object.entries(value).filter(([key]) => key !== first || rest.length > 0)
  return Object.fromEntries(entries.map(([key, inner]) => [key, key === first ? without(inner, rest) : inner]))
}

function problemsOf(layer: PolicyLayer, issue: Issue): readonly string[] {
  const key = issue.path.map(String).join('.')
  const head = headOf(layer, key)
  if (issue.code === 'unrecognized_keys') return unknownKeys({ layer, section: issue.path, keys: issue.keys })
  if (issue.code === 'custom' && issue.params !== undefined) {
    const { expected, got, near } = issue.params as { expected: string; got: string; near?: string }
    return [`${head} expected ${expected}, got ${got}.${near === undefined ? '' : ` Did you mean "${near}"?`}`]
  }
  const value = valueAt(layer.values, issue.path)
  return [`${head} expected ${expectedByShape(issue)}, got ${quoteValue(value)}.`]
}

function expectedByShape(issue: Issue): string {
  if (issue.code === 'too_big') return `at most ${issue.maximum} elements`
  if (issue.code !== 'invalid_type') return 'another value'
  return issue.expected === 'array' ? 'a list' : issue.expected === 'object' ? 'a mapping' : `a ${issue.expected}`
}

/** Unknown keys of one section that are each compared with the known ones. */
const MOST_UNKNOWN = 20

function unknownKeys(input: {
  readonly layer: PolicyLayer
  readonly section: readonly PropertyKey[]
  readonly keys: readonly string[]
}): readonly string[] {
  const { layer, section, keys } = input
  const rest = keys.length - MOST_UNKNOWN
  const named = keys.slice(0, MOST_UNKNOWN).map((unknown) => unknownKey({ layer, section, unknown }))
  return rest > 0 ? [...named, `${headOf(layer, section.map(String).join('.'))} and ${rest} more unknown keys.`] : named
}

function unknownKey(input: {
  readonly layer: PolicyLayer
  readonly section: readonly PropertyKey[]
  readonly unknown: string
}): string {
  const known = knownKeys(String(input.section[0] ?? ''))
  const near = homeOf(input.unknown) ?? nearest(input.unknown, known) ?? nearestHome(input.unknown)
  const key = [...input.section.map(String), printableKey(input.unknown)].join('.')
  const question = near === undefined ? '' : ` Did you mean "${near}"?`
  return `${headOf(input.layer, key)} expected one of ${known.join(', ')}, got the unknown key ${quoteText(input.unknown)}.${question}`
}

function printableKey(key: string): string {
  return /^[\w.-]{1,64}$/.test(key) ? key : quoteText(key)
}

function knownKeys(section: string): readonly string[] {
  const schema = Object.hasOwn(SECTIONS, section) ? SECTIONS[section] : undefined
  return Object.keys((schema ?? sandboxSchema).shape)
}

/** A key that exists, but in another section: `memory` at the top is `resources.memory`. */
function homeOf(unknown: string): string | undefined {
  return HOMES.find(({ name }) => name === unknown)?.key
}

function nearestHome(unknown: string): string | undefined {
  const near = nearest(
    unknown,
    HOMES.map(({ name }) => name),
  )
  return near === undefined ? undefined : homeOf(near)
}

/** Keys with their dotted names, those of list elements aside. */
const HOMES: readonly { readonly name: string; readonly key: string }[] = KEY_ROWS.filter(
  ({ key }) => !key.includes('['),
).map(({ key }) => ({
  name: key.split('.').at(-1) ?? key,
  key,
}))

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, part) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<PropertyKey, unknown>)[part] : undefined,
    value,
  )
}
