/**
 * The operator's own proxy, by the variables that other programs read: the helper of a restricted network reaches hosts through it. Pure.
 */
import { misunderstood, type Reading, understood } from '../text/units.ts'
import { parseRange, printRange } from './address.ts'
import { canonicalName, type HostRule, parseRule, printRule } from './host-rule.ts'

/** The first one that is set counts. */
export const PROXY_VARIABLES = ['https_proxy', 'HTTPS_PROXY'] as const
const DIRECT_VARIABLES = ['no_proxy', 'NO_PROXY'] as const
/** A plan of a restricted network depends on them. */
export const UPSTREAM_VARIABLES: readonly string[] = [...PROXY_VARIABLES, ...DIRECT_VARIABLES]

type Environment = Readonly<Record<string, string | undefined>>

export interface Upstream {
  /** A name in canonical form, or an address. */
  readonly host: string
  readonly port: number
  /** Rules of hosts that are reached without it. */
  readonly direct: readonly string[]
}

interface Written {
  readonly place: Omit<Upstream, 'direct'>
  /** `user:password`, decoded; a secret. */
  readonly user: string | undefined
}

const EXPECTED = 'http://[USER:PASSWORD@]HOST[:PORT] in printable ASCII'
const DEFAULT_PORT = 80
const URL_OF_PROXY = /^(?:http:\/\/)?(?:([^@/?#]*)@)?(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?\/?$/i
const MOST_CHARACTERS = 1024

/** @returns no value in its complaint: it may hold a password */
function readProxy(text: string): Reading<Written> {
  const [, user, host = '', digits] = (text.length <= MOST_CHARACTERS && URL_OF_PROXY.exec(text)) || []
  const port = digits === undefined ? DEFAULT_PORT : Number(digits)
  const range = parseRange(host.startsWith('[') ? host.slice(1, -1) : host)
  const name = range === undefined ? canonicalName(host) : range.length === 128 ? printRange(range) : undefined
  const decoded = user === undefined ? undefined : decode(user)
  const isUsable = name !== undefined && port >= 1 && port <= 65_535 && (user === undefined || decoded !== undefined)
  return isUsable
    ? understood({ place: { host: name, port }, user: decoded })
    : misunderstood(EXPECTED, 'something else')
}

/** Control characters would end the head of a request. */
function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text)
    return /^[\x20-\x7e]+$/.test(decoded) ? decoded : undefined
  } catch {
    return undefined
  }
}

const firstOf = (env: Environment, names: readonly string[]): string | undefined =>
  names.map((name) => env[name]).find((value) => value !== undefined)

/** `example.org` and `.example.org` mean the name and all below it, as in curl. Addresses that are listed are reached directly anyway. */
function directRules(text: string): readonly string[] {
  return text.split(/[\s,]+/).flatMap((entry) => {
    const [, name = '', port] = /^(?:\*?\.)?([^:]*)(?::(\d{1,5}))?$/.exec(entry) ?? []
    const canonical = canonicalName(name)
    if (canonical === undefined) return []
    return [canonical, `*.${canonical}`].flatMap((pattern) => {
      const rule: HostRule | undefined = parseRule(`${pattern}:${port ?? '*'}`)
      return rule === undefined ? [] : [printRule(rule)]
    })
  })
}

const isOff = (text: string): boolean => text.split(/[\s,]+/).includes('*')

/** The value that counts; undefined where hosts are reached directly. */
function written(env: Environment): string | undefined {
  const text = firstOf(env, PROXY_VARIABLES)
  return text === undefined || text === '' || isOff(firstOf(env, DIRECT_VARIABLES) ?? '') ? undefined : text
}

/** The part that a plan has. @returns a complaint that repeats no value */
export function upstreamOf(env: Environment): Reading<Upstream | undefined> {
  const text = written(env)
  if (text === undefined) return understood(undefined)
  const reading = readProxy(text)
  if (!reading.ok) return reading
  return understood({ ...reading.value.place, direct: directRules(firstOf(env, DIRECT_VARIABLES) ?? '') })
}

/** For the helper alone, when the sandbox starts: what proves the user to the proxy (RFC 7617). */
export function upstreamAuthorization(env: Environment): string | undefined {
  const text = written(env)
  const reading = text === undefined ? undefined : readProxy(text)
  const user = reading?.ok === true ? reading.value.user : undefined
  return user === undefined ? undefined : Buffer.from(user.includes(':') ? user : `${user}:`).toString('base64')
}
