/**
 * A small server of the protocol of agents, for one machine: docs/internals/fleet-protocol.md has the protocol. Agents register, poll for tasks, stream
 * their output and report how they ended; people submit, watch and cancel them on one page.
 *
 * One process, one SQLite file (store.ts), one directory of ZIP files named by identifiers of our own. It listens on 127.0.0.1 only.
 * Requests of web pages of other origins are refused, and so are names that merely lead to 127.0.0.1. Nothing that a client sends becomes a
 * path, a header or HTML.
 *
 * Edge: the network, files, the clock, randomness.
 */
import { createReadStream, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import {
  ConnectionPlaces,
  HEAD_MS,
  holderOf,
  LOOK_MS,
  lockOf,
  makeDirectories,
  orElse,
  type PlaceBounds,
  randomHex,
  SandboxError,
  tryLock,
} from '../../core.ts'
import { Live } from './live.ts'
import { type Page, readPage } from './page.ts'
import { Bodies, checked, Refusal } from './request.ts'
import { type End, OFFLINE_AFTER_MS, Store, type StoredTask, type StoredWorker, type Taking } from './store.ts'
import { TokenError, workerOfToken } from './token.ts'
import {
  detailsOf,
  FAILURE,
  HEARTBEAT,
  REGISTER,
  RESULT,
  STREAM_OUTPUT,
  SUBMISSION,
  SUBMISSION_QUERY,
  type Submission,
} from './wire.ts'

const SMALL_BODY = 1024 * 1024
const MOST_UPLOAD = 64 * 1024 * 1024
/** Both streams and a ZIP in base64. */
const MOST_REPORT = 96 * 1024 * 1024
/** All bodies that arrive at one time: those of agents, and as much of people, so that neither keeps the others out. */
const MOST_READING = 256 * 1024 * 1024
const KEPT_TASKS = 1_000
/** Agents that are kept, those that were seen last. */
const KEPT_WORKERS = 1_000
/** A poll is answered after so many seconds at the latest. */
const LONGEST_WAIT_S = 30
/** Between two looks for agents that are gone. */
const SWEEP_MS = 1_000
/** A longer pause between two checks than this means that the server stood still, or that the clock was set. */
const STALL_MS = 5 * SWEEP_MS
/** Characters of the name of a worker: wire.ts. */
const LONGEST_NAME = 256
/** Without a secret no agent can prove its name, so all are among the unproven. */
const PLACES: PlaceBounds = { silent: 500, unproven: 2_000, proven: 2_000 }

/** The end-of-archive record alone: an archive without files (APPNOTE.TXT 4.3.16). */
const EMPTY_ZIP = Buffer.from(`504b0506${'00'.repeat(18)}`, 'hex')

export interface FleetServerOptions {
  /** 0 lets the kernel choose. */
  readonly port: number
  /** Made when it is not there; only for this server. */
  readonly directory: string
  /** Agents show tokens that are signed with it at every step; absent: no token is asked for. */
  readonly secret?: string | undefined
  /** Tasks that are over and kept with their files; default KEPT_TASKS. */
  readonly keptTasks?: number
  /** Workers without a task that are remembered; default KEPT_WORKERS. */
  readonly keptWorkers?: number
  /** Bytes of bodies that are read at one time, of agents and of people each; default MOST_READING. */
  readonly mostReading?: number
  /** Connections; default PLACES. */
  readonly places?: PlaceBounds
  readonly now?: () => number
}

export interface FleetServer {
  readonly url: string
  readonly close: () => Promise<void>
}

/** A poll that waits for a task. */
interface Waiter {
  readonly worker: string
  readonly answer: (task: StoredTask | undefined) => void
}

type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void> | void

/** A request of an agent. */
interface Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: URL
  /** The worker that sent the request. */
  readonly worker: string
}

/** @throws SandboxError SETUP_FAILED where the directory is in use or the port is taken */
export async function startFleetServer(options: FleetServerOptions): Promise<FleetServer> {
  const { directory } = options
  for (const one of [directory, join(directory, 'files'), join(directory, 'results')]) makeDirectories(one, 0o700)
  const file = join(directory, 'server')
  const lock = tryLock(file)
  if (lock === undefined)
    throw new SandboxError(
      'SETUP_FAILED',
      `${directory}: another server uses this directory: ${lockOf(file)} is locked by ${holderOf(lockOf(file))}`,
      { hint: 'end that server, or take another --data' },
    )
  let fleet: Fleet
  try {
    fleet = new Fleet(options)
  } catch (error) {
    lock.release()
    throw error
  }
  const close = async (): Promise<void> => {
    await fleet.close()
    lock.release()
  }
  try {
    return { url: `http://127.0.0.1:${await fleet.listen(options.port)}`, close }
  } catch (cause) {
    await close()
    const { message } = cause as Error
    throw new SandboxError('SETUP_FAILED', `port ${options.port}: ${message}`, {
      hint: '--port 0   # any free one',
      cause,
    })
  }
}

class Fleet {
  readonly #directory: string
  readonly #secret: string | undefined
  readonly #now: () => number
  readonly #keptTasks: number
  readonly #keptWorkers: number
  readonly #store: Store
  readonly #live = new Live()
  readonly #agentBodies: Bodies
  readonly #bodies: Bodies
  readonly #waiters = new Set<Waiter>()
  readonly #server: Server
  readonly #places: ConnectionPlaces
  readonly #sweeper: NodeJS.Timeout
  #sweptMs: number
  /** Since when agents are heard without a gap. */
  #listeningSinceMs: number
  readonly #page: Page = readPage()

  /** `METHOD PATH`; the identifier of a task in a path is `:id`. */
  readonly #routes: Readonly<Record<string, Handler>> = {
    'GET /': (_, response) => this.#sendPage(response),
    'GET /api/events': (_, response) => this.#live.watch(response, this.#everything()),
    'GET /api/tasks': (_, response) => send(response, 200, this.#everything()),
    'POST /api/tasks': (request, response, url) => this.#submit(request, response, url),
    'GET /api/tasks/:id': (_, response, url) => this.#show(response, url),
    'POST /api/tasks/:id/cancel': (_, response, url) => this.#cancel(response, url),
    'GET /api/tasks/:id/result': (_, response, url) => this.#sendResult(response, url),
    'POST /api/workers/register': this.#ofAgents((asked) => this.#register(asked)),
    'POST /api/workers/heartbeat': this.#ofAgents((asked) => this.#heartbeat(asked)),
    'GET /api/jobs/get-job': this.#ofAgents((asked) => this.#giveTask(asked)),
    'GET /api/files/download/:id': this.#ofAgents((asked) => this.#sendFiles(asked)),
    'POST /api/jobs/stream-output': this.#ofAgents((asked) => this.#addOutput(asked)),
    'GET /api/jobs/check-cancel': this.#ofAgents((asked) => this.#sayWhetherCancelled(asked)),
    'POST /api/jobs/submit-result': this.#ofAgents((asked) => this.#takeResult(asked)),
    'PUT /api/jobs/submit-result': this.#ofAgents((asked) => this.#takeFailure(asked)),
  }

  constructor(options: FleetServerOptions) {
    const { directory, secret, now = Date.now, keptTasks = KEPT_TASKS, keptWorkers = KEPT_WORKERS } = options
    const { mostReading = MOST_READING } = options
    this.#agentBodies = new Bodies(mostReading)
    this.#bodies = new Bodies(mostReading)
    this.#directory = directory
    this.#secret = secret
    this.#now = now
    this.#keptTasks = keptTasks
    this.#keptWorkers = keptWorkers
    this.#store = new Store(join(directory, 'fleet.db'))
    const times = { headersTimeout: HEAD_MS, connectionsCheckingInterval: LOOK_MS }
    this.#server = createServer(times, (request, response) => void this.#answer(request, response))
    this.#places = new ConnectionPlaces(this.#server, options.places ?? PLACES)
    this.#sweptMs = now()
    this.#listeningSinceMs = now()
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS)
  }

  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, '127.0.0.1', resolve)
    })
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper)
    for (const waiter of this.#waiters) waiter.answer(undefined)
    this.#live.close()
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
    this.#store.close()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('x-content-type-options', 'nosniff')
    try {
      if (!this.#places.hasPlace(request.socket, this.#showsToken(request))) {
        response.setHeader('connection', 'close')
        throw new Refusal(503, 'too many connections without a token')
      }
      refuseForeignPages(request)
      const url = new URL(request.url ?? '/', 'http://127.0.0.1')
      await this.#handlerOf(request.method ?? '', url.pathname)(request, response, url)
    } catch (error) {
      refuse(response, error)
    }
  }

  #handlerOf(method: string, path: string): Handler {
    const route = path.replace(/^(\/api\/(?:tasks|files\/download)\/)[0-9a-f]{32}(?=\/|$)/, '$1:id')
    const name = `${method} ${route}`
    const handler = Object.hasOwn(this.#routes, name) ? this.#routes[name] : undefined
    if (handler === undefined) throw new Refusal(404, 'there is nothing here')
    return handler
  }

  // ---- people

  #sendPage(response: ServerResponse): void {
    const { html, contentSecurityPolicy } = this.#page
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
    })
    response.end(html)
  }

  #everything(): unknown {
    const agents = this.#store.workers(this.#now())
    return { agents, tasks: this.#store.tasks().map((task) => withWait(task, agents)) }
  }

  async #submit(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const isZip = request.headers['content-type'] === 'application/zip'
    const query = Object.fromEntries(url.searchParams)
    const task = isZip
      ? checked(SUBMISSION_QUERY, query)
      : await this.#bodies.json<Submission>(request, SUBMISSION, SMALL_BODY)
    const id = randomHex(16)
    if (isZip) {
      const files = await this.#bodies.of(request, MOST_UPLOAD)
      const [first, second] = EMPTY_ZIP
      if (files[0] !== first || files[1] !== second) throw new Refusal(400, 'the body is not a ZIP file')
      this.#write('files', id, files)
    }
    this.#store.addTask({ ...task, id, hasFiles: isZip }, this.#now())
    send(response, 201, { success: true, id })
    this.#serveWaiters()
    this.#told(id)
  }

  #show(response: ServerResponse, url: URL): void {
    const task = this.#taskIn(url)
    const output = task.state === 'running' ? this.#live.outputOf(task.id) : this.#store.outputOf(task.id)
    send(response, 200, { ...withWait(task, this.#store.workers(this.#now())), ...output })
  }

  #cancel(response: ServerResponse, url: URL): void {
    const { id } = this.#taskIn(url)
    if (!this.#store.requestCancel(id, this.#now())) throw new Refusal(409, 'the task is over')
    send(response, 200, { success: true })
    this.#told(id)
  }

  async #sendResult(response: ServerResponse, url: URL): Promise<void> {
    const { id, hasResult } = this.#taskIn(url)
    if (!hasResult) throw new Refusal(404, 'the task has made no files')
    await this.#sendZip(response, join(this.#directory, 'results', id), id)
  }

  async #sendZip(response: ServerResponse, file: string, id: string): Promise<void> {
    response.writeHead(200, {
      'content-type': 'application/zip',
      'content-disposition': `attachment; filename="${id}.zip"`,
    })
    await pipeline(createReadStream(file), response)
  }

  // ---- agents

  #ofAgents(work: (asked: Asked) => Promise<void> | void): Handler {
    return (request, response, url) => work({ request, response, url, worker: this.#agentOf(request) })
  }

  async #register({ request, response, worker }: Asked): Promise<void> {
    const facts = await this.#agentBodies.json(request, REGISTER, SMALL_BODY)
    refuseOther(facts.workerId, worker)
    this.#store.register(facts, { nowMs: this.#now(), kept: this.#keptWorkers })
    for (const id of this.#store.restarted(worker, this.#now())) this.#told(id)
    send(response, 200, { success: true, workerId: worker, message: 'registered' })
    this.#toldAgents()
    this.#serveWaiters()
  }

  async #heartbeat({ request, response, worker }: Asked): Promise<void> {
    const facts = await this.#agentBodies.json(request, HEARTBEAT, SMALL_BODY)
    refuseOther(facts.workerId, worker)
    if (!this.#store.heartbeat(facts, this.#now())) throw new Refusal(404, 'this worker is not registered')
    if (facts.status !== 'OFFLINE') this.#resume(worker)
    send(response, 200, { success: true, workerId: worker, timestamp: new Date(this.#now()).toISOString() })
  }

  #giveTask({ response, url, worker }: Asked): void {
    refuseOther(url.searchParams.get('workerId'), worker)
    if (!this.#store.seen(worker, this.#now())) throw new Refusal(404, 'this worker is not registered')
    this.#resume(worker)
    const waitMs = Math.min(Math.max(Number(url.searchParams.get('wait')) || 0, 0), LONGEST_WAIT_S) * 1000
    this.#waitForTask(worker, response, waitMs)
  }

  #waitForTask(worker: string, response: ServerResponse, waitMs: number): void {
    const timer = setTimeout(() => waiter.answer(undefined), waitMs)
    const leave = (): void => {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
    }
    const waiter: Waiter = {
      worker,
      answer: (task) => {
        leave()
        if (task === undefined) send(response, 202, { success: false, message: 'no task is waiting', job: null })
        else this.#hand(task, response)
      },
    }
    response.once('close', leave)
    this.#waiters.add(waiter)
    // For the others nothing has changed.
    this.#serve(waiter)
  }

  #hand(task: StoredTask, response: ServerResponse): void {
    const { id: jobId, command, filename, timeoutMs, require } = task
    const fileUrl = `/api/files/download/${jobId}`
    this.#live.forget(jobId)
    response.once('close', () => {
      if (response.writableFinished) return
      this.#store.giveBack(task)
      this.#told(jobId)
      this.#serveWaiters()
    })
    const job = {
      jobId,
      command,
      fileUrl,
      filename,
      ...(timeoutMs === null ? {} : { timeoutMs }),
      ...(require.length > 0 && { require }),
    }
    send(response, 200, { success: true, job })
    this.#told(jobId)
  }

  /** When there may be tasks for those that wait: the one that waits longest is served first. */
  #serveWaiters(): void {
    let isQueued = this.#store.isQueued()
    for (const waiter of this.#waiters) {
      if (!isQueued) return
      // One that holds too little for the tasks that are there leaves them to the next.
      if (this.#serve(waiter)) isQueued = this.#store.isQueued()
    }
  }

  #serve(waiter: Waiter): boolean {
    const task = this.#store.take(waiter.worker, this.#now())
    if (task !== undefined) waiter.answer(task)
    return task !== undefined
  }

  async #sendFiles({ response, url, worker }: Asked): Promise<void> {
    const { id, hasFiles, worker: holder } = this.#taskIn(url)
    if (holder !== worker) throw new Refusal(403, 'the files are of the task of another worker')
    if (hasFiles) return await this.#sendZip(response, join(this.#directory, 'files', id), id)
    response.writeHead(200, { 'content-type': 'application/zip' })
    response.end(EMPTY_ZIP)
  }

  async #addOutput({ request, response, worker }: Asked): Promise<void> {
    const { jobId, data, type } = await this.#agentBodies.json(request, STREAM_OUTPUT, SMALL_BODY)
    const task = this.#givenTask(worker, jobId)
    if (task.state !== 'running' || task.worker !== worker) throw new Refusal(409, 'the task is not running')
    this.#live.add(task.id, type, data)
    send(response, 200, { success: true })
  }

  #sayWhetherCancelled({ response, url, worker }: Asked): void {
    const task = this.#givenTask(worker, url.searchParams.get('jobId') ?? '')
    // A task that is merely queued again may still end well here. One that another worker has, or that is over, cannot.
    const isOurs = task.worker === worker && (task.state === 'running' || task.state === 'queued')
    send(response, 200, { success: true, cancelRequested: task.isCancelRequested || !isOurs })
  }

  async #takeResult(asked: Asked): Promise<void> {
    const { request, response, worker } = asked
    const most = this.#mostReport(asked)
    const result = await this.#agentBodies.json(request, RESULT, most)
    const { stdout, stderr, exitCode, message = '', resultZipBase64 } = result
    const zip = resultZipBase64 ? Buffer.from(resultZipBase64, 'base64') : undefined
    const end: End = { exitCode, message, stdout, stderr, details: detailsOf(result), hasResult: zip !== undefined }
    refuseOther(result.workerId, worker)
    this.#finish(response, { report: result, end, ...(zip === undefined ? {} : { zip }) })
  }

  async #takeFailure({ request, response, worker }: Asked): Promise<void> {
    const failure = await this.#agentBodies.json(request, FAILURE, SMALL_BODY)
    const { errorMessage: message, elsewhere } = failure
    const end = { exitCode: null, message, stdout: '', stderr: '', details: detailsOf(failure), hasResult: false }
    refuseOther(failure.workerId, worker)
    this.#finish(response, { report: failure, end: { ...end, elsewhere } })
  }

  /** Bytes of the report of a task: many only where the query names one that this worker may report. @throws Refusal 403, 404 */
  #mostReport({ url, worker }: Asked): number {
    const id = url.searchParams.get('jobId')
    if (id === null) return SMALL_BODY
    this.#checkedTaking(id, worker)
    return MOST_REPORT
  }

  /** @throws Refusal 403, 404 */
  #checkedTaking(id: string, worker: string): Taking {
    const taking = this.#store.mayReport(id, worker)
    if (taking === 'unknown') throw new Refusal(404, 'there is no such task')
    if (taking === 'foreign') throw new Refusal(403, 'the task is another worker’s')
    return taking
  }

  #finish(
    response: ServerResponse,
    input: {
      readonly report: { readonly jobId: string; readonly workerId: string }
      readonly end: End
      readonly zip?: Buffer
    },
  ): void {
    const { jobId, workerId } = input.report
    this.#store.seen(workerId, this.#now())
    const taking = this.#checkedTaking(jobId, workerId)
    if (taking === 'taken') {
      // The file first: a result that says that it has files has them.
      if (input.zip !== undefined) this.#write('results', jobId, input.zip)
      this.#store.finish(jobId, workerId, { end: input.end, nowMs: this.#now() })
      this.#live.forget(jobId)
    }
    send(response, 200, { success: true, message: taking === 'taken' ? 'taken' : 'the task was over already' })
    this.#told(jobId)
    this.#serveWaiters()
  }

  // ---- what all share

  /**
   * The sender of a request, before anything else of the request is read. With a secret every step needs the token of the name: a step
   * without it would give tasks, files and reports to any client that leaves the token out.
   * @throws Refusal 400, 401, 403
   */
  #agentOf(request: IncomingMessage): string {
    const worker = workerOf(request)
    if (this.#secret !== undefined && this.#bearer(request, this.#secret) !== worker)
      throw new Refusal(403, 'the token is another worker’s')
    return worker
  }

  #showsToken(request: IncomingMessage): boolean {
    try {
      return this.#secret !== undefined && this.#bearer(request, this.#secret) !== ''
    } catch {
      return false // Its answer says why.
    }
  }

  /** The worker whose token a request has. @throws Refusal 401 */
  #bearer(request: IncomingMessage, secret: string): string {
    const token = tokenOf(request)
    if (token === undefined)
      throw new Refusal(
        401,
        'a token is required at every step: start the agent with the WORKER_TOKEN_SECRET of this server',
      )
    try {
      return workerOfToken(token, { secret, nowMs: this.#now() })
    } catch (error) {
      throw error instanceof TokenError ? new Refusal(401, error.message) : error
    }
  }

  #taskIn(url: URL): StoredTask {
    const [id = ''] = /[0-9a-f]{32}/.exec(url.pathname) ?? []
    const task = this.#store.task(id)
    if (task === undefined) throw new Refusal(404, 'there is no such task')
    return task
  }

  /** The task that an agent speaks of, its own or one that it had before; a sign of its life. */
  #givenTask(worker: string, id: string): StoredTask {
    this.#store.seen(worker, this.#now())
    this.#resume(worker)
    const task = this.#store.task(id)
    if (task?.worker === undefined || task.worker === null) throw new Refusal(404, 'there is no such task')
    return task
  }

  /** A worker speaks, so it has not lost the tasks that were taken for lost with it. */
  #resume(worker: string): void {
    for (const id of this.#store.returned(worker)) this.#told(id)
  }

  /** @param id one of our own */
  #write(kind: 'files' | 'results', id: string, bytes: Buffer): void {
    const file = join(this.#directory, kind, id)
    writeFileSync(`${file}.new`, bytes, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }

  #sweep(): void {
    const nowMs = this.#now()
    // While the server did not run, no agent could be heard: that is not the silence of an agent.
    if (Math.abs(nowMs - this.#sweptMs) > STALL_MS) this.#listeningSinceMs = nowMs
    this.#sweptMs = nowMs
    const changed = nowMs - this.#listeningSinceMs < OFFLINE_AFTER_MS ? [] : this.#store.takeBack(nowMs)
    for (const id of changed) this.#told(id)
    for (const id of this.#store.forgetOldest(this.#keptTasks))
      for (const kind of ['files', 'results']) rmSync(join(this.#directory, kind, id), { force: true })
    if (changed.length > 0) this.#serveWaiters()
    this.#toldAgents()
  }

  #told(id: string): void {
    if (!this.#live.isWatched) return
    const task = this.#store.task(id)
    this.#live.tell('task', task && withWait(task, this.#store.workers(this.#now())))
  }

  #toldAgents(): void {
    if (!this.#live.isWatched) return
    const agents = this.#store.workers(this.#now())
    this.#live.tell('agent', agents)
    // Tasks with needs wait for other agents when one has come or gone.
    const waiting = this.#store.tasks().filter(({ state, require }) => state === 'queued' && require.length > 0)
    for (const task of waiting) this.#live.tell('task', withWait(task, agents))
  }
}

/** With why it waits, where no agent that is online can hold what it needs. */
function withWait(task: StoredTask, agents: readonly StoredWorker[]): StoredTask & { readonly waitsFor?: string } {
  if (task.state !== 'queued' || task.require.length === 0) return task
  const holds = agents
    .filter(({ isOnline }) => isOnline)
    .map(({ facts }) => ('isolation' in facts && facts.isolation?.holds) || [])
  if (holds.some((held) => task.require.every((need) => held.includes(need)))) return task
  return { ...task, waitsFor: `an agent that holds ${task.require.join(', ')}: none is online` }
}

function tokenOf({ headers }: IncomingMessage): string | undefined {
  const other = headers['x-worker-token']
  return /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1] ?? (typeof other === 'string' ? other : undefined)
}

/**
 * The worker that asks. A browser sends our header only after a preflight, which no answer here allows, so no page of
 * another origin can take a task, whichever headers its browser lacks. @throws Refusal 403, 400
 */
function workerOf({ headers }: IncomingMessage): string {
  const named = headers['x-worker-id']
  if (typeof named !== 'string') throw new Refusal(403, 'an agent names itself in the header X-Worker-Id')
  const worker = orElse('', () => decodeURIComponent(named))
  if (worker === '' || worker.length > LONGEST_NAME)
    throw new Refusal(400, `X-Worker-Id: expected 1 to ${LONGEST_NAME} characters, percent-encoded`)
  return worker
}

/** @throws Refusal 403 where a body or query names another worker than the header */
function refuseOther(named: string | null, worker: string): void {
  if (named !== worker) throw new Refusal(403, 'workerId: expected the name in the header X-Worker-Id')
}

/**
 * A browser lets every web page send requests to 127.0.0.1. It says of which site the page is (Sec-Fetch-Site; Origin, which a GET lacks),
 * and a name of theirs that leads here is in the host. @throws Refusal 403
 */
function refuseForeignPages({ headers }: IncomingMessage): void {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers
  if (!/^(?:127\.0\.0\.1|localhost)(?::\d+)?$/.test(host)) throw new Refusal(403, 'this server is known as 127.0.0.1')
  if (origin !== undefined && origin !== `http://${host}`) throw new Refusal(403, 'this is for its own page only')
  if (site !== 'none' && site !== 'same-origin') throw new Refusal(403, 'this is for its own page only')
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
  response.end(JSON.stringify(body))
}

function refuse(response: ServerResponse, error: unknown): void {
  // A stream that broke off has no other answer than its end.
  if (response.headersSent) {
    response.destroy()
    return
  }
  if (error instanceof Refusal) send(response, error.status, { success: false, message: error.message })
  else send(response, 500, { success: false, message: (error as Error).message })
}
