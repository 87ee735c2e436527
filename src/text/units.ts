/**
 * Sizes, times, counts and cores: the words people write and the numbers they mean.
 * A parser never throws; it answers with the value or with what was expected and what was there instead,
 * so that a caller can report every mistake of a file at once.
 */

export interface Understood<T> {
  readonly ok: true
  readonly value: T
}

export interface Misunderstood {
  readonly ok: false
  /** Completes "expected ...". */
  readonly expected: string
  /** Completes "got ...". */
  readonly got: string
  /** A word that was probably meant. */
  readonly near?: string
}

export type Reading<T> = Understood<T> | Misunderstood
/** Reads a value as YAML, JSON or a command line gives it. */
export type Reader<T> = (value: unknown) => Reading<T>

export const understood = <T>(value: T): Understood<T> => ({ ok: true, value })
export const misunderstood = (expected: string, value: unknown): Misunderstood => ({
  ok: false,
  expected,
  got: quoteValue(value),
})

/** Longest piece of foreign text that a message repeats. */
const QUOTED_LENGTH = 80

/** A value as a message shows it: its type is named, control and invisible characters are escaped, long text is cut. */
export function quoteValue(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return `${quoteText(value)} (string)`
  if (typeof value === 'object') return 'a mapping'
  return `${String(value)} (${typeof value})`
}

/** Text in double quotes on one line; everything that does not print as itself is escaped. */
export function quoteText(text: string): string {
  const cut = text.length > QUOTED_LENGTH ? `${text.slice(0, QUOTED_LENGTH)}...` : text
  return JSON.stringify(cut).replace(/[^\x20-\x7e]/gu, escapeCharacter)
}

// Letters of other scripts stay readable; controls, format characters (bidi, zero width), separators and lone surrogates do not.
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u
function escapeCharacter(character: string): string {
  return UNPRINTABLE.test(character) ? `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}` : character
}

const KIB = 1024
const SIZE_FACTORS: Readonly<Record<string, number>> = { b: 1, k: KIB, m: KIB ** 2, g: KIB ** 3, t: KIB ** 4 }
const SIZE = /^(\d{1,20}(?:\.\d{1,20})?)\s*(b|[kmgt](?:i?b)?)$/i
const EXPECTED_SIZE = 'a size such as 512m, 2G or 512MiB'

/**
 * Reads a size, 1024-based: `512m`, `2G`, `512MiB`, `1.5g`, `100b`. A number is bytes; text needs a unit, because
 * `512` may be meant as megabytes. `0` needs none.
 * @returns bytes, a whole number from 0 to 2^53 - 1
 */
export function parseSize(value: unknown): Reading<number> {
  if (typeof value === 'number') return wholeNumber(value, `${EXPECTED_SIZE}, or a whole number of bytes`)
  if (typeof value !== 'string') return misunderstood(EXPECTED_SIZE, value)
  const text = value.trim()
  if (text === '0') return understood(0)
  const match = SIZE.exec(text)
  if (match === null) return misunderstoodNumber(EXPECTED_SIZE, text, value)
  const factor = SIZE_FACTORS[(match[2] ?? '').charAt(0).toLowerCase()] ?? 1
  return exactProduct({
    amount: match[1] ?? '',
    factor,
    expected: 'a size that is a whole number of bytes below 8 PiB',
    value,
  })
}

/** The unit that a number of this size most often lacks; a few of a size may be anything. */
function unitFor(expected: string, amount: number): string | undefined {
  if (expected === EXPECTED_TIME) return amount < 1_000 ? 's' : 'ms'
  if (amount < 16) return undefined
  return amount < KIB ** 2 ? 'm' : 'b'
}

/** Most of these mistakes are a number without its unit. */
function misunderstoodNumber(expected: string, text: string, value: unknown): Misunderstood {
  const unit = /^\d{1,15}$/.test(text) ? unitFor(expected, Number(text)) : undefined
  return { ...misunderstood(expected, value), ...(unit === undefined ? {} : { near: `${text}${unit}` }) }
}

const TIME_FACTORS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const TIME = /^(\d{1,20}(?:\.\d{1,20})?)\s*(ms|s|m|h|d)$/
const EXPECTED_TIME = 'a time such as 30s, 500ms or 5m'

/**
 * Reads a time: `500ms`, `30s`, `5m`, `1.5h`, `1d`. A bare number is refused, it could be seconds or milliseconds; `0` is 0.
 * @returns whole milliseconds
 */
export function parseDuration(value: unknown): Reading<number> {
  if (value === 0 || value === '0') return understood(0)
  const match = typeof value === 'string' ? TIME.exec(value.trim()) : null
  if (match === null) return misunderstoodNumber(EXPECTED_TIME, String(value).trim(), value)
  const factor = TIME_FACTORS[match[2] ?? ''] ?? 1
  return exactProduct({
    amount: match[1] ?? '',
    factor,
    expected: 'a time that is a whole number of milliseconds',
    value,
  })
}

/** Reads a whole number from 0 on, as a number or as decimal digits. */
export function parseCount(value: unknown): Reading<number> {
  const expected = 'a whole number such as 256'
  if (typeof value === 'number') return wholeNumber(value, expected)
  if (typeof value !== 'string' || !/^\d+$/.test(value.trim())) return misunderstood(expected, value)
  const count = Number(value)
  return Number.isSafeInteger(count) ? understood(count) : misunderstood(expected, value)
}

/** Smallest and largest number of cores that can be asked for; the kernel's cpu.max cannot divide much finer. */
export const CPUS_RANGE = { least: 0.01, most: 1024 } as const

/** Reads a number of cores: `2`, `0.5`, `"1.5"`. */
export function parseCpus(value: unknown): Reading<number> {
  const expected = `a number of cores from ${CPUS_RANGE.least} to ${CPUS_RANGE.most}, such as 2 or 0.5`
  const isDecimal = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value.trim())
  const cpus = typeof value === 'number' ? value : isDecimal ? Number(value) : Number.NaN
  return cpus >= CPUS_RANGE.least && cpus <= CPUS_RANGE.most ? understood(cpus) : misunderstood(expected, value)
}

/** Lets words such as `none` stand for "no limit", read as null. */
export function orNone<T>(read: Reader<T>, words: readonly string[] = ['none', 'unlimited']): Reader<T | null> {
  return (value) => {
    if (typeof value === 'string' && words.includes(value.trim().toLowerCase())) return understood(null)
    const reading = read(value)
    return reading.ok ? reading : { ...reading, expected: `${reading.expected}, or ${words[0] ?? 'none'}` }
  }
}

/** Narrows a reader of numbers to a range; `null` (no limit) passes. */
export function within<T extends number | null>(
  read: Reader<T>,
  { least, most, expected }: { readonly least: number; readonly most: number; readonly expected: string },
): Reader<T> {
  return (value) => {
    const reading = read(value)
    if (!reading.ok || reading.value === null) return reading
    return reading.value >= least && reading.value <= most ? reading : misunderstood(expected, value)
  }
}

/** Bytes in the largest unit that keeps at least one before the point: `512MiB`, `3.1MiB`, `0B`. */
export function formatSize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
  const power = bytes < KIB ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1)
  return `${oneDecimal(bytes / KIB ** power)}${units[power] ?? 'B'}`
}

/** Bytes as a flag takes them, exactly, in the largest unit: `1g`, `100m`, `4k`, `100b`. */
export function sizeWord(bytes: number): string {
  const unit = (['t', 'g', 'm', 'k'] as const).find((one) => bytes > 0 && bytes % (SIZE_FACTORS[one] ?? 1) === 0) ?? 'b'
  return `${bytes / (SIZE_FACTORS[unit] ?? 1)}${unit}`
}

/** Milliseconds in the largest unit that says them exactly, else with one decimal: `30s`, `1.5s`, `10m`, `500ms`. */
export function formatDuration(ms: number): string {
  const exact = (['d', 'h', 'm', 's'] as const).find((unit) => ms > 0 && ms % (TIME_FACTORS[unit] ?? 1) === 0)
  if (exact !== undefined) return `${ms / (TIME_FACTORS[exact] ?? 1)}${exact}`
  return ms < 1_000 ? `${oneDecimal(ms)}ms` : `${oneDecimal(ms / 1_000)}s`
}

/** How long ago, in the largest unit that is full: `12s`, `3m`, `2h`, `4d`. */
export function formatAge(ms: number): string {
  const unit = (['d', 'h', 'm'] as const).find((one) => ms >= (TIME_FACTORS[one] ?? 1)) ?? 's'
  return `${Math.max(0, Math.floor(ms / (TIME_FACTORS[unit] ?? 1)))}${unit}`
}

function oneDecimal(value: number): string {
  return String(Math.round(value * 10) / 10)
}

function wholeNumber(value: number, expected: string): Reading<number> {
  return Number.isSafeInteger(value) && value >= 0 ? understood(value) : misunderstood(expected, value)
}

/** Multiplies in thousandths where that is exact: 1.1 seconds is 1100 milliseconds, whatever 1.1 is in binary. */
function exactProduct(input: {
  readonly amount: string
  readonly factor: number
  readonly expected: string
  readonly value: unknown
}): Reading<number> {
  const [whole = '', fraction = ''] = input.amount.split('.')
  const scale = 10n ** BigInt(fraction.length)
  const product = BigInt(whole + fraction) * BigInt(input.factor)
  const isExact = product % scale === 0n && product / scale <= BigInt(Number.MAX_SAFE_INTEGER)
  return isExact ? understood(Number(product / scale)) : misunderstood(input.expected, input.value)
}
