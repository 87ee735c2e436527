/** Checks data against a shape and says every mistake in our words: place, key, expected, got, near miss. Pure. */
import { z } from 'zod'
import { nearest } from '../policy/nearest.ts'
import { quoteText, quoteValue } from '../unit.ts'
import type { FrontMatter } from './frontmatter.ts'
import type { Problem } from './problem.ts'

type Issue = z.core.$ZodIssue

export interface Checked {
  readonly file: string
  readonly lines: FrontMatter['lines']
  readonly value: unknown
  readonly shape: z.ZodType
  /** Dotted key of the value; empty for the whole front matter. */
  readonly key?: string
}

/** @returns nothing when the value has the shape */
export function problemsOf({ file, lines, value, shape, key = '' }: Checked): readonly Problem[] {
  const parsed = shape.safeParse(value)
  if (parsed.success) return []
  return parsed.error.issues.flatMap((issue) => problemsIn({ issue, file, lines, value, key, shape }))
}

interface Found extends Required<Checked> {
  readonly issue: Issue
}

function problemsIn(found: Found): readonly Problem[] {
  const { issue } = found
  if (issue.code === 'invalid_union') return problemsOfUnion(found)
  if (issue.code === 'unrecognized_keys') return issue.keys.map((unknown) => unknownKey(found, unknown))
  const key = keyOf(found.key, issue.path)
  const place = { file: found.file, line: lineOf(found.lines, key), key }
  if (issue.code === 'custom' && issue.params !== undefined) {
    const { expected, got, near } = issue.params as { expected: string; got: string; near?: string }
    return [{ ...place, expected, got, near }]
  }
  return [{ ...place, expected: expectedByShape(issue), got: quoteValue(valueAt(found.value, issue.path)) }]
}

/** The branch that understood most is the one that was meant: its mistakes lie deepest. */
function problemsOfUnion(found: Found): readonly Problem[] {
  const { issue } = found
  if (issue.code !== 'invalid_union') return []
  const depth = (issues: readonly Issue[]) => Math.max(...issues.map(depthOf))
  const branches = issue.errors.filter((issues) => issues.length > 0).sort((a, b) => depth(b) - depth(a))
  const [best = []] = branches
  if (best.length > 0 && depth(best) > 0) {
    return best.flatMap((inner) =>
      problemsIn({ ...found, issue: { ...inner, path: [...issue.path, ...inner.path] } as Issue }),
    )
  }
  const key = keyOf(found.key, issue.path)
  const expected = [...new Set(branches.flatMap((issues) => issues.slice(0, 1)).map(expectedByShape))].join(', or ')
  return [
    {
      file: found.file,
      line: lineOf(found.lines, key),
      key,
      expected,
      got: quoteValue(valueAt(found.value, issue.path)),
    },
  ]
}

function depthOf(issue: Issue): number {
  if (issue.code === 'invalid_union') return issue.path.length + Math.max(0, ...issue.errors.flat().map(depthOf))
  return issue.path.length + (issue.code === 'unrecognized_keys' ? 1 : 0)
}

function expectedByShape(issue: Issue): string {
  if (issue.code === 'custom') return issue.message
  if (issue.code !== 'invalid_type') return 'another value'
  if (issue.expected === 'array') return 'a list'
  return issue.expected === 'object' || issue.expected === 'record' ? 'a mapping' : `a ${issue.expected}`
}

function unknownKey(found: Found, unknown: string): Problem {
  const key = keyOf(found.key, [...found.issue.path, /^[\w.-]{1,64}$/.test(unknown) ? unknown : quoteText(unknown)])
  const line = lineOf(found.lines, keyOf(found.key, [...found.issue.path, unknown]))
  const known = knownKeys({ shape: found.shape, path: found.issue.path, value: found.value })
  const expected = known.length === 0 ? 'a known key' : `one of ${known.join(', ')}`
  return {
    file: found.file,
    line,
    key,
    expected,
    got: `the unknown key ${quoteText(unknown)}`,
    near: nearest(unknown, known),
  }
}

/** Walks the shape along a path, to list what could have stood there. */
function knownKeys(input: {
  readonly shape: unknown
  readonly path: readonly PropertyKey[]
  readonly value: unknown
}): readonly string[] {
  const { shape, path, value } = input
  if (shape instanceof z.ZodOptional || shape instanceof z.ZodNullable)
    return knownKeys({ ...input, shape: shape.unwrap() })
  if (shape instanceof z.ZodUnion) {
    return shape.options.map((option) => knownKeys({ ...input, shape: option })).find((keys) => keys.length > 0) ?? []
  }
  const [part, ...rest] = path
  if (shape instanceof z.ZodObject) {
    if (part === undefined) return Object.keys(shape.shape)
    return knownKeys({ shape: shape.shape[String(part)], path: rest, value })
  }
  if (shape instanceof z.ZodArray && typeof part === 'number')
    return knownKeys({ shape: shape.element, path: rest, value })
  if (shape instanceof z.ZodRecord && typeof part === 'string')
    return knownKeys({ shape: shape.valueType, path: rest, value })
  return []
}

export function keyOf(key: string, path: readonly PropertyKey[]): string {
  return [...(key === '' ? [] : [key]), ...path.map(String)].join('.')
}

/** The line of a key, else of the nearest key around it. */
export function lineOf(lines: FrontMatter['lines'], key: string): number | undefined {
  const parts = key.split('.')
  const around = parts.map((_, index) => parts.slice(0, parts.length - index).join('.'))
  const found = around.find((candidate) => Object.hasOwn(lines, candidate))
  return found === undefined ? undefined : lines[found]
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, part) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<PropertyKey, unknown>)[part] : undefined,
    value,
  )
}
