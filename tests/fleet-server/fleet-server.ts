/** A server of agents in this process, a clock that tests move, and the steps of the protocol as an agent takes them. */
import { createHmac } from 'node:crypto'
import { onTestFinished, vi } from 'vitest'
import { startFleetServer } from '../../src/fleet/server/server.ts'
import { temporaryDirectory } from '../support/directory.ts'

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: what a test says of an answer is the check
  readonly body: any
}

export type TestServer = Awaited<ReturnType<typeof testServer>>

type Headers = Record<string, string>

export async function testServer(
  options: {
    readonly secret?: string
    readonly directory?: string
    readonly keptTasks?: number
    readonly keptWorkers?: number
    readonly mostReading?: number
    readonly places?: { readonly silent: number; readonly unproven: number; readonly proven: number }
    readonly clock?: { ms: number }
    /** Registered from the start. */
    readonly agents?: readonly string[]
  } = {},
) {
  const { clock = { ms: Date.now() }, agents = [] } = options
  const directory = options.directory ?? (await temporaryDirectory())
  const tick = { sweep: (): void => undefined }
  vi.spyOn(globalThis, 'setInterval').mockImplementationOnce((work) => {
    tick.sweep = work as () => void
    return setTimeout(() => undefined)
  })
  const server = await startFleetServer({ ...options, port: 0, directory, now: () => clock.ms })
  let isOpen = true
  const close = async (): Promise<void> => {
    if (isOpen) await server.close()
    isOpen = false
  }
  onTestFinished(close)
  const call = async (method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Answer> => {
    const response = await fetch(new URL(path, server.url), {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
  }
  const register = (workerId: string, headers?: Headers) =>
    call('POST', '/api/workers/register', { workerId, hostname: 'host' }, { ...as(workerId), ...headers })
  for (const agent of agents) await register(agent)
  return {
    url: server.url,
    directory,
    clock,
    /** Looks for agents that are gone and for old tasks, as the server does every second. */
    sweep: () => tick.sweep(),
    /** The clock moves on, and the server looks as often as it does. */
    pass: (ms: number) => {
      // A longer step would be a server that stood still.
      for (let left = ms; left > 0; left -= 5_000) {
        clock.ms += Math.min(left, 5_000)
        tick.sweep()
      }
    },
    call,
    close,
    register,
    beat: (workerId: string, more?: object) =>
      call('POST', '/api/workers/heartbeat', { workerId, ...more }, as(workerId)),
    stream: (jobId: string, workerId: string, output: { data: string; type: string }) =>
      call('POST', '/api/jobs/stream-output', { jobId, ...output }, as(workerId)),
    /** As an agent that could not run the task. */
    fail: (jobId: string, workerId: string, more: object) =>
      call('PUT', '/api/jobs/submit-result', { jobId, workerId, ...more }, as(workerId)),
    cancel: (id: string) => call('POST', `/api/tasks/${id}/cancel`),
    submit: async (command: string): Promise<string> => (await call('POST', '/api/tasks', { command })).body.id,
    take: (workerId: string, wait = 0, headers: Headers = {}) =>
      call('GET', `/api/jobs/get-job?workerId=${workerId}&wait=${wait}`, undefined, { ...as(workerId), ...headers }),
    report: (jobId: string, workerId: string, more: Record<string, unknown> = {}, headers: Headers = {}) => {
      const body = { jobId, workerId, stdout: 'out', stderr: '', exitCode: 0, ...more }
      return call('POST', '/api/jobs/submit-result', body, { ...as(workerId), ...headers })
    },
    task: async (id: string): Promise<Answer['body']> => (await call('GET', `/api/tasks/${id}`)).body,
  }
}

/** How an agent names itself. */
export const as = (workerId: string): Record<string, string> => ({ 'x-worker-id': encodeURIComponent(workerId) })

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A token as agents make it, or one that is wrong in some way. */
export function tokenFor(workerId: string, secret: string, { alg = 'HS256', ...claims }: Record<string, unknown> = {}) {
  const text = `${encoded({ alg, typ: 'JWT' })}.${encoded({ workerId, type: 'worker', exp: Date.now() / 1000 + 60, ...claims })}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}
