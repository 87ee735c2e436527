/**
 * Pairs of connections, each with TLS on both sides and requests in between.
 * Edge: sockets.
 */
import { once } from 'node:events'
import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as newRequest,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { connect, createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import {
  canonicalName,
  type HostPort,
  type RefusedRequest,
  type TerminatedHost,
  type TerminatorLine,
  type TerminatorSetup,
} from '../network/termination.ts'
import { type Authority, hostCertificate, newKeys, type Validity } from './certificates.ts'
import {
  endsConnection,
  fieldsForClient,
  fieldsForServer,
  fieldsOf,
  hasBody,
  type Refusal,
  refusalOf,
  shown,
  upgradeRefusalOf,
} from './requests.ts'

/** At once: two descriptors and some 100 KiB each. */
const MOST_OPEN = 512
const MOST_REFUSALS = 256
/**
 * For the first byte, and for each handshake. As long as nginx waits for the head of a request (client_header_timeout): on a busy machine a
 * hundred handshakes at once take more than ten seconds, and what bounds a command that keeps silent is MOST_OPEN.
 */
const HANDSHAKE_MS = 60_000
/** The first byte of TLS: a record of a handshake. */
const HANDSHAKE = 0x16

/** Calls `giveUp` after that time, but not before what has come meanwhile is read: it may be we who were busy. @returns what prevents it */
function afterWaiting(giveUp: () => void): () => void {
  let turn: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    turn = setImmediate(giveUp)
  }, HANDSHAKE_MS)
  return () => {
    clearTimeout(timer)
    clearImmediate(turn)
  }
}

export interface Serving {
  readonly setup: TerminatorSetup
  readonly authority: Authority
  readonly validity: () => Validity
}

interface Pair {
  readonly host: TerminatedHost
  /** The server, once its certificate is verified. */
  readonly server: Promise<TLSSocket>
  readonly agent: Agent
  /** Requests that are not answered to their end. */
  answers: number
}

interface Outside extends HostPort {
  readonly id: number
  readonly socket: Socket
}

export interface Taken extends HostPort {
  readonly id: number
  readonly side: 'inside' | 'outside'
}

const ALPN = ['http/1.1']

export class Connections {
  private readonly hosts: ReadonlyMap<string, TerminatedHost>
  private readonly contexts = new Map<string, SecureContext>()
  private readonly keys = newKeys()
  private readonly trusted: SecureContext
  private readonly http: Server
  private readonly pairs = new Map<Duplex, Pair>()
  /** Connections of the command, before and after they have become a pair. */
  private readonly open = new Set<Socket>()
  private readonly refused = new Map<string, RefusedRequest>()
  private omitted = 0
  private waiting: Outside | undefined

  constructor(private readonly serving: Serving) {
    this.hosts = new Map(serving.setup.hosts.map((host) => [keyOf(host), host]))
    this.trusted = createSecureContext({ ca: serving.setup.trust, minVersion: 'TLSv1.2' })
    this.http = createServer({
      insecureHTTPParser: false,
      requireHostHeader: false,
      keepAliveTimeout: 0,
      requestTimeout: 0,
      headersTimeout: 0,
    })
    // Fields beyond a number would be left out here, and their meaning kept by the parser. The size of a head has a bound.
    this.http.maxHeadersCount = 0
    this.http.on('request', (request, response) => void this.pass(request, response))
    this.http.on('upgrade', (request, socket, head) => void this.upgrade(request, socket, head))
    this.http.on('clientError', (_error, socket) => this.refuseForm(socket))
    this.http.on('connect', (_request, socket) => socket.destroy())
  }

  /** Two messages make a pair: the connection outside, and then the one inside. */
  take({ id, side, host, port }: Taken, socket: Socket | undefined): void {
    if (socket === undefined) return
    socket.on('error', () => socket.destroy())
    const { waiting } = this
    this.waiting = undefined
    if (side === 'outside') {
      waiting?.socket.destroy()
      this.waiting = { id, host, port, socket }
    } else if (waiting === undefined || waiting.id !== id || this.open.size >= MOST_OPEN) {
      waiting?.socket.destroy()
      socket.destroy()
    } else this.begin(waiting, socket)
  }

  /** A pair in an impossible state must not take the others' hosts away: every pair that is open ends, and the next ones are served. */
  endAll(): void {
    for (const [inside, { host }] of this.pairs) {
      this.note(host, { kind: 'form', what: 'a connection that could not be served' })
      inside.destroy()
    }
  }

  report(): TerminatorLine {
    return { refused: [...this.refused.values()], omitted: this.omitted }
  }

  private note(place: HostPort, { kind, what }: Pick<Refusal, 'kind' | 'what'>): void {
    const key = `${keyOf(place)} ${kind} ${what}`
    const { count } = this.refused.get(key) ?? { count: 0 }
    if (count === 0 && this.refused.size >= MOST_REFUSALS) this.omitted += 1
    else this.refused.set(key, { host: place.host, port: place.port, kind, what, count: count + 1 })
  }

  /** The first byte tells TLS from what is not; it is put back. */
  private begin(outside: Outside, inside: Socket): void {
    this.open.add(inside)
    inside.once('close', () => this.open.delete(inside))
    const giveUp = (): void => {
      stopWaiting()
      outside.socket.destroy()
      inside.destroy()
    }
    const stopWaiting = afterWaiting(giveUp)
    for (const socket of [outside.socket, inside]) socket.once('close', giveUp)
    inside.once('readable', () => {
      const first = inside.read(1) as Buffer | null
      stopWaiting()
      if (first === null) return giveUp()
      inside.unshift(first)
      outside.socket.off('close', giveUp)
      const host = this.hosts.get(keyOf(outside))
      if (first[0] === HANDSHAKE && host !== undefined) this.secure(host, outside.socket, inside)
      else this.refusePlain(outside, inside)
    })
  }

  private refusePlain({ socket, ...place }: Outside, inside: Socket): void {
    const { host, port } = place
    const why = `${host} is reached by TLS only, because a secret is added or its requests are limited: use https://${host}`
    this.note({ host, port }, { kind: 'plain', what: 'plain HTTP' })
    rawAnswer(inside, 403, why)
    socket.destroy()
  }

  private secure(host: TerminatedHost, outside: Socket, raw: Socket): void {
    const inside = new TLSSocket(raw, {
      isServer: true,
      secureContext: this.contextOf(host.host),
      ALPNProtocols: [...ALPN],
      SNICallback: (name, done) => done(this.isMeant(host, name) ? null : new Error(`not ${host.host}`)),
    })
    const pair = { host, ...this.dialled(host, outside, inside), answers: 0 }
    const stopWaiting = afterWaiting(() => inside.destroy())
    inside.on('error', () => inside.destroy())
    inside.once('close', () => {
      stopWaiting()
      this.pairs.delete(inside)
      pair.agent.destroy()
      outside.destroy()
    })
    inside.once('secure', () => {
      stopWaiting()
      // Without a name isMeant was not called yet.
      if (nameOf(inside) === '' && !this.isMeant(host, '')) inside.destroy()
      else this.http.emit('connection', inside)
    })
    this.pairs.set(inside, pair)
  }

  /** The server's side. When the server ends the connection between two answers, it is over inside, too. */
  private dialled(host: TerminatedHost, outside: Socket, inside: TLSSocket): Pick<Pair, 'server' | 'agent'> {
    const server = this.verified(host, outside)
    const connected: { socket?: TLSSocket } = {}
    // Handed out at once: a connection that came later would be given to each request that asks meanwhile, and they would share it.
    const agent = Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), {
      createConnection: (_: unknown, done: (error: Error | null) => void): TLSSocket | undefined => {
        if (connected.socket?.destroyed === false) return connected.socket
        done(ENDED)
        return undefined
      },
    })
    server.then((socket) => {
      connected.socket = socket
    }, ignored)
    server.then(
      (socket) => socket.once('close', () => (this.pairs.get(inside)?.answers ?? 0) > 0 || inside.end()),
      ignored,
    )
    return { server, agent }
  }

  /** The name that a client asks for by SNI is the one that its connection was judged by. */
  private isMeant(host: TerminatedHost, name: string): boolean {
    const isMeant = canonicalName(name) === host.host
    if (!isMeant) this.note(host, { kind: 'name', what: shown(`SNI ${name}`) })
    return isMeant
  }

  private contextOf(host: string): SecureContext {
    const { authority, validity } = this.serving
    const known =
      this.contexts.get(host) ??
      createSecureContext({
        cert: hostCertificate(host, this.keys.publicKey, authority, validity()),
        key: this.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }),
        minVersion: 'TLSv1.2',
      })
    this.contexts.set(host, known)
    return known
  }

  /** Nothing is sent to a server before its certificate is verified by this host's. */
  private async verified({ host }: TerminatedHost, socket: Socket): Promise<TLSSocket> {
    const server = connect({ socket, host, servername: host, secureContext: this.trusted, ALPNProtocols: [...ALPN] })
    server.on('error', () => server.destroy())
    server.setTimeout(HANDSHAKE_MS, () => server.destroy(new Error('no answer to the handshake')))
    await once(server, 'secureConnect')
    server.setTimeout(0)
    return server
  }

  private async pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pair = this.pairs.get(request.socket)
    if (pair === undefined) return void request.socket.destroy()
    pair.answers += 1
    response.once('close', () => {
      pair.answers -= 1
    })
    const refusal = refusalOf(request, pair.host)
    if (refusal !== undefined) {
      this.note(pair.host, refusal)
      return answer(request, response, refusal)
    }
    const failed = (error: Error): void =>
      answer(request, response, { status: 502, why: `${pair.host.host}: ${shown(error.message)}` })
    try {
      await pair.server
      const onward = onwardOf(request, pair, false)
      onward.once('response', (reply) => passBack(reply, response, failed))
      onward.once('error', failed)
      response.once('close', () => response.writableFinished || onward.destroy())
      // A request without a length has no body, whatever node makes of one.
      if (hasBody(request)) pipeline(request, onward, ignored)
      else onward.end()
    } catch (error) {
      failed(error as Error)
    }
  }

  /** Refuses input that node's strict parser does not take for HTTP/1.1: two lengths of one request, folded lines, bare line ends. */
  private refuseForm(inside: Duplex): void {
    const pair = this.pairs.get(inside)
    if (pair !== undefined && inside.readable) this.note(pair.host, { kind: 'form', what: 'malformed request' })
    if (pair === undefined || pair.answers > 0 || !inside.writable) return void inside.destroy()
    rawAnswer(inside, 400, 'the request is not in the form of HTTP/1.1')
  }

  /** Bytes go both ways once the server has agreed; whatever else it answers is its answer, and the last one. */
  private async upgrade(request: IncomingMessage, inside: Duplex, head: Buffer): Promise<void> {
    const pair = this.pairs.get(inside)
    if (pair === undefined) return void inside.destroy()
    pair.answers += 1
    const refusal = upgradeRefusalOf(request, pair.host)
    if (refusal !== undefined) {
      this.note(pair.host, refusal)
      return rawAnswer(inside, refusal.status, refusal.why)
    }
    const failed = (error: Error): void => rawAnswer(inside, 502, `${pair.host.host}: ${shown(error.message)}`)
    try {
      await pair.server
      const onward = onwardOf(request, pair, true)
      onward.once('upgrade', (reply, outside, first) => {
        inside.write(headOf(reply, ['Connection', 'Upgrade', 'Upgrade', 'websocket']))
        inside.write(first)
        outside.write(head)
        pipeline(inside, outside, inside, () => {
          inside.destroy()
          outside.destroy()
        })
      })
      onward.once('response', (reply) => {
        inside.write(headOf(reply, ['Connection', 'close']))
        pipeline(reply, inside, ignored)
      })
      onward.once('error', failed)
      onward.end()
    } catch (error) {
      failed(error as Error)
    }
  }
}

const keyOf = ({ host, port }: HostPort): string => `${host}:${port}`
const ignored = (): void => undefined
const ENDED = new Error('the server has ended the connection')

/** By SNI; empty without. */
const nameOf = (socket: TLSSocket): string =>
  (socket as { readonly servername?: string | false | null }).servername || ''

const onwardOf = (request: IncomingMessage, { host, agent }: Pair, isUpgrade: boolean): ClientRequest =>
  newRequest({
    agent,
    method: request.method,
    path: request.url,
    headers: fieldsForServer(request, host, isUpgrade),
    setHost: false,
  })

/** node reads answers that it does not write, such as one with a control character in its reason: these fail. */
function passBack(reply: IncomingMessage, response: ServerResponse, failed: (error: Error) => void): void {
  const last = endsConnection(reply) ? ['Connection', 'close'] : []
  try {
    response.sendDate = false
    response.writeHead(reply.statusCode ?? 502, reply.statusMessage, [...fieldsForClient(reply.rawHeaders), ...last])
  } catch (error) {
    reply.destroy()
    return void failed(error as Error)
  }
  pipeline(reply, response, ignored)
}

/** Head of an answer that is written by hand, because node no longer handles its connection as HTTP. */
function headOf({ statusCode, statusMessage, rawHeaders }: IncomingMessage, more: readonly string[]): Buffer {
  const fields = fieldsOf([...fieldsForClient(rawHeaders), ...more]).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`HTTP/1.1 ${statusCode} ${statusMessage}\r\n${fields.join('')}\r\n`, 'latin1')
}

const textOf = (why: string): string => `llm-do: ${why}\n`

/** Reads the rest of the request: a connection that is closed with unread bytes is reset, and its answer may be lost. */
function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { status, why }: Pick<Refusal, 'status' | 'why'>,
): void {
  if (response.headersSent) return void response.destroy()
  const text = textOf(why)
  request.resume()
  // The reason is said, because that of an answer which was not taken would stay.
  response.writeHead(status, STATUS_CODES[status], {
    'Content-Type': 'text/plain',
    'Content-Length': Buffer.byteLength(text),
    ...(status === 502 ? { Connection: 'close' } : {}),
  })
  response.end(text)
}

function rawAnswer(socket: Duplex, status: number, why: string): void {
  const text = textOf(why)
  socket.resume()
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  )
}
