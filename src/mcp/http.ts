/**
 * Serves clients on this machine by streamable HTTP, each with its own session. A request is checked in this order: that it was
 * sent to us by our own name (a page in a browser can make any name lead to 127.0.0.1), by no page of another site, with the token, to the
 * one path, and is not too large. Only then its body is read.
 *
 * The end of a request ends the runs that it asked for: their result could not be delivered.
 * Edge: sockets, randomness.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { boundedBody, ConnectionPlaces, HEAD_MS, jsonIn, LOOK_MS, SandboxError } from '../core.ts'
import type { Runner } from './runner.ts'
import { isInitializeRequest, StreamableHTTPServerTransport } from './sdk.ts'
import { serverFor } from './server.ts'
import { Session } from './session.ts'
import { isBearer } from './token.ts'

export const PATH = '/mcp'
const HOST = '127.0.0.1'

/** Where there are more, the one that was idle for the longest time makes room. */
const MOST_SESSIONS = 16
/** A connection without the token has its 401 and no more. */
const PLACES = { silent: 64, unproven: 64, proven: 128 }
const MOST_BODY_BYTES = 4 << 20
/** Milliseconds in which a whole request has to arrive. */
const REQUEST_MS = 30_000

interface Client {
  readonly session: Session
  readonly transport: StreamableHTTPServerTransport
}

export interface HttpOptions {
  /** 0: a free one. */
  readonly port: number
  readonly token: string
  readonly signal: AbortSignal
  readonly onListening: (url: string) => Promise<void>
}

/** @returns when the signal has come and nothing runs any more: runs whose changes wait */
export async function serveHttp(runner: Runner, options: HttpOptions): Promise<readonly string[]> {
  const { port, token, signal, onListening } = options
  const clients = new Clients(runner)
  const times = { requestTimeout: REQUEST_MS, headersTimeout: HEAD_MS, connectionsCheckingInterval: LOOK_MS }
  const server = createServer(times, (request, response) => {
    if (!places.hasPlace(request.socket, isBearer(request.headers.authorization, token))) {
      response.setHeader('connection', 'close')
      return refuse(response, 503, 'too many connections')
    }
    handle({ request, response, clients, token }).catch(() => refuse(response, 500, 'this is a defect of llm-do'))
  })
  const places = new ConnectionPlaces(server, PLACES)
  await listen(server, port)
  await onListening(`http://${HOST}:${portOf(server)}${PATH}`)
  await new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', resolve)
  })
  server.close()
  const waiting = await clients.closeAll()
  server.closeAllConnections()
  return waiting
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', ({ message }) =>
      reject(new SandboxError('USAGE', `--http: port ${port} cannot be used: ${message}`, { hint: '--http 0' })),
    )
    server.listen(port, HOST, resolve)
  })
}

/* ---- one request ---- */

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly clients: Clients
  readonly token: string
}

async function handle({ request, response, clients, token }: Exchange): Promise<void> {
  const refusal = refusalOf(request, token)
  if (refusal !== undefined) return refuse(response, ...refusal)
  if (request.method !== 'POST') {
    const client = clients.of(request)
    return client === undefined
      ? refuse(response, ...noSession(request))
      : await client.transport.handleRequest(request, response)
  }
  // Before anything is opened for it: a request that the transport refuses must not take the place of an idle client.
  const form = formRefusalOf(request)
  if (form !== undefined) return refuse(response, ...form)
  const body = await boundedBody(request, MOST_BODY_BYTES)
  if (body === undefined) return refuse(response, 413, `a request has at most ${MOST_BODY_BYTES} bytes`)
  const message = jsonIn(body.toString('utf8'))
  if (message === undefined) return refuse(response, 400, 'the body is not JSON', PARSE_ERROR)
  const client = isInitializeRequest(message) ? await clients.open() : clients.of(request)
  if (client === undefined) return refuse(response, ...noSession(request))
  if (client === 'busy') return refuse(response, 503, `${MOST_SESSIONS} clients are at work`)
  response.once('close', () => {
    if (!response.writableFinished) cancel(client, message)
  })
  await client.transport.handleRequest(request, response, message)
}

/** 404 makes a client begin anew; without the header it has not begun (transports, "Session Management"). */
const noSession = ({ headers }: IncomingMessage): readonly [number, string] =>
  headers['mcp-session-id'] === undefined
    ? [400, 'the header Mcp-Session-Id is missing: send an initialize request']
    : [404, 'no such session: send an initialize request']

/** As the transport asks of a POST. */
function formRefusalOf({ headers }: IncomingMessage): readonly [number, string] | undefined {
  const { accept = '', 'content-type': type = '' } = headers
  if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
    return [406, 'the client must accept application/json and text/event-stream']
  return type.includes('application/json') ? undefined : [415, 'the Content-Type must be application/json']
}

/** JSON-RPC 2.0, 5.1. */
const PARSE_ERROR = -32_700

/** Status and reason; undefined for a request that may be read. */
function refusalOf(
  { headers, url, method = '', socket }: IncomingMessage,
  token: string,
): readonly [number, string] | undefined {
  const names = [HOST, 'localhost'].map((name) => `${name}:${socket.localPort}`)
  if (!names.includes(headers.host ?? '')) return [403, 'the Host header names another server']
  if (headers.origin !== undefined && !names.some((name) => headers.origin === `http://${name}`))
    return [403, 'the Origin header names another site']
  if (!isBearer(headers.authorization, token)) return [401, 'the token is missing or wrong']
  if (url !== PATH) return [404, `the server is at ${PATH}`]
  if (!['POST', 'GET', 'DELETE'].includes(method)) return [405, 'POST, GET and DELETE only']
  return undefined
}

function refuse(response: ServerResponse, status: number, message: string, code = -32_000): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
  })
  response.end(`${JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null })}\n`)
}

/** As if the client had said so. */
function cancel({ transport }: Client, message: unknown): void {
  for (const one of Array.isArray(message) ? message : [message]) {
    const requestId: unknown = (one as { id?: unknown } | null)?.id
    if (typeof requestId !== 'string' && typeof requestId !== 'number') continue
    const params = { requestId, reason: 'the connection has ended' }
    transport.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
  }
}

/* ---- clients ---- */

class Clients {
  /** By the ID of the session, the one that was used last at the end. */
  private readonly all = new Map<string, Client>()
  private readonly waiting = new Set<string>()

  constructor(private readonly runner: Runner) {}

  of({ headers }: IncomingMessage): Client | undefined {
    const id = headers['mcp-session-id']
    const client = typeof id === 'string' ? this.all.get(id) : undefined
    if (client === undefined || typeof id !== 'string') return undefined
    this.all.delete(id)
    this.all.set(id, client)
    return client
  }

  async open(): Promise<Client | 'busy'> {
    if (this.all.size >= MOST_SESSIONS && !(await this.makeRoom())) return 'busy'
    const id = randomUUID()
    const session = new Session(this.runner)
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => id })
    const client = { session, transport }
    transport.onclose = () => void this.close(id, client)
    this.all.set(id, client)
    await serverFor(session, this.runner).connect(transport as never)
    return client
  }

  private async makeRoom(): Promise<boolean> {
    const idle = [...this.all.values()].find(({ session }) => !session.isBusy)
    await idle?.transport.close()
    return idle !== undefined
  }

  private async close(id: string, { session }: Client): Promise<void> {
    this.all.delete(id)
    const waiting = await session.close()
    if (waiting !== undefined) this.waiting.add(waiting)
  }

  async closeAll(): Promise<readonly string[]> {
    await Promise.all(
      [...this.all].map(async ([id, client]) => {
        await this.close(id, client)
        await client.transport.close()
      }),
    )
    return [...this.waiting]
  }
}
