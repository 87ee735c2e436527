/** What is wrong with the data of a worker or workshop file, each problem with its place in the file. Pure. */
import type { z } from 'zod'
import { keysOfSchema, schemaProblems } from '../config/schema-problems.ts'
import type { KeyLines } from '../config/yaml.ts'
import type { Problem } from './problem.ts'

export interface CheckedSection {
  readonly file: string
  readonly lines: KeyLines
  readonly value: unknown
  readonly shape: z.ZodType
  /** Dotted key of the value; empty for the whole front matter. */
  readonly key?: string
}

/** @returns nothing when the value has the shape */
export function problemsOf({ file, lines, value, shape, key = '' }: CheckedSection): readonly Problem[] {
  const parsed = shape.safeParse(value)
  if (parsed.success) return []
  const found = schemaProblems(parsed.error.issues, { value, keysAt: (path) => keysOfSchema(shape, path) })
  return found.map(({ path, ...problem }) => ({
    ...problem,
    file,
    line: lineOf(lines, below(key, path)),
    key: below(key, problem.key),
  }))
}

const below = (outer: string, inner: string): string => [outer, inner].filter((key) => key !== '').join('.')

/** The line of a key, else of the nearest key around it. */
export function lineOf(lines: KeyLines, key: string): number | undefined {
  const parts = key.split('.')
  const around = parts.map((_, index) => parts.slice(0, parts.length - index).join('.'))
  const found = around.find((candidate) => Object.hasOwn(lines, candidate))
  return found === undefined ? undefined : lines[found]
}
