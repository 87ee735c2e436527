/** Reads a layer by the schema and reports everything that is wrong with it, one line each. Pure. */
import { type SchemaIssue, schemaProblems, sentenceOf } from '../config/schema-problems.ts'
import { nearest } from '../text/did-you-mean.ts'
import { KEY_ROWS } from './key-table.ts'
import { KEYS, type ParsedSandbox } from './keys/index.ts'
import { isSection, type Key, type Section } from './keys/key.ts'
import { headOf, type PolicyLayer } from './layer.ts'
import { parseSandbox, SECTIONS, sandboxSchema } from './schema.ts'

export interface CheckedLayer {
  readonly layer: PolicyLayer
  /** Everything that was understood; keys with a problem are left out, so that later checks can still be made. */
  readonly parsed: ParsedSandbox
  readonly problems: readonly string[]
}

export function checkLayer(written: PolicyLayer): CheckedLayer {
  const layer = withNewNames(written)
  const result = parseSandbox(layer.values)
  if (result.success) return { layer, parsed: withEngine(result.data), problems: layer.problems ?? [] }
  const { issues } = result.error
  const problems = [...(layer.problems ?? []), ...problemsOf(layer, issues)]
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
  const old = Object.entries(layer.locations ?? {}).filter(([key]) => Object.hasOwn(RENAMED, key))
  if (old.length === 0) return layer
  return {
    ...layer,
    locations: { ...Object.fromEntries(old.map(([key, location]) => [RENAMED[key], location])), ...layer.locations },
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
function parseRest(values: unknown, issues: readonly SchemaIssue[]): ParsedSandbox {
  const paths = issues.flatMap(doomed)
  if (paths.length > MOST_MISTAKES) return {}
  const rest = parseSandbox(paths.reduce(without, values))
  return rest.success ? rest.data : {}
}

function doomed({ path, ...issue }: SchemaIssue): readonly (readonly PropertyKey[])[] {
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

function problemsOf(layer: PolicyLayer, issues: readonly SchemaIssue[]): readonly string[] {
  const found = schemaProblems(issues, { value: layer.values, keysAt, nearKey })
  return found.map((problem) => `${headOf(layer, problem.key)} ${sentenceOf(problem)}`)
}

/** zod does not see through every key (renamed keys, words that stand for mappings), so the sections are looked up by name. */
function keysAt([section]: readonly PropertyKey[]): readonly string[] {
  const name = String(section ?? '')
  const schema = Object.hasOwn(SECTIONS, name) ? SECTIONS[name] : undefined
  return Object.keys((schema ?? sandboxSchema).shape)
}

const nearKey = (unknown: string, known: readonly string[]): string | undefined =>
  homeOf(unknown) ?? nearest(unknown, known) ?? nearestHome(unknown)

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
