/**
 * The problems that a zod schema found in a file, in our words: key, expected, got, near miss. Pure. Profiles, workers, workshops and
 * filter files all report by it.
 */
import { z } from 'zod'
import { listWords } from '../text/choices.ts'
import { nearest } from '../text/did-you-mean.ts'
import { quoteText, quoteValue } from '../text/units.ts'

export type SchemaIssue = z.core.$ZodIssue

export interface SchemaProblem {
  /** Dotted, as the file has it: where its line is looked up. */
  readonly path: string
  /** Dotted, safe to print. */
  readonly key: string
  readonly expected: string
  readonly got: string
  /** A word that was probably meant. */
  readonly near?: string
}

export interface CheckedValue {
  readonly value: unknown
  /** The keys that a mapping at this path may have. */
  readonly keysAt: (path: readonly PropertyKey[]) => readonly string[]
  /** The key that was probably meant by an unknown one; absent: the nearest of those that are known there. */
  readonly nearKey?: (unknown: string, known: readonly string[]) => string | undefined
}

export function schemaProblems(issues: readonly SchemaIssue[], checked: CheckedValue): readonly SchemaProblem[] {
  return issues.flatMap((issue) => problemsIn(issue, checked))
}

/** ` Did you mean "rw"?`, or nothing. */
const nearQuestion = (near: string | undefined): string => (near === undefined ? '' : ` Did you mean "${near}"?`)

/** `expected ro or rw, got "wr" (string). Did you mean "rw"?` */
export const sentenceOf = ({ expected, got, near }: Pick<SchemaProblem, 'expected' | 'got' | 'near'>): string =>
  `expected ${expected}, got ${got}.${nearQuestion(near)}`

function problemsIn(issue: SchemaIssue, checked: CheckedValue): readonly SchemaProblem[] {
  if (issue.code === 'invalid_union') return problemsOfUnion(issue, checked)
  if (issue.code === 'unrecognized_keys') return unknownKeys(issue, checked)
  const key = keyOf(issue.path)
  if (issue.code === 'custom' && issue.params !== undefined) {
    // One of our readers refused the value: it names what it expected (policy/schema.ts, readBy).
    const { expected, got, near } = issue.params as Pick<SchemaProblem, 'expected' | 'got' | 'near'>
    return [{ path: key, key, expected, got, ...(near === undefined ? {} : { near }) }]
  }
  return [{ path: key, key, expected: expectedByShape(issue), got: quoteValue(valueAt(checked.value, issue.path)) }]
}

type UnionIssue = Extract<SchemaIssue, { code: 'invalid_union' }>

/** The branch whose problems lie deepest understood most of the value, so it is the one that was meant. */
function problemsOfUnion(issue: UnionIssue, checked: CheckedValue): readonly SchemaProblem[] {
  const depth = (issues: readonly SchemaIssue[]) => Math.max(...issues.map(depthOf))
  const branches = issue.errors.filter((issues) => issues.length > 0).sort((a, b) => depth(b) - depth(a))
  const [best = []] = branches
  if (best.length > 0 && depth(best) > 0)
    return best.flatMap((inner) =>
      problemsIn({ ...inner, path: [...issue.path, ...inner.path] } as SchemaIssue, checked),
    )
  const key = keyOf(issue.path)
  const expected = [...new Set(branches.flatMap((issues) => issues.slice(0, 1)).map(expectedByShape))].join(', or ')
  return [{ path: key, key, expected, got: quoteValue(valueAt(checked.value, issue.path)) }]
}

function depthOf(issue: SchemaIssue): number {
  if (issue.code === 'invalid_union') return issue.path.length + Math.max(0, ...issue.errors.flat().map(depthOf))
  return issue.path.length + (issue.code === 'unrecognized_keys' ? 1 : 0)
}

function expectedByShape(issue: SchemaIssue): string {
  if (issue.code === 'custom') return issue.message
  if (issue.code === 'too_big') return `at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`
  if (issue.code === 'too_small') return `at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`
  if (issue.code === 'invalid_value') return listWords(issue.values.map(String))
  if (issue.code !== 'invalid_type') return 'another value'
  if (issue.expected === 'array') return 'a list'
  return issue.expected === 'object' || issue.expected === 'record' ? 'a mapping' : `a ${issue.expected}`
}

const UNITS: Readonly<Record<string, string>> = { array: ' elements', string: ' characters' }

/** Unknown keys of one mapping that are each compared with the known ones. */
const MOST_UNKNOWN = 20

function unknownKeys(
  { path, keys }: Extract<SchemaIssue, { code: 'unrecognized_keys' }>,
  { keysAt, nearKey = nearest }: CheckedValue,
): readonly SchemaProblem[] {
  const known = keysAt(path)
  const expected = known.length === 0 ? 'a known key' : `one of ${known.join(', ')}`
  const named = keys.slice(0, MOST_UNKNOWN).map((unknown) => {
    const near = nearKey(unknown, known)
    const got = `the unknown key ${quoteText(unknown)}`
    const key = keyOf([...path, printable(unknown)])
    return { path: keyOf([...path, unknown]), key, expected, got, ...(near === undefined ? {} : { near }) }
  })
  const rest = keys.length - named.length
  if (rest === 0) return named
  const mapping = keyOf(path)
  return [...named, { path: mapping, key: mapping, expected: 'known keys', got: `${rest} more unknown keys` }]
}

const printable = (key: string): string => (/^[\w.-]{1,64}$/.test(key) ? key : quoteText(key))

const keyOf = (path: readonly PropertyKey[]): string => path.map(String).join('.')

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (inner, part) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<PropertyKey, unknown>)[part] : undefined,
    value,
  )

/** Walks a schema along a path, to list the keys that could stand there. */
export function keysOfSchema(schema: unknown, path: readonly PropertyKey[]): readonly string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return keysOfSchema(schema.unwrap(), path)
  if (schema instanceof z.ZodUnion)
    return schema.options.map((option) => keysOfSchema(option, path)).find((keys) => keys.length > 0) ?? []
  const [part, ...rest] = path
  if (schema instanceof z.ZodObject)
    return part === undefined ? Object.keys(schema.shape) : keysOfSchema(schema.shape[String(part)], rest)
  if (schema instanceof z.ZodArray && typeof part === 'number') return keysOfSchema(schema.element, rest)
  if (schema instanceof z.ZodRecord && typeof part === 'string') return keysOfSchema(schema.valueType, rest)
  return []
}
