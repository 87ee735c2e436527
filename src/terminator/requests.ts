/** The fields of a request that pass to the server, and the requests that are refused. Pure. */
import type { IncomingMessage } from 'node:http'
import { allowsRequest, isSameHost, type RefusalKind, type TerminatedHost } from '../network/termination.ts'

export type Request = Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders' | 'httpVersionMajor' | 'httpVersionMinor'>

export interface Refusal {
  readonly kind: RefusalKind
  /** `POST /path`, or the name that was meant. */
  readonly what: string
  readonly status: number
  /** One line, for the client. */
  readonly why: string
}

type Field = readonly [name: string, value: string]

export const fieldsOf = (raw: readonly string[]): readonly Field[] =>
  raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] ?? ''] as const] : []))

const valuesOf = (fields: readonly Field[], wanted: string): readonly string[] =>
  fields.flatMap(([name, value]) => (name.toLowerCase() === wanted ? [value] : []))

/** Fields about a connection, and not a request (RFC 9110, 7.6.1); the lengths follow from how the body is written again. */
const HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'http2-settings',
])

const isHop = (fields: readonly Field[]): ((name: string) => boolean) => {
  const named = valuesOf(fields, 'connection').flatMap((value) => value.split(','))
  const names = new Set([...HOP, ...named.map((name) => name.trim().toLowerCase())])
  // Whatever Connection says, the host and the length of a message are not the connection's.
  for (const kept of ['host', 'content-length', 'transfer-encoding']) names.delete(kept)
  return (name) => names.has(name)
}

/** Why a request does not go on; undefined when it does. */
export function refusalOf(request: Request, host: TerminatedHost): Refusal | undefined {
  const { method = '', url = '', rawHeaders } = request
  const fields = fieldsOf(rawHeaders)
  const hosts = valuesOf(fields, 'host')
  const [named = ''] = hosts
  const what = shown(`${method} ${url.split('?')[0]}`)
  if (hosts.length !== 1 || !isSameHost(named, host))
    return {
      kind: 'name',
      what: shown(`Host ${named}`),
      status: 421,
      why: `the connection is for ${host.host}, and the request is for ${shown(hosts.join(', '))}`,
    }
  const lengths = valuesOf(fields, 'content-length')
  const encodings = valuesOf(fields, 'transfer-encoding')
  const isFramed = lengths.length + encodings.length <= 1 && encodings.every((one) => one.toLowerCase() === 'chunked')
  if (!isFramed)
    return { kind: 'form', what, status: 400, why: 'the length of the request is said in more than one way' }
  if (request.httpVersionMajor !== 1 || !url.startsWith('/') || url.includes('#'))
    return { kind: 'form', what, status: 400, why: 'expected HTTP/1 and a path' }
  // It would send the secret back.
  if (method === 'TRACE' || method === 'CONNECT')
    return { kind: 'form', what, status: 405, why: `${method} is not passed on` }
  if (allowsRequest(host.requests, { method, target: url })) return undefined
  return { kind: 'request', what, status: 403, why: `network.requests does not allow ${what} on ${host.host}` }
}

export function hasBody({ rawHeaders }: Pick<Request, 'rawHeaders'>): boolean {
  const fields = fieldsOf(rawHeaders)
  return valuesOf(fields, 'content-length').length + valuesOf(fields, 'transfer-encoding').length > 0
}

/** The same for one that changes the protocol: any other than this one could carry requests that are not judged. */
export function upgradeRefusalOf(request: Request, host: TerminatedHost): Refusal | undefined {
  const refusal = refusalOf(request, host)
  if (refusal !== undefined) return refusal
  const fields = fieldsOf(request.rawHeaders)
  const [protocol = '', ...more] = valuesOf(fields, 'upgrade')
  const isWebSocket = request.method === 'GET' && protocol.trim().toLowerCase() === 'websocket' && more.length === 0
  if (isWebSocket && !hasBody(request)) return undefined
  return {
    kind: 'form',
    what: shown(`Upgrade ${protocol}`),
    status: 403,
    why: 'only a GET without a body may change the protocol, to websocket',
  }
}

const SHOWN = 200
/** Printable, and not without end. */
export const shown = (text: string): string => text.slice(0, SHOWN).replace(/[^\x20-\x7e]/g, '?')

/** Servers that pass fields on as variables (CGI, WSGI) take both marks for the same. */
const asVariable = (name: string): string => name.toLowerCase().replaceAll('_', '-')

/** By these some servers take another method or path than that of the request, which is what was judged. */
const OVERRIDES = new Set([
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
  'x-original-uri',
  'x-forwarded-uri',
  'x-forwarded-path',
])

/** The fields of a request for the server: as the command sent them, but those of the connection, with what is added in the end. */
export function fieldsForServer(request: Request, host: TerminatedHost, isUpgrade: boolean): string[] {
  const fields = fieldsOf(request.rawHeaders)
  const isDropped = isHop(fields)
  const added = new Set(host.headers.map(({ name }) => asVariable(name)))
  const isOverride = (name: string): boolean => host.requests.length > 0 && OVERRIDES.has(asVariable(name))
  const kept = fields.filter(
    ([name]) => !isDropped(name.toLowerCase()) && !added.has(asVariable(name)) && !isOverride(name),
  )
  const connection = isUpgrade ? ['Connection', 'Upgrade', 'Upgrade', 'websocket'] : ['Connection', 'keep-alive']
  return [...kept.flat(), ...host.headers.flatMap(({ name, value }) => [name, value]), ...connection]
}

/** The fields of an answer for the command; the length of a body that ends with the connection is computed anew. */
export function fieldsForClient(raw: readonly string[]): string[] {
  const fields = fieldsOf(raw)
  const isDropped = isHop(fields)
  return fields.filter(([name]) => !isDropped(name.toLowerCase()) && name.toLowerCase() !== 'transfer-encoding').flat()
}

/** Whether the server ends the connection after its answer. */
export const endsConnection = ({
  rawHeaders,
  httpVersionMinor,
}: Pick<Request, 'rawHeaders' | 'httpVersionMinor'>): boolean =>
  httpVersionMinor === 0 || /\bclose\b/i.test(valuesOf(fieldsOf(rawHeaders), 'connection').join(','))
