import { describe, expect, test } from 'vitest'
import { readYaml } from '../../src/config/yaml.ts'

const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n')

test('data comes with the line of every key', () => {
  expect(readYaml('# why\na:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n')).toEqual({
    ok: true,
    value: { a: { b: 1, c: ['x', { d: 2 }] } },
    lines: { a: 2, 'a.b': 3, 'a.c': 4, 'a.c.0': 5, 'a.c.1': 6, 'a.c.1.d': 6 },
  })
})

test.each<[string, unknown]>([
  ['\ufeffa: 1\r\nb: 2\r\n', { a: 1, b: 2 }],
  ['a: yes\nb: on\nc: off\nd: no', { a: 'yes', b: 'on', c: 'off', d: 'no' }],
  ['a: true\nb: ~', { a: true, b: null }],
  ['a: &x [1]\nb: *x', { a: [1], b: [1] }],
  ['a: {__proto__: 1}', { a: JSON.parse('{"__proto__": 1}') }],
  ['<<: {a: 1}', { '<<': { a: 1 } }],
  ['', null],
])('%j is YAML 1.2', (text, value) => {
  expect(readYaml(text)).toMatchObject({ ok: true, value })
})

describe('refused with a reason', () => {
  test.each<[string, string, RegExp, number | undefined]>([
    ['a duplicate key', 'a: 1\nb: 2\na: 3', /unique/, 3],
    ['a tab as indentation', 'a:\n\tb: 1', /[Tt]ab/, 2],
    ['two documents', 'a: 1\n---\nb: 2', /multiple documents/, 2],
    ['a tag', 'a: !!js/function "x"', /tag/, 1],
    ['an open bracket', 'a: [1', /./, 1],
    ['an alias to nothing', 'a: *b', /alias/i, undefined],
    [
      'an alias bomb',
      `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [${'*a,'.repeat(9)}]\nc: &c [${'*b,'.repeat(9)}]\nd: [${'*c,'.repeat(9)}]`,
      /alias/i,
      undefined,
    ],
    ['deep brackets', `a:\n  ${'['.repeat(65)}${']'.repeat(65)}`, /nesting/, 2],
    ['deep brackets on many lines', '[\n'.repeat(500_000), /nesting/, 65],
    ['deep mappings', '{a: '.repeat(250_000), /nesting/, 1],
    ['deep lists', '- '.repeat(500_000), /nesting/, 1],
    ['explicit keys', '? '.repeat(500_000), /keys that are plain words/, 1],
    ['a list as a key', 'a: 1\n[b, c]: 2', /keys that are plain words/, undefined],
    ['a directive', '%YAML 1.1\n---\na: no', /no directives/, 1],
    ['deep indentation', lines(1_000, (index) => `${' '.repeat(index)}a:`), /nesting/, 258],
    ['a closed megabyte of brackets', '['.repeat(500_000) + ']'.repeat(500_000), /nesting/, 1],
    ['very many keys', lines(100_000, (index) => `k${index}: 1`), /words and signs/, undefined],
    ['very many quotes', '"'.repeat(1_000_000), /words and signs/, undefined],
    ['very many anchors', '&a '.repeat(300_000), /words and signs/, undefined],
  ])('%s', (_what, text, reason, line) => {
    const reading = readYaml(text)
    expect(reading).toMatchObject({ ok: false, reason: expect.stringMatching(reason) })
    if (line !== undefined) expect(reading).toMatchObject({ line })
  })
})

test('nesting that people write is read', () => {
  expect(readYaml(`a: ${'['.repeat(60)}${']'.repeat(60)}`).ok).toBe(true)
  expect(readYaml(lines(60, (index) => `${'  '.repeat(index)}a:`)).ok).toBe(true)
})

test('the nesting that is allowed and the line on which the text begins are options', () => {
  const deep = `a:\n  ${'['.repeat(33)}${']'.repeat(33)}`
  expect(readYaml(deep).ok).toBe(true)
  expect(readYaml(deep, { levels: 32, firstLine: 10 })).toMatchObject({ ok: false, line: 11 })
  expect(readYaml('a: 1\nb: 2', { firstLine: 10 })).toMatchObject({ lines: { a: 10, b: 11 } })
})

test('many values on one line are not deep', () => {
  const wide = `a: {${Array.from({ length: 40 }, (_, index) => `k${index}: ${index}`).join(', ')}}`
  expect(readYaml(wide, { levels: 32 }).ok).toBe(true)
})
