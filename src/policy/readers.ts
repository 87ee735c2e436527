/** Readers of the values a policy is made of, apart from sizes and times: words, names, paths, hosts. All pure. */
import { domainToASCII } from 'node:url'
import { parseRange, printRange } from '../network/address.ts'
import { canonicalName, LOCAL_NAME, LOCALHOST, parseRule, printRule } from '../network/host-rule.ts'
import { parseHostPort, parseRequestRule, printHostPort, printRequestRule } from '../network/termination.ts'
import { TOOL_NAMES, toolOf } from '../network/tools/names.ts'
import { listWords } from '../text/choices.ts'
import { nearest } from '../text/did-you-mean.ts'
import { isMapping } from '../text/json.ts'
import { type Misunderstood, misunderstood, type Reader, type Reading, understood } from '../text/units.ts'

export function oneOf<const W extends string>(words: readonly W[]): Reader<W> {
  const expected = listWords(words)
  return (value) => {
    const word = words.find((known) => known === value)
    if (word !== undefined) return understood(word)
    const near = typeof value === 'string' ? nearest(value, words) : undefined
    return { ...misunderstood(expected, value), ...(near === undefined ? {} : { near }) }
  }
}

export const readBoolean: Reader<boolean> = (value) =>
  typeof value === 'boolean' ? understood(value) : misunderstood('true or false', value)

const CONTROL = /[\u0000-\u001f\u007f]/

export const readLine: Reader<string> = (value) =>
  typeof value === 'string' && value.length > 0 && !CONTROL.test(value)
    ? understood(value)
    : misunderstood('text on one line', value)

const ZONE_NAME = /^[A-Za-z0-9._-]{1,64}$/
/** A zone's name becomes a path below `/`; ASCII only, so that no two names look alike. */
export const readZoneName: Reader<string> = (value) =>
  typeof value === 'string' && ZONE_NAME.test(value) && value !== '.' && value !== '..'
    ? understood(value)
    : misunderstood('a zone name of 1 to 64 ASCII letters, digits, "-", "_" or "."', value)

/** Longest path the kernel takes, with its NUL: PATH_MAX of linux/limits.h. */
const PATH_MAX = 4096

/** A path on the host, relative or absolute or below `~`. */
export const readHostPath: Reader<string> = (value) => {
  const isPath = typeof value === 'string' && value.length > 0 && value.length < PATH_MAX && !value.includes('\0')
  if (!isPath) return misunderstood('a path', value)
  return /^~[^/]/.test(value) ? misunderstood('a path (only ~/ stands for a home directory)', value) : understood(value)
}

/** An absolute host path without `..`. */
export const readAbsoluteHostPath: Reader<string> = (value) =>
  isNormalAbsolute(value) ? understood(value) : misunderstood('an absolute path without ".." or "//"', value)

/** A place inside the sandbox: absolute and normal; a trailing slash is taken away. */
export const readTarget: Reader<string> = (value) => {
  const text = typeof value === 'string' && value.length > 1 ? value.replace(/\/$/, '') : value
  return isNormalAbsolute(text)
    ? understood(text)
    : misunderstood('an absolute path inside the sandbox, without "..", "." or "//"', value)
}

/** A credential's place: a target, or `~/...` for below the sandbox's home. */
export const readCredentialTarget: Reader<string> = (value) => {
  if (typeof value !== 'string' || !value.startsWith('~/')) return readTarget(value)
  const reading = readTarget(value.slice(1))
  return reading.ok ? understood(`~${reading.value}`) : misunderstood(reading.expected, value)
}

/** A path inside a zone, relative to its root. */
export const readRelativePath: Reader<string> = (value) => {
  const text = typeof value === 'string' ? value.replace(/^\.\//, '').replace(/\/$/, '') : ''
  return isNormalAbsolute(`/${text}`) && text !== ''
    ? understood(text)
    : misunderstood('a path relative to the zone, without ".."', value)
}

/** A name or the last names of a path, with the signs of lib/hide.h; a slash at the end means directories. */
export const readHidePattern: Reader<string> = (value) => {
  const text = typeof value === 'string' ? value.replace(/^\.\//, '') : ''
  const words = text.replace(/\/$/, '')
  return isNormalAbsolute(`/${words}`) && words !== '' && !words.includes('**')
    ? understood(text)
    : misunderstood('a name or a relative path with * and ? in its names, such as .env*, secrets/ or config/key', value)
}

function isNormalAbsolute(value: unknown): value is string {
  if (typeof value !== 'string' || !value.startsWith('/') || CONTROL.test(value) || value.length >= PATH_MAX)
    return false
  return (
    value === '/' ||
    value
      .slice(1)
      .split('/')
      .every((part) => part !== '' && part !== '.' && part !== '..')
  )
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/
/** Names that only the sandbox itself sets, so that a program inside can believe them. */
const RESERVED_VARIABLE = /^LLM_DO_SANDBOX/

export const readVariableName: Reader<string> = (value) => {
  if (typeof value !== 'string' || !VARIABLE.test(value))
    return misunderstood('a variable name such as CI or LC_ALL', value)
  return RESERVED_VARIABLE.test(value)
    ? misunderstood('a name that does not begin with LLM_DO_SANDBOX (the sandbox sets those)', value)
    : understood(value)
}

/** A variable to take over: a name, or a prefix such as `LC_*`. All of them at once cannot be asked for. */
export const readInherited: Reader<string> = (value) => {
  if (typeof value !== 'string' || !value.endsWith('*')) return readVariableName(value)
  const reading = readVariableName(value.slice(0, -1))
  return reading.ok ? understood(value) : misunderstood('a variable name, or a prefix such as LC_*', value)
}

/** Variables with values. A value is never repeated in a message: it may be a secret. */
export const readVariables: Reader<Readonly<Record<string, string>>> = (value) => {
  if (!isMapping(value)) return misunderstood('a mapping of variable names to text', value)
  const wrong = Object.entries(value)
    .map(wrongVariable)
    .find((reading) => reading !== undefined)
  return wrong ?? understood(value as Readonly<Record<string, string>>)
}

function wrongVariable([name, value]: readonly [string, unknown]): (Reading<never> & { ok: false }) | undefined {
  const reading = readVariableName(name)
  if (!reading.ok) return reading
  if (typeof value !== 'string') {
    const got = value === null ? 'nothing' : Array.isArray(value) ? 'a list' : `a ${typeof value}`
    return { ok: false, expected: `text in quotes for ${name}`, got }
  }
  return value.includes('\0')
    ? { ok: false, expected: `text without NUL for ${name}`, got: 'text with NUL' }
    : undefined
}

const EXPECTED_HOST = 'a host such as example.com, *.example.org:443, example.com:*, 192.0.2.0/24 or [2001:db8::1]:8080'

/**
 * A rule of the network in canonical form: lower case, no final dot, A-labels for names in other alphabets, addresses in their shortest
 * form, optional port. What people read later is the A-label, since letters of two alphabets may look alike.
 */
export const readHost: Reader<string> = (value) => {
  const ascii = typeof value === 'string' ? asciiHost(value) : undefined
  const rule = ascii === undefined ? undefined : parseRule(ascii)
  if (rule !== undefined) return understood(printRule(rule))
  const near = typeof value === 'string' ? hostOfUrl(value) : undefined
  return { ...misunderstood(EXPECTED_HOST, value), ...(near !== undefined && { near }) }
}

function hostOfUrl(text: string): string | undefined {
  const host = /^[a-z]+:\/\//i.test(text) && URL.canParse(text) ? new URL(text).host : ''
  return parseRule(host) === undefined ? undefined : host
}

const FOREIGN_HOST = /^(\*\.)?([^:*[\]%/?#@\\]+)((?::(?:\*|\d+))?)$/

/** UTS 46 as browsers apply it. It also reads addresses in unusual digits, which are no name. */
function asciiHost(text: string): string | undefined {
  if (!/[^\x00-\x7f]/.test(text)) return text
  const [, below = '', host = '', port = ''] = FOREIGN_HOST.exec(text) ?? []
  const ascii = canonicalName(domainToASCII(host))
  return ascii === undefined ? undefined : `${below}${ascii}${port}`
}

const EXPECTED_PORT = `one port of this host, such as ${LOCALHOST}:8080: inside, the others are the sandbox's own`

/** An address of the loopback is one that another name may lead to. */
function readLocalhost(value: unknown): Misunderstood | undefined {
  const { pattern, port } = (typeof value === 'string' ? parseRule(value) : undefined) ?? {}
  const isWhole = pattern?.kind === 'name' && pattern.name === LOCALHOST && typeof port !== 'number'
  return isWhole ? misunderstood(EXPECTED_PORT, value) : undefined
}

/** The same, or a name for the hosts that a tool of the caller is set up for. */
export const readAllowedHost: Reader<string> = (value) => {
  const localhost = readLocalhost(value)
  if (localhost !== undefined) return localhost
  if (typeof value !== 'string' || !value.startsWith('@')) return readHost(value)
  if (toolOf(value) !== undefined) return understood(value)
  return oneOf(TOOL_NAMES)(value)
}

/** A port as a number, or as a flag has it. */
export const readPort: Reader<number> = (value) => {
  const port = typeof value === 'string' && /^\d{1,5}$/.test(value) ? Number(value) : value
  return typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535
    ? understood(port)
    : misunderstood('a port from 1 to 65535', value)
}

const EXPECTED_PUBLISHED = '[IP:]PORT[:INSIDE], such as 8080, 8080:80 or 192.0.2.7:8080:80'
const PUBLISHED = /^(?:(\d+\.\d+\.\d+\.\d+|\[[^\]]+\]):)?(\d{1,5})(?::(\d{1,5}))?$/

export interface Published {
  readonly address: string
  readonly port: number
  readonly inside: number
}

/** A port of this host for a port of the sandbox, in full: `127.0.0.1:8080:80`. */
export const readPublished: Reader<string> = (value) => {
  const published = parsePublished(String(value))
  if (published === undefined) return misunderstood(EXPECTED_PUBLISHED, value)
  const { address, port, inside } = published
  return understood(`${address.includes(':') ? `[${address}]` : address}:${port}:${inside}`)
}

export function parsePublished(text: string): Published | undefined {
  const [, ip = '127.0.0.1', port, inside = port] = PUBLISHED.exec(text) ?? []
  const ports = [port, inside].map(readPort)
  const address = readAddress(ip.replace(/^\[|\]$/g, ''))
  const [outer, inner] = ports.flatMap((reading) => (reading.ok ? [reading.value] : []))
  if (!address.ok || outer === undefined || inner === undefined) return undefined
  return { address: address.value, port: outer, inside: inner }
}

const EXPECTED_HOSTS = 'a mapping of host names to addresses, such as { db.example.org: 192.0.2.7 }'

/** Names in canonical form, addresses in their shortest. Names of this host itself are taken. */
export const readHosts: Reader<Readonly<Record<string, string>>> = (value) => {
  if (!isMapping(value)) return misunderstood(EXPECTED_HOSTS, value)
  const read = Object.entries(value).map(([name, address]) => [readOwnName(name), readAddress(address)] as const)
  const wrong = read.flat().find((reading) => !reading.ok)
  if (wrong !== undefined) return wrong as Reading<never> & { ok: false }
  return understood(Object.fromEntries(read.map((pair) => pair.map((reading) => (reading.ok ? reading.value : '')))))
}

const readOwnName: Reader<string> = (value) => {
  const reading = readHost(value)
  const rule = reading.ok ? parseRule(reading.value) : undefined
  const isFree = rule?.pattern.kind === 'name' && rule.port === undefined && !isOwnName(rule.pattern.name)
  return isFree ? reading : misunderstood('the name of another host, without a port', value)
}

const isOwnName = (name: string): boolean => name === LOCAL_NAME || name === LOCALHOST || name.endsWith('.localhost')

const readAddress: Reader<string> = (value) => {
  const range = typeof value === 'string' && !value.includes('/') ? parseRange(value) : undefined
  return range === undefined
    ? misunderstood('an address such as 192.0.2.7 or 2001:db8::1', value)
    : understood(printRange(range))
}

/** One host that a secret is for, in canonical form. */
export const readOneHost: Reader<string> = (value) => {
  const place = typeof value === 'string' ? parseHostPort(asciiHost(value) ?? '') : undefined
  return place === undefined || isOwnName(place.host)
    ? misunderstood('one host such as api.example.org or api.example.org:8443', value)
    : understood(printHostPort(place))
}

/** RFC 9110, 5.6.2. */
const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/
/** They say where a request ends and for whom it is. */
const FRAMING =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|date|proxy-.*|:.*)$/i

export const readHeaderName: Reader<string> = (value) =>
  typeof value === 'string' && HEADER.test(value) && !FRAMING.test(value)
    ? understood(value)
    : misunderstood('the name of a header such as Authorization, and none that frames a request', value)

export const readSecretSource: Reader<string> = (value) => {
  const [, kind, place] = typeof value === 'string' ? (/^(env|file):(.+)$/s.exec(value) ?? []) : []
  const isPlace = kind === 'env' ? VARIABLE.test(place ?? '') : readHostPath(place).ok && !CONTROL.test(place ?? '')
  return kind !== undefined && isPlace
    ? understood(value as string)
    : { ok: false, expected: 'env:NAME or file:PATH (the secret itself is never written here)', got: 'something else' }
}

export const readSecretFormat: Reader<string> = (value) =>
  typeof value === 'string' && /^[\x20-\x7e]{2,256}$/.test(value) && value.split('{}').length === 2
    ? understood(value)
    : { ok: false, expected: 'printable text with one {} for the secret, such as "Bearer {}"', got: 'something else' }

export const readRequest: Reader<string> = (value) => {
  const rule = typeof value === 'string' ? parseRequestRule(value) : undefined
  return rule === undefined || isOwnName(rule.host)
    ? misunderstood('METHOD HOST/PATH such as "GET api.example.org/v1/*", without dots as a segment of the path', value)
    : understood(printRequestRule(rule))
}

/** An image reference; what it names is the backend's matter, but it must not pass for an option. */
export const readImage: Reader<string> = (value) =>
  typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,511}$/.test(value)
    ? understood(value)
    : misunderstood('an image such as alpine:3.20', value)

/** The name of a profile, or the path of its file. */
export const readProfileName: Reader<string> = readLine
