/** Reads a layer by the schema and says everything that is wrong with it, one line each. Pure. */
import type { z } from 'zod'
import { quoteText, quoteValue } from '../unit.ts'
import { headOf, type PolicyLayer } from './layer.ts'
import { nearest } from './nearest.ts'
import { type SandboxSaid, SECTIONS, sandboxSchema } from './schema.ts'

export interface CheckedLayer {
  readonly layer: PolicyLayer
  /** What could be understood; keys with a problem are left out, so that later checks can still be made. */
  readonly said: SandboxSaid
  readonly problems: readonly string[]
}

type Issue = z.core.$ZodIssue

export function checkLayer(layer: PolicyLayer): CheckedLayer {
  const parsed = sandboxSchema.safeParse(layer.values)
  if (parsed.success) return { layer, said: parsed.data, problems: layer.problems ?? [] }
  const { issues } = parsed.error
  const problems = [...(layer.problems ?? []), ...issues.flatMap((issue) => problemsOf(layer, issue))]
  return { layer, said: understandRest(layer.values, issues), problems }
}

/** The layer without what was not understood: a whole zone or credential, else the smallest key. */
function understandRest(values: unknown, issues: readonly Issue[]): SandboxSaid {
  const rest = sandboxSchema.safeParse(issues.reduce<unknown>((kept, issue) => without(kept, doomed(issue)), values))
  return rest.success ? rest.data : {}
}

function doomed(issue: Issue): readonly PropertyKey[][] {
  const path = issue.path
  if (path[0] === 'zones' || path[0] === 'credentials') return [path.slice(0, 2)]
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path]
}

function without(value: unknown, paths: readonly PropertyKey[][]): unknown {
  return paths.reduce<unknown>(withoutPath, value)
}

/** A copy without one path. An element of a list becomes undefined first; `compact` below takes it out. */
function withoutPath(value: unknown, path: readonly PropertyKey[]): unknown {
  const [first, ...rest] = path
  if (first === undefined || typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value))
    return value.map((element, index) => (index === first ? withoutPath(element, rest) : element))
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => {
      if (key !== first) return [[key, inner]]
      const kept = rest.length === 0 ? undefined : withoutPath(inner, rest)
      return kept === undefined ? [] : [[key, kept]]
    }),
  )
}

function problemsOf(layer: PolicyLayer, issue: Issue): readonly string[] {
  const key = issue.path.map(String).join('.')
  const head = headOf(layer, key)
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((unknown) => unknownKey({ layer, section: issue.path, unknown }))
  if (issue.code === 'custom' && issue.params !== undefined) {
    const { expected, got, near } = issue.params as { expected: string; got: string; near?: string }
    return [`${head} expected ${expected}, got ${got}.${near === undefined ? '' : ` Did you mean "${near}"?`}`]
  }
  const value = valueAt(layer.values, issue.path)
  return [`${head} expected ${expectedByShape(issue)}, got ${quoteValue(value)}.`]
}

function expectedByShape(issue: Issue): string {
  if (issue.code !== 'invalid_type') return 'another value'
  return issue.expected === 'array' ? 'a list' : issue.expected === 'object' ? 'a mapping' : `a ${issue.expected}`
}

function unknownKey(input: {
  readonly layer: PolicyLayer
  readonly section: readonly PropertyKey[]
  readonly unknown: string
}): string {
  const known = knownKeys(String(input.section[0] ?? ''))
  const near = nearest(input.unknown, known) ?? homeOf(input.unknown)
  const key = [...input.section.map(String), printableKey(input.unknown)].join('.')
  const question = near === undefined ? '' : ` Did you mean "${near}"?`
  return `${headOf(input.layer, key)} expected one of ${known.join(', ')}, got the unknown key ${quoteText(input.unknown)}.${question}`
}

function printableKey(key: string): string {
  return /^[\w.-]{1,64}$/.test(key) ? key : quoteText(key)
}

function knownKeys(section: string): readonly string[] {
  const schema = Object.hasOwn(SECTIONS, section) ? SECTIONS[section as keyof typeof SECTIONS] : sandboxSchema
  return Object.keys(schema.shape)
}

/** A key that exists, but in another section: `memory` at the top is `resources.memory`. */
function homeOf(unknown: string): string | undefined {
  const homes = Object.entries(SECTIONS).filter(([name]) => name !== 'zones' && name !== 'credentials')
  const home = homes.find(([, schema]) => Object.hasOwn(schema.shape, unknown))
  return home === undefined ? undefined : [home[0], unknown].filter((part) => part !== '').join('.')
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, part) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<PropertyKey, unknown>)[part] : undefined,
    value,
  )
}
