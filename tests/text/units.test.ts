import { describe, expect, test } from 'vitest'
import {
  formatAge,
  formatDuration,
  formatSize,
  orNone,
  parseCount,
  parseCpus,
  parseDuration,
  parseSize,
  quoteText,
  quoteValue,
  type Reading,
  within,
} from '../../src/text/units.ts'

const MIB = 1024 ** 2

function mustRead<T>(reading: Reading<T>): T {
  if (!reading.ok) throw new Error(`expected ${reading.expected}, got ${reading.got}`)
  return reading.value
}

describe('a size', () => {
  const sizes = { '512m': 512 * MIB, '512M': 512 * MIB, '512MiB': 512 * MIB, '512mb': 512 * MIB, '2G': 2147483648 }
  const others = {
    '64k': 65536,
    '1.5g': 1610612736,
    '100b': 100,
    '0': 0,
    '1t': 1024 ** 4,
    ' 5m ': 5 * MIB,
    '0.5k': 512,
  }
  test.each([...Object.entries({ ...sizes, ...others }), [536870912, 536870912], [0, 0]])(
    '%j is %d bytes, 1024-based',
    (text, bytes) => {
      expect(mustRead(parseSize(text))).toBe(bytes)
    },
  )

  const words = '512|-1m|1.1b|0.3k|m||9007199254740992b|9999999t|1e3m|0x10m|5s|٣m'.split('|')
  test.each<[unknown, string]>([
    ...words.map((word): [string, string] => [word, `"${word}" (string)`]),
    ...[-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53].map((n): [number, string] => [n, `${n} (number)`]),
    [null, 'nothing'],
    [undefined, 'nothing'],
    [[], 'a list'],
    [{}, 'a mapping'],
    [true, 'true (boolean)'],
  ])('%j is refused, and the refusal says what was there', (value, got) => {
    expect(parseSize(value)).toMatchObject({ ok: false, got, expected: expect.stringContaining('a size') })
  })

  test('the largest size is the largest whole number that is exact', () => {
    expect(mustRead(parseSize('9007199254740991b'))).toBe(Number.MAX_SAFE_INTEGER)
  })

  test.each<[number, string]>([
    [0, '0B'],
    [1023, '1023B'],
    [1024, '1KiB'],
    [512 * MIB, '512MiB'],
    [3.1 * MIB, '3.1MiB'],
    [2147483648, '2GiB'],
    [1024 ** 5, '1024TiB'],
  ])('%d bytes are written %s', (bytes, text) => {
    expect(formatSize(bytes)).toBe(text)
  })
})

describe('a time', () => {
  const times = { '30s': 30_000, '500ms': 500, '5m': 300_000, '1h': 3_600_000, '1d': 86_400_000, '1.5s': 1_500, '0': 0 }
  test.each<[string | number, number]>([...Object.entries(times), ['1.1s', 1_100], [0, 0]])(
    '%j is %d milliseconds',
    (text, ms) => {
      expect(mustRead(parseDuration(text))).toBe(ms)
    },
  )

  test.each([30, '30', '-5s', '0.5ms', '1S', '5 minutes', '', 's', '1m30s', null, [], '99999999999999999999d'])(
    '%j is refused',
    (value) => {
      expect(parseDuration(value)).toMatchObject({ ok: false, expected: expect.stringContaining('a time') })
    },
  )

  test.each<[number, string]>([
    [0, '0ms'],
    [500, '500ms'],
    [30_000, '30s'],
    [1_500, '1.5s'],
    [600_000, '10m'],
    [3_600_000, '1h'],
    [86_400_000, '1d'],
    [812.44, '812.4ms'],
    [90_000, '90s'],
  ])('%d milliseconds are written %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })
})

describe('a number', () => {
  test.each<[unknown, number]>([
    ['256', 256],
    [256, 256],
    [0, 0],
    ['007', 7],
  ])('of things: %j is %d', (value, count) => {
    expect(mustRead(parseCount(value))).toBe(count)
  })

  test.each([-1, 1.5, '1.5', '-1', 'many', '', '1e3', 2 ** 53, '9007199254740993', null])(
    'of things: %j is refused',
    (value) => {
      expect(parseCount(value).ok).toBe(false)
    },
  )

  test.each<[unknown, number]>([
    [2, 2],
    ['2.0', 2],
    [0.5, 0.5],
    ['0.01', 0.01],
    [1024, 1024],
  ])('of cores: %j is %d', (value, cpus) => {
    expect(mustRead(parseCpus(value))).toBe(cpus)
  })

  test.each([0, -1, 0.009, 1025, Number.NaN, '1,5', 'two', '', null, '1e3'])('of cores: %j is refused', (value) => {
    expect(parseCpus(value).ok).toBe(false)
  })

  test.each(['none', 'unlimited', 'None'])('that may be absent is absent for %j', (word) => {
    expect(mustRead(orNone(parseSize)(word))).toBeNull()
  })

  test('that may be absent says so when it is refused', () => {
    expect(orNone(parseSize)('512')).toMatchObject({ expected: 'a size such as 512m, 2G or 512MiB, or none' })
  })

  test('outside its range is refused with the range', () => {
    const read = within(orNone(parseCount), { least: 3, most: 5, expected: 'from 3 to 5' })
    expect([2, 6].map((value) => read(value))).toEqual([
      { ok: false, expected: 'from 3 to 5', got: '2 (number)' },
      { ok: false, expected: 'from 3 to 5', got: '6 (number)' },
    ])
    expect([3, 5, 'none'].map((value) => read(value).ok)).toEqual([true, true, true])
  })
})

describe('a value in a message', () => {
  test.each<[string, string]>([
    ['a\u001b[31mb', '"a\\u001b[31mb"'],
    ['a\nb', '"a\\nb"'],
    ['\u202eevil', '"\\u{202e}evil"'],
    ['a\u200bb', '"a\\u{200b}b"'],
    ['\u0085', '"\\u{85}"'],
    ['\0', '"\\u0000"'],
    ['grün', '"grün"'],
    ['\u2028', '"\\u{2028}"'],
  ])('%j shows nothing that acts on a terminal or hides', (text, quoted) => {
    expect(quoteText(text)).toBe(quoted)
  })

  test('is cut when it is long', () => {
    expect(quoteValue('x'.repeat(500)).length).toBeLessThan(110)
  })
})

test.each([
  [-5, '0s'],
  [999, '0s'],
  [59_999, '59s'],
  [60_000, '1m'],
  [3_599_999, '59m'],
  [90_000_000, '1d'],
])('an age of %i ms is %s', (ms, text) => {
  expect(formatAge(ms)).toBe(text)
})

test.each([
  [parseSize, '512', '512m'],
  [parseSize, '1073741824', '1073741824b'],
  [parseSize, '4', undefined],
  [parseDuration, '10', '10s'],
  [parseDuration, 1500, '1500ms'],
] as const)('a number without its unit is answered with one: %o of %j is near %j', (parse, value, near) => {
  expect(parse(value)).toMatchObject({ ok: false, ...(near === undefined ? {} : { near }) })
  expect('near' in parse(value)).toBe(near !== undefined)
})
