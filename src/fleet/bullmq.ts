/**
 * Tasks of a queue of BullMQ. Redis has the queue and BullMQ the rules: order, priority, delay, rate limits, flows, attempts, and the lock
 * by which a job is one machine's. Nothing of that is here; docs/reference/fleet-server.md says what goes into a job and what comes out.
 *
 *     BullMQ's worker ─ processor(job) ─► handed ─► take() ─► engine ─► report() ─ resolves or rejects the processor ─► BullMQ
 *
 * As many jobs as there are slots are fetched. BullMQ renews their locks; when a lock is lost (this machine was frozen, or Redis away for
 * long) the job is another machine's by then, so ours is ended and its report rejected by Redis: a job ends once.
 */
import { type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq'
import { z } from 'zod'
import { NEEDS, neutralise } from '../core.ts'
import type { FinishedTask, Task, TaskOutput, TaskReport, TaskSource } from './port.ts'
import { later } from './retry.ts'
import { commandLines } from './task.ts'

export interface QueueSourceOptions {
  /** `redis://USER@HOST:PORT/DB?queue=NAME`. */
  readonly server: URL
  readonly password?: string | undefined
  /** Of this agent, recorded with each job. */
  readonly name: string
  readonly slots: number
  readonly log: (line: string) => void
  /** Milliseconds that a lock lasts without being renewed. */
  readonly lockMs: number
  /** Aborted: after a moment nothing waits for Redis any more. */
  readonly end: AbortSignal
}

/** Milliseconds for the last words to Redis. */
const GOODBYE_MS = 3_000

export const STANDARD_QUEUE = 'llm-do'
/** A job whose machine died is begun again so often, then it fails: three machines that die of it are enough. */
const MOST_STALLS = 2
/** Characters of output of one task that go out live; the report holds the rest. Redis keeps the last 10000 events of a queue. */
const LIVE_CHARACTERS = 64 * 1024
/** Bytes of a ZIP that a result holds; larger ones stay out of Redis. */
const MOST_RESULT = 8 * 1024 * 1024
/** Characters of what the children of a job have ended with, as its input. */
const MOST_CHILDREN = 64 * 1024 * 1024

const text = z.string().max(65_536)

/** The data of a job. */
const DATA = z.object({
  /** Lines are commands of a shell, lists are words. */
  command: z.union([text.min(1), z.array(z.array(text)).min(1)]),
  filesZipBase64: z.base64().optional(),
  timeoutMs: z.number().int().positive().optional(),
  stdin: z.string().optional(),
  /** For a parent in a flow: the results of its children are its standard input. */
  childrenOnStdin: z.boolean().default(false),
  env: z.record(z.string(), text).optional(),
  require: z.array(z.enum(NEEDS)).optional(),
  /** Any exit code but 0 is a failure of the job, which BullMQ tries again or lets its parent wait for. */
  mustSucceed: z.boolean().default(false),
})

/** The value of a job that has ended. */
export type QueueResult = Omit<FinishedTask, 'resultZip'> & { readonly resultZipBase64?: string }

/** Set to have a running job ended; one that waits is removed by BullMQ's own `job.remove()`. */
export const cancelKey = (queue: string, id: string): string => `llm-do:cancel:${queue}:${id}`

/** One fetched job, from the processor's call to its end. */
interface Handed {
  readonly job: Job
  readonly task: Task
  readonly mustSucceed: boolean
  readonly end: (value: QueueResult) => void
  readonly fail: (error: Error) => void
  /** It goes back to the queue and costs no attempt. */
  readonly giveBack: () => Promise<void>
  live: number
}

export class QueueSource implements TaskSource {
  readonly queue: string
  readonly #worker: Worker
  readonly #handed = new Map<Task, Handed>()
  readonly #waiting: Handed[] = []
  readonly #takers: ((task: Task | undefined) => void)[] = []
  readonly #lost = new Set<string>()
  #isDraining = false
  /** Resolves when nothing is waited for any more: BullMQ waits for a connection without end. */
  readonly #over: Promise<void>

  constructor({ server, password, name, slots, log, lockMs, end }: QueueSourceOptions) {
    this.#over = aborted(later(end, GOODBYE_MS).signal)
    const url = new URL(server)
    this.queue = url.searchParams.get('queue') || STANDARD_QUEUE
    url.search = ''
    const connection = { url: url.href, maxRetriesPerRequest: null, ...(password && { password }) }
    this.#worker = new Worker(this.queue, (job, token) => this.#process(job, token ?? ''), {
      connection,
      name,
      concurrency: slots,
      autorun: false,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      maxStalledCount: MOST_STALLS,
    })
    this.#worker.on('error', (error) => log(`the queue: ${neutralise(error.message)}`))
    this.#worker.on('lockRenewalFailed', (ids) => {
      for (const id of ids) this.#lost.add(id)
    })
  }

  take(signal: AbortSignal): Promise<Task | undefined> {
    if (signal.aborted) return Promise.resolve(undefined)
    if (!this.#worker.isRunning()) {
      void this.#worker.run()
      signal.addEventListener('abort', () => void this.#drain(), { once: true })
    }
    const next = this.#waiting.shift()
    return next === undefined ? new Promise((resolve) => this.#takers.push(resolve)) : Promise.resolve(next.task)
  }

  async progress(task: Task, { stream, text }: TaskOutput): Promise<void> {
    const handed = this.#handed.get(task)
    if (handed === undefined) return
    const live = text.slice(0, LIVE_CHARACTERS - handed.live)
    handed.live += live.length
    // Not awaited: while Redis is away the command continues, and the report has it all.
    if (live !== '') void handed.job.updateProgress({ stream, text: live }).catch(() => undefined)
  }

  async isCancelled(task: Task): Promise<boolean> {
    const id = this.#handed.get(task)?.job.id
    if (id === undefined || this.#lost.has(id)) return true
    try {
      const client = await this.#worker.backend.client
      return (await client.get(cancelKey(this.queue, id))) !== null
    } catch {
      return false // The next question may be answered.
    }
  }

  /** BullMQ delivers it, and again while Redis is away; `close` waits for that. */
  async report(task: Task, report: TaskReport): Promise<void> {
    const handed = this.#handed.get(task)
    if (handed === undefined) return
    this.#handed.delete(task)
    if (report.status === 'refused') {
      if (report.cause === 'shutdown') return await this.#unlessOver(handed.giveBack())
      const message = `${report.code === undefined ? '' : `${report.code}: `}${report.message}`
      handed.fail(report.elsewhere ? new Error(message) : new UnrecoverableError(message))
    } else if (report.reason === 'cancelled') handed.fail(new UnrecoverableError('cancelled'))
    else if (handed.mustSucceed && report.exitCode !== 0)
      handed.fail(new Error(`${report.reason}: exit code ${report.exitCode} ${report.message}`.trim()))
    else handed.end(resultOf(report))
  }

  /** Waits until all reports are in Redis, or `end` was aborted a moment ago. */
  async close(): Promise<void> {
    await this.#unlessOver(this.#drain().then(() => this.#worker.close()))
  }

  /** Another agent repeats an undelivered task when its lock has expired. */
  async #unlessOver(work: Promise<void>): Promise<void> {
    work.catch(() => undefined)
    await Promise.race([work, this.#over])
  }

  /** Fetches nothing more; tasks that were not taken go back. */
  async #drain(): Promise<void> {
    this.#isDraining = true
    for (const taker of this.#takers.splice(0)) taker(undefined)
    await this.#worker.pause(true)
    for (const handed of this.#waiting.splice(0)) await handed.giveBack()
  }

  async #process(job: Job, token: string): Promise<QueueResult> {
    const id = job.id ?? ''
    this.#lost.delete(id)
    const parsed = DATA.safeParse(job.data)
    if (!parsed.success) {
      const [problem] = parsed.error.issues
      throw new UnrecoverableError(`data.${problem?.path.join('.') ?? ''}: ${problem?.message ?? 'wrong'}`)
    }
    const data = parsed.data.childrenOnStdin ? { ...parsed.data, stdin: await childrenOf(job) } : parsed.data
    return await new Promise<QueueResult>((end, fail) => {
      const giveBack = async (): Promise<void> => {
        this.#handed.delete(task)
        await job.moveToWait(token).then(() => fail(new WaitingError()), fail)
      }
      const task = taskOf(`${id}#${job.attemptsStarted}`, data)
      const handed: Handed = { job, task, mustSucceed: data.mustSucceed, end, fail, giveBack, live: 0 }
      this.#handed.set(task, handed)
      if (this.#isDraining) {
        void giveBack()
        return
      }
      const taker = this.#takers.shift()
      if (taker === undefined) this.#waiting.push(handed)
      else taker(task)
    })
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** Lines of JSON, `{id, queue, value}`, in the order of their identifiers. */
async function childrenOf(job: Job): Promise<string> {
  const values = Object.entries(await job.getChildrenValues())
  const lines = values
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => JSON.stringify({ ...childOf(key), value }))
  const text = lines.map((line) => `${line}\n`).join('')
  if (text.length > MOST_CHILDREN)
    throw new UnrecoverableError(
      `data.childrenOnStdin: the results of the children are more than ${MOST_CHILDREN} characters`,
    )
  return text
}

/** `PREFIX:QUEUE:ID`; the name of a queue has no colon. */
function childOf(key: string): { readonly id: string; readonly queue: string } {
  const [, queue = '', ...id] = key.split(':')
  return { id: id.join(':'), queue }
}

/** @param id differs for each attempt: one that lost its lock may still be ending here when the next begins */
function taskOf(id: string, { command, filesZipBase64, mustSucceed: _, ...rest }: z.infer<typeof DATA>): Task {
  const { timeoutMs, stdin, env, require } = rest
  return {
    id,
    commands: typeof command === 'string' ? commandLines(command) : command,
    ...(filesZipBase64 !== undefined && { files: { open: async () => bytesOf(filesZipBase64) } }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(stdin !== undefined && { stdin }),
    ...(env !== undefined && { env }),
    ...(require !== undefined && { require }),
  }
}

async function* bytesOf(base64: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(base64, 'base64')
}

function resultOf({ resultZip, ...report }: FinishedTask): QueueResult {
  if (resultZip === undefined) return report
  if (resultZip.length > MOST_RESULT)
    return { ...report, warnings: [...report.warnings, `the files it made are larger than ${MOST_RESULT} bytes`] }
  return { ...report, resultZipBase64: Buffer.from(resultZip).toString('base64') }
}
