/**
 * One worker or workshop file while it is read: where its keys are, and what is wrong with it so far. Pure.
 * Problems and warnings are collected in the reading and not returned by each function: a file reports all of them together.
 */
import type { z } from 'zod'
import { keysOfSchema, schemaProblems } from '../config/schema-problems.ts'
import type { KeyLines } from '../config/yaml.ts'
import { nearestTo } from '../policy/layer.ts'
import { quoteValue } from '../text/units.ts'
import type { Problem } from './problem.ts'
import type { SourceLocation, Warning, WarningCode } from './worker.ts'

export interface Reading {
  /** As messages show it. */
  readonly file: string
  /** Absolute; host paths are relative to it. */
  readonly directory: string
  /** Replaces `~`; absolute, or empty when there is none. */
  readonly home: string
  readonly lines: KeyLines
  readonly problems: Problem[]
  readonly warnings: Warning[]
}

/** The place of a dotted key. */
export const at = ({ file, lines }: Reading, key: string): SourceLocation => ({
  file,
  line: nearestTo(key, lines),
  key,
})

export function refuse(
  { problems }: Reading,
  from: SourceLocation,
  { expected, got }: Pick<Problem, 'expected' | 'got'>,
) {
  problems.push({ ...from, expected, got })
}

export const refuseValue = (reading: Reading, key: string, expected: string, value: unknown): void =>
  refuse(reading, at(reading, key), { expected, got: quoteValue(value) })

export function warn({ warnings }: Reading, code: WarningCode, from: SourceLocation, message: string): void {
  warnings.push({ code, ...from, message })
}

/**
 * Checks a value against a shape.
 * @param place dotted key inside the value -> dotted key of the file
 * @returns what the shape reads, or undefined after noting every problem
 */
export function checkShape<Output>(
  reading: Reading,
  {
    value,
    shape,
    place,
  }: { readonly value: unknown; readonly shape: z.ZodType<Output>; readonly place: (key: string) => string },
): Output | undefined {
  const parsed = shape.safeParse(value)
  if (parsed.success) return parsed.data
  const found = schemaProblems(parsed.error.issues, { value, keysAt: (path) => keysOfSchema(shape, path) })
  for (const { path, key, ...problem } of found)
    reading.problems.push({ ...problem, ...at(reading, place(path)), key: place(key) })
  return undefined
}

/** For a value that the file has below a key; empty for the whole front matter. */
export const below = (outer: string) => (inner: string) => [outer, inner].filter((key) => key !== '').join('.')
