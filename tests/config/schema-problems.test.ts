import { expect, test } from 'vitest'
import { z } from 'zod'
import { keysOfSchema, schemaProblems, sentenceOf } from '../../src/config/schema-problems.ts'

const SCHEMA = z.strictObject({
  name: z.string(),
  zones: z
    .array(z.strictObject({ path: z.string(), mode: z.string().optional() }))
    .max(2)
    .optional(),
  rules: z.record(z.string(), z.strictObject({ allow: z.boolean() })).optional(),
  mode: z.enum(['ro', 'rw']).optional(),
  size: z.number().min(1).max(9).optional(),
  either: z.union([z.string(), z.strictObject({ inner: z.number() })]).optional(),
})

function problems(value: unknown): readonly string[] {
  const parsed = SCHEMA.safeParse(value)
  if (parsed.success) return []
  const found = schemaProblems(parsed.error.issues, { value, keysAt: (path) => keysOfSchema(SCHEMA, path) })
  return found.map((problem) => `${problem.key}: ${sentenceOf(problem)}`)
}

test.each<[string, unknown, readonly string[]]>([
  ['nothing', { name: 'x' }, []],
  ['another type', { name: 7 }, ['name: expected a string, got 7 (number).']],
  ['no mapping', ['x'], [': expected a mapping, got a list.']],
  ['no list', { name: 'x', zones: 'y' }, ['zones: expected a list, got "y" (string).']],
  [
    'too many elements',
    { name: 'x', zones: [1, 2, 3].map(() => ({ path: 'a' })) },
    ['zones: expected at most 2 elements, got a list.'],
  ],
  ['a word that is none of several', { name: 'x', mode: 'wr' }, ['mode: expected ro or rw, got "wr" (string).']],
  ['too small a number', { name: 'x', size: 0 }, ['size: expected at least 1, got 0 (number).']],
  ['too large a number', { name: 'x', size: 10 }, ['size: expected at most 9, got 10 (number).']],
  [
    'an unknown key in a list',
    { name: 'x', zones: [{ path: 'a', mod: 'b' }] },
    ['zones.0.mod: expected one of path, mode, got the unknown key "mod". Did you mean "mode"?'],
  ],
  [
    'an unknown key in a record',
    { name: 'x', rules: { a: { allow: true, 'de ny': 1 } } },
    ['rules.a."de ny": expected one of allow, got the unknown key "de ny".'],
  ],
  ['the wrong form of several', { name: 'x', either: 7 }, ['either: expected a string, or a mapping, got 7 (number).']],
  [
    'a problem inside the form that was meant',
    { name: 'x', either: { inner: 'y' } },
    ['either.inner: expected a number, got "y" (string).'],
  ],
])('%s', (_, value, expected) => {
  expect(problems(value)).toEqual(expected)
})

test('many unknown keys are counted from the twenty-first on', () => {
  const value = { name: 'x', ...Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`k${index}`, 1])) }
  expect(problems(value)).toHaveLength(21)
  expect(problems(value).at(-1)).toBe(': expected known keys, got 5 more unknown keys.')
})
