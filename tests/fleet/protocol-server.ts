/**
 * A server of agents, from the table of the protocol alone: it knows nothing of our code. What it is asked is kept; how it answers next
 * can be set, as a broken or hostile server would.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Request {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}

export interface Job {
  readonly jobId: string
  readonly command: string
  readonly fileUrl?: string
  readonly filename?: string
  readonly timeoutMs?: number
  readonly [more: string]: unknown
}

/** A status, and what is answered with it. */
type Answer = readonly [status: number, body: object | Buffer, headers?: Record<string, string>]
/** It is served, and the connection breaks before the agent hears of it. */
const LOST = 'lost'

export class ProtocolServer {
  readonly requests: Request[] = []
  readonly jobs: Job[] = []
  readonly cancelled = new Set<string>()
  readonly files = new Map<string, Buffer>()
  /** Files are given only with a token. */
  isTokenAsked = false
  /** Answers in the place of the usual one; the first whose path fits is used, once. */
  readonly next: { readonly path: string; readonly answer: Answer | typeof LOST }[] = []
  private readonly workers = new Set<unknown>()
  /** The worker that was given each job; a report of another one is refused. */
  private readonly owners = new Map<unknown, unknown>()
  private readonly server = createServer((request, response) => void this.serve(request, response))

  static async start(): Promise<ProtocolServer> {
    const made = new ProtocolServer()
    await new Promise<void>((resolve) => made.server.listen(0, '127.0.0.1', resolve))
    onTestFinished(async () => {
      made.server.closeAllConnections()
      await new Promise((resolve) => made.server.close(resolve))
    })
    return made
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  asked(path: string, method?: string): readonly Request[] {
    return this.requests.filter((one) => one.path === path && (method === undefined || one.method === method))
  }

  /** Every report of a job, by either method. */
  reports(jobId: string): readonly Request[] {
    return this.asked('/api/jobs/submit-result').filter(({ body }) => body['jobId'] === jobId)
  }

  streamed(jobId: string, type: string): string {
    const pieces = this.asked('/api/jobs/stream-output').filter(
      ({ body }) => body['jobId'] === jobId && body['type'] === type,
    )
    return pieces.map(({ body }) => body['data']).join('')
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { pathname: path, searchParams: query } = new URL(request.url ?? '', this.url)
    const text = Buffer.concat(chunks).toString()
    const { method = '', headers } = request
    const asked = {
      method,
      path,
      query,
      headers,
      body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    }
    this.requests.push(asked)
    const set = this.next.findIndex((one) => one.path === path)
    const answer = set === -1 ? this.answer(asked) : (this.next.splice(set, 1)[0]?.answer ?? LOST)
    if (answer === LOST) return void response.destroy()
    const [status, body, more = {}] = answer
    response.writeHead(status, {
      'Content-Type': Buffer.isBuffer(body) ? 'application/zip' : 'application/json',
      ...more,
    })
    response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body))
  }

  private answer({ method, path, query, body, headers }: Request): Answer {
    const { workerId, hostname, data } = body
    switch (`${method} ${path}`) {
      case 'POST /api/workers/register':
        if (!workerId || !hostname) return [400, { success: false }]
        this.workers.add(workerId)
        return [200, { success: true, workerId, message: 'registered' }]
      case 'POST /api/workers/heartbeat':
        return this.workers.has(workerId) ? [200, { success: true, workerId }] : [404, { success: false }]
      case 'GET /api/jobs/get-job': {
        const workerId = query.get('workerId')
        const job = this.workers.has(workerId) ? this.jobs.shift() : undefined
        if (job !== undefined && !this.owners.has(job.jobId)) this.owners.set(job.jobId, workerId)
        return job === undefined ? [202, { success: false, message: 'none', job: null }] : [200, { success: true, job }]
      }
      case 'POST /api/jobs/stream-output':
        return data === '' || data === undefined ? [400, { success: false }] : [200, { success: true }]
      case 'GET /api/jobs/check-cancel':
        return [200, { success: true, cancelRequested: this.cancelled.has(query.get('jobId') ?? '') }]
      case 'POST /api/jobs/submit-result':
      case 'PUT /api/jobs/submit-result':
        return this.owners.get(body['jobId']) === workerId ? [200, { success: true }] : [403, { success: false }]
      default: {
        const file = this.files.get(path)
        if (file === undefined) return [404, {}]
        return headers.authorization?.startsWith('Bearer ') || !this.isTokenAsked
          ? [200, file]
          : [401, { success: false }]
      }
    }
  }
}
