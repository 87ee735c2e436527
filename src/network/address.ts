/** IP addresses and ranges of them, as 16 bytes: an IPv4 address is its mapped form, so both families compare alike. Pure. */

/** An address (length 128) or a range in CIDR notation. */
export interface AddressRange {
  readonly bytes: readonly number[]
  /** Leading bits that count, of 128. */
  readonly length: number
}

const MAPPED = [...Array<number>(10).fill(0), 0xff, 0xff]
const OCTET = /^(?:0|[1-9]\d{0,2})$/

/** Dotted decimal with four parts and nothing else: other spellings of IPv4 mean different things to different programs. */
function ipv4Bytes(text: string): readonly number[] | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => OCTET.test(part) && Number(part) < 256)) return undefined
  return [...MAPPED, ...parts.map(Number)]
}

/** The URL parser knows every form of IPv6 and gives one. */
function ipv6Bytes(text: string): readonly number[] | undefined {
  if (!text.includes(':') || !/^[0-9a-f:.]+$/i.test(text) || !URL.canParse(`http://[${text}]`)) return undefined
  const [head = '', tail = ''] = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::')
  const groupsOf = (part: string): readonly number[] =>
    part === '' ? [] : part.split(':').map((g) => Number.parseInt(g, 16))
  const [first, last] = [groupsOf(head), groupsOf(tail)]
  const groups = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
  return groups.flatMap((group) => [group >> 8, group & 0xff])
}

/** `192.0.2.1`, `192.0.2.0/24`, `2001:db8::1`, `2001:db8::/32`; undefined for anything else, and for a range with bits behind its length. */
export function parseRange(text: string): AddressRange | undefined {
  const [address = '', digits, more] = text.split('/')
  const bytes = ipv4Bytes(address) ?? ipv6Bytes(address)
  if (bytes === undefined || more !== undefined) return undefined
  const offset = address.includes(':') ? 0 : 96
  const length = digits === undefined ? 128 : OCTET.test(digits) ? Number(digits) + offset : -1
  const range = { bytes, length }
  return length >= offset && length <= 128 && hasNoBitsBehind(range) ? range : undefined
}

const bitAt = (bytes: readonly number[], bit: number): number => ((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1

const hasNoBitsBehind = ({ bytes, length }: AddressRange): boolean =>
  Array.from({ length: 128 - length }, (_, at) => bitAt(bytes, length + at)).every((bit) => bit === 0)

/** True when all of `inner` is in `outer`. */
export function rangeCovers(outer: AddressRange, inner: AddressRange): boolean {
  if (outer.length > inner.length) return false
  return Array.from({ length: outer.length }, (_, at) => at).every(
    (bit) => bitAt(outer.bytes, bit) === bitAt(inner.bytes, bit),
  )
}

export const isIpv4 = ({ bytes, length }: AddressRange): boolean =>
  length >= 96 && MAPPED.every((byte, at) => bytes[at] === byte)

/** Prefixes of IPv6 addresses that translators (NAT64, SIIT) or tunnels (6to4, automatic ones) take to an IPv4 address, and the byte where it is. */
const EMBEDDING = Object.entries({
  '64:ff9b::/96': 12,
  '64:ff9b:1::/48': 12,
  '::ffff:0:0:0/96': 12,
  '::/96': 12,
  '2002::/16': 2,
}).map(([text, at]) => ({ text, at }))

/** Parsed here and not at the start: a run without addresses need not wait for it. */
function isWithin(text: string, range: AddressRange): boolean {
  const prefix = parseRange(text)
  return prefix !== undefined && rangeCovers(prefix, range)
}

/** The IPv4 addresses that a range of such IPv6 addresses leads to; undefined for other ranges. */
export function embeddedRange(range: AddressRange): AddressRange | undefined {
  const form = EMBEDDING.find(({ text, at }) => range.length >= 8 * at && isWithin(text, range))
  if (form === undefined) return undefined
  const bytes = [...MAPPED, ...range.bytes.slice(form.at, form.at + 4)]
  const length = Math.min(128, 96 + range.length - 8 * form.at)
  return bytes[12] === 0 && length >= 104 ? undefined : { bytes, length } // not for 0.0.0.0/8: `::1` would be one
}

/** `192.0.2.0/24`, `2001:db8::/32`; an address without its length. */
export function printRange(range: AddressRange): string {
  const { bytes, length } = range
  if (isIpv4(range)) return bytes.slice(12).join('.') + (length === 128 ? '' : `/${length - 96}`)
  const groups = Array.from({ length: 8 }, (_, at) => ((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0))
  const text = new URL(`http://[${groups.map((group) => group.toString(16)).join(':')}]`).hostname.slice(1, -1)
  return text + (length === 128 ? '' : `/${length}`)
}
