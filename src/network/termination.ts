/**
 * Hosts whose TLS connections end at the terminator, because a header is added to their requests or their requests are limited: what
 * people write of it, and what the terminator goes by. Pure.
 */
import { canonicalName, parseRule, printRule } from './host-rule.ts'

// For the terminator, which imports no other file of the network.
export { canonicalName }

/** A header that is added on the host to what the command sends to one host. Says where the secret is, and never has it. */
export interface HeaderCredential {
  /** `NAME` or `NAME:PORT`. */
  readonly host: string
  readonly header: string
  /** `env:NAME` or `file:PATH`. */
  readonly from: string
  /** The header's value, with `{}` for the secret; absent = the secret itself. */
  readonly format?: string
}

export const secretFiles = (credentials: readonly HeaderCredential[] = []): readonly string[] =>
  credentials.flatMap(({ from }) => (from.startsWith('file:') ? [from.slice('file:'.length)] : []))

/** The keys of a policy's network that end TLS. */
export interface Termination {
  readonly mode: string
  readonly terminate?: boolean
  readonly credentials?: readonly HeaderCredential[]
  readonly requests?: readonly string[]
}

/* ---- hosts ---- */

const HTTPS = 443
const HTTP = 80

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** `api.example.org`, `api.example.org:8443`: one name, since a secret is for one host. */
export function parseHostPort(text: string): HostPort | undefined {
  const rule = parseRule(text)
  if (rule?.pattern.kind !== 'name' || rule.port === '*') return undefined
  return { host: rule.pattern.name, port: rule.port ?? HTTPS }
}

/** In canonical form: without the port that is meant where none is said. */
export const printHostPort = ({ host, port }: HostPort): string =>
  printRule({ pattern: { kind: 'name', name: host }, ...(port === HTTPS ? {} : { port }) })

/** True where the network ends TLS for some host. */
export const isTerminated = ({ mode, terminate, credentials = [], requests = [] }: Termination): boolean =>
  mode === 'restricted' && terminate === true && credentials.length + requests.length > 0

/** Hosts with their ports, each once. */
export function namedHosts({ credentials = [], requests = [] }: Termination): readonly HostPort[] {
  const hosts = [
    ...credentials.flatMap(({ host }) => parseHostPort(host) ?? []),
    ...requests.flatMap((text) => parseRequestRule(text) ?? []),
  ]
  return [...new Map(hosts.map(({ host, port }) => [`${host}:${port}`, { host, port }])).values()]
}

/** The hosts and ports of the terminator: also the port of plain HTTP, which it refuses. */
export function terminatedHosts(network: Termination): readonly HostPort[] {
  if (!isTerminated(network)) return []
  const named = namedHosts(network)
  const plain = [...new Set(named.map(({ host }) => host))].map((host) => ({ host, port: HTTP }))
  return [...named, ...plain.filter(({ host }) => !named.some((one) => one.host === host && one.port === HTTP))]
}

/* ---- requests ---- */

/** `GET api.example.org/org/*`: a method or `*`, a host, a path, with `*` at its end for everything that begins so. */
export interface RequestRule extends HostPort {
  readonly method: string
  readonly path: string
  readonly isPrefix: boolean
}

const REQUEST = /^(\*|[A-Z]{1,20}) ([^\s/]+)(\/[\x21-\x7e]*)$/

export function parseRequestRule(text: string): RequestRule | undefined {
  const [, method = '', host = '', written = ''] = REQUEST.exec(text) ?? []
  const place = parseHostPort(host)
  const isPrefix = written.endsWith('*')
  const path = isPrefix ? written.slice(0, -1) : written
  if (place === undefined || /[*?#]/.test(path) || !isPlainPath(path)) return undefined
  return { ...place, method, path, isPrefix }
}

export const printRequestRule = ({ method, path, isPrefix, ...place }: RequestRule): string =>
  `${method} ${printHostPort(place)}${path}${isPrefix ? '*' : ''}`

/** `.` and `..`, also in percent-encoding and with what some servers cut off a segment. */
const DOTS = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|;|$)/i
/** Characters that some servers take for a slash, or for the end of the path. */
const OTHER_SLASHES = /%2f|%5c|%00|\\|\/\//i

/** Two dots with what a server may cut off behind them, and other spellings of a dot or slash: `%u002e`, overlong, fullwidth. */
const ODD_DOTS = /(?:^|\/)\.\.[^\w./-]|(?:^|\/)\.\s|%u00(?:2e|2f|5c)|%c0%(?:ae|af)|%ef%bc%8[ef]/i
/** A path that still changes after so many decodings is refused. */
const MOST_DECODINGS = 4

/**
 * A path that means the same to every server: what one server reads as another path could not be limited. It is looked at as it is, and
 * after each decoding, since a server may decode what another one has decoded already.
 */
export function isPlainPath(path: string): boolean {
  let at = path
  for (let decodings = 0; decodings <= MOST_DECODINGS; decodings += 1) {
    if (DOTS.test(at) || OTHER_SLASHES.test(at) || ODD_DOTS.test(at)) return false
    const next = at.replace(/%([2-7][0-9a-f]|0[9ad])/gi, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
    if (next === at) return true
    at = next
  }
  return false
}

export interface RequestLine {
  readonly method: string
  /** As it is in the request. */
  readonly target: string
}

/** Whether a request to the rules' host is one of those that are allowed; without rules every one is. */
export function allowsRequest(rules: readonly RequestRule[], { method, target }: RequestLine): boolean {
  if (rules.length === 0) return true
  const [path = ''] = target.split('?')
  if (!isPlainPath(path)) return false
  return rules.some(
    (rule) =>
      (rule.method === '*' || rule.method === method) &&
      (rule.isPrefix ? path.startsWith(rule.path) : path === rule.path),
  )
}

/** Whether the header Host of a request names the host that the connection was judged for. */
export function isSameHost(header: string, { host, port }: HostPort): boolean {
  const [, name = '', written] = /^([^:]*)(?::(\d{1,5}))?$/.exec(header) ?? []
  return canonicalName(name) === host && (written === undefined || Number(written) === port)
}

/* ---- the terminator's input ---- */

/** A host with the secrets that go to it. Goes by a pipe, and nowhere else. */
export interface TerminatedHost extends HostPort {
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly requests: readonly RequestRule[]
}

/** One line on its stdin. */
export interface TerminatorSetup {
  /** Certificates that servers are verified by, as PEM. */
  readonly trust: string
  readonly hosts: readonly TerminatedHost[]
}

/** The refused requests: by method and path, for their form, as plain HTTP, or for another name than that of the connection. */
export type RefusalKind = 'request' | 'form' | 'plain' | 'name'

export interface RefusedRequest extends HostPort {
  readonly kind: RefusalKind
  /** `POST /path`, or the name. */
  readonly what: string
  readonly count: number
}

/** Lines on its stdout: when it can take connections, and at the end. */
export type TerminatorLine =
  | { readonly ca: string }
  | { readonly refused: readonly RefusedRequest[]; readonly omitted: number }
