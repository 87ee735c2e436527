/**
 * Requests to one server: bounded in time and bytes; only this server gets the token.
 * Edge: the network, the clock.
 */
import { type Mapping, mappingIn, neutralise } from '../core.ts'

export interface ClientOptions {
  /** Base of all paths. */
  readonly server: URL
  /** Shown with every request: no page of a browser can do that unasked. */
  readonly workerId: string
  /** Of this moment; undefined: the server wants none. */
  readonly token: () => string | undefined
}

export interface Answer {
  readonly status: number
  /** Of JSON; an empty object where it is none. */
  readonly body: Mapping
}

export interface Asked {
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly body?: object
  readonly signal?: AbortSignal
  /** Milliseconds until the answer is there as a whole. */
  readonly withinMs?: number
}

/** An answer that is none: no attempt of the same request will have another. */
export class ProtocolError extends Error {}

/** A status that says no. */
export class StatusError extends Error {
  readonly status: number

  constructor(what: string, { status, body }: Answer) {
    const said =
      typeof body['message'] === 'string' ? body['message'] : typeof body['error'] === 'string' ? body['error'] : ''
    super(`${what}: the server answers ${status}${said === '' ? '' : `: ${neutralise(said.slice(0, 200))}`}`)
    this.status = status
  }
}

const WITHIN_MS = 30_000
const DOWNLOAD_WITHIN_MS = 600_000
const MOST_ANSWER_BYTES = 4 * 1024 * 1024
const MOST_REDIRECTS = 3

/** Where no connection was made, the message of fetch is "fetch failed", and only its cause says why. */
function named(error: unknown, { origin }: URL): unknown {
  if (!(error instanceof TypeError && error.cause instanceof Error)) return error
  const { code, message } = error.cause as NodeJS.ErrnoException
  return new Error(`${origin} cannot be reached: ${code ?? message}`, { cause: error })
}

export class ServerClient {
  private readonly base: URL
  private readonly token: ClientOptions['token']
  private readonly workerId: string

  constructor({ server, workerId, token }: ClientOptions) {
    this.base = new URL(server)
    if (!this.base.pathname.endsWith('/')) this.base.pathname += '/'
    this.token = token
    this.workerId = encodeURIComponent(workerId)
  }

  /** @throws Error of the network; ProtocolError */
  async ask(path: string, { method = 'GET', body, signal, withinMs = WITHIN_MS }: Asked = {}): Promise<Answer> {
    const response = await this.fetch(new URL(path.replace(/^\//, ''), this.base), {
      method,
      signal: within(withinMs, signal),
      ...(body !== undefined && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    })
    // A proxy in between answers with pages: then only the status counts.
    return { status: response.status, body: mappingIn(await boundedText(response)) ?? {} }
  }

  /**
   * @param address absolute or relative to the server; of this server all the same
   * @throws StatusError, ProtocolError, Error of the network
   */
  async download(address: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = this.ownAddress(address)
    const response = await this.fetch(url, { method: 'GET', signal: within(DOWNLOAD_WITHIN_MS, signal) })
    if (response.status === 200 && response.body !== null) return response.body
    const answer = { status: response.status, body: {} }
    await response.body?.cancel()
    throw new StatusError('files', answer)
  }

  private ownAddress(address: string): URL {
    // A path that begins with a slash is one of the server, also where the base has a path.
    const url = URL.canParse(address, this.base.href) ? new URL(address, this.base) : undefined
    if (url === undefined) throw new ProtocolError('the address of the files cannot be understood')
    this.refuseOthers(url)
    return url
  }

  /** Another host would get our token, or be one that only this machine can reach. */
  private refuseOthers(url: URL): void {
    if (url.origin !== this.base.origin)
      throw new ProtocolError(
        `${neutralise(url.origin)} is not this agent's server (${this.base.origin}): nothing is asked there`,
      )
  }

  private async fetch(url: URL, request: RequestInit & { readonly method: string }): Promise<Response> {
    let at = url
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects += 1) {
      const response = await fetch(at, {
        ...request,
        headers: { ...request.headers, 'X-Worker-Id': this.workerId, ...this.tokenHeaders() },
        redirect: 'manual',
      }).catch((error: unknown) => {
        throw named(error, at)
      })
      if (response.status < 300 || response.status > 399 || response.status === 304) return response
      await response.body?.cancel()
      const location = response.headers.get('location') ?? ''
      if (request.method !== 'GET' || !URL.canParse(location, at.href))
        throw new ProtocolError(`the server redirects ${request.method} ${at.pathname}, which is not followed`)
      at = new URL(location, at)
      this.refuseOthers(at)
    }
    throw new ProtocolError(`the server redirects ${url.pathname} again and again`)
  }

  private tokenHeaders(): Record<string, string> {
    const token = this.token()
    return token === undefined ? {} : { Authorization: `Bearer ${token}`, 'X-Worker-Token': token }
  }
}

const within = (ms: number, signal: AbortSignal | undefined): AbortSignal =>
  AbortSignal.any([AbortSignal.timeout(ms), ...(signal === undefined ? [] : [signal])])

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    // Leaving the loop cancels the body.
    if (bytes > MOST_ANSWER_BYTES) throw new ProtocolError(`the server answers more than ${MOST_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
