/** Readers of the values a policy is made of, apart from sizes and times: words, names, paths, hosts. All pure. */
import { domainToASCII } from 'node:url'
import { listWords } from '../text/choices.ts'
import { nearest } from '../text/did-you-mean.ts'
import { misunderstood, quoteText, type Reader, type Reading, understood } from '../text/units.ts'

/** One of some words. */
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

/** Text on one line. */
export const readLine: Reader<string> = (value) =>
  typeof value === 'string' && value.length > 0 && !CONTROL.test(value)
    ? understood(value)
    : misunderstood('text on one line', value)

/** Text of any kind but NUL, which no C string can carry. */
export const readText: Reader<string> = (value) =>
  typeof value === 'string' && !value.includes('\0') ? understood(value) : misunderstood('text without NUL', value)

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

/** The name of an environment variable. */
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
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return misunderstood('a mapping of variable names to text', value)
  }
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

const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/
const EXPECTED_HOST = 'a host such as example.com, *.example.org, example.com:443 or [::1]:8080'

/** A host pattern in canonical form: lower case, no final dot, ASCII only, optional port. */
export const readHost: Reader<string> = (value) => {
  if (typeof value !== 'string') return misunderstood(EXPECTED_HOST, value)
  const match = /^(\[[0-9A-Fa-f:.]{2,45}\]|[^:\s/@[\]]{1,255})(?::(\d{1,5}))?$/.exec(value)
  if (match === null || !isPort(match[2])) return misunderstood(EXPECTED_HOST, value)
  const host = (match[1] ?? '').toLowerCase().replace(/\.$/, '')
  if (/[^\x20-\x7e]/.test(host)) return foreignHost(host, value)
  const isLiteral = host.startsWith('[')
  const labels = host.replace(/^\*\./, '').split('.')
  if (!isLiteral && !labels.every((label) => LABEL.test(label))) return misunderstood(EXPECTED_HOST, value)
  return understood(match[2] === undefined ? host : `${host}:${Number(match[2])}`)
}

function isPort(digits: string | undefined): boolean {
  return digits === undefined || (Number(digits) >= 1 && Number(digits) <= 65_535)
}

/** Letters outside ASCII may look like others: the writer has to say which host is meant, in the form that DNS sees. */
function foreignHost(host: string, value: string): Reading<string> {
  const ascii = domainToASCII(host.replace(/^\*\./, ''))
  return misunderstood(`an ASCII host name${ascii === '' ? '' : ` (DNS would see ${quoteText(ascii)})`}`, value)
}

/** An image reference; what it names is the backend's matter, but it must not pass for an option. */
export const readImage: Reader<string> = (value) =>
  typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,511}$/.test(value)
    ? understood(value)
    : misunderstood('an image such as alpine:3.20', value)

/** The name of a profile, or the path of its file. */
export const readProfileName: Reader<string> = readLine
