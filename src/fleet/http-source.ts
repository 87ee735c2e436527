/**
 * Tasks of a server over HTTP: the agent's side of the worker protocol (docs/reference/fleet.md). Fields that are ours are added to requests;
 * other servers pass over them.
 *
 *     register ─► get-job ─► [files] ─► stream-output, check-cancel ─► submit-result      (heartbeat meanwhile)
 *
 * A job is in the journal from before it is a task until the server has its report.
 */
import { z } from 'zod'
import { isMapping, type Mapping, NEEDS, neutralise } from '../core.ts'
import { ProtocolError, type ServerClient, StatusError } from './http-client.ts'
import type { Journal, ReportRequest } from './journal.ts'
import type { FinishedTask, RefusedTask, Task, TaskOutput, TaskReport, TaskSource } from './port.ts'
import { delayMs, jittered, later, pause, persist } from './retry.ts'
import { commandLines, taskProblem } from './task.ts'

export interface HttpSourceOptions {
  readonly client: ServerClient
  readonly journal: Journal
  readonly workerId: string
  /** Milliseconds between polls while the queue is empty. */
  readonly pollMs: number
  /** Resolves when the server knows this worker again. */
  readonly register: () => Promise<void>
  /** Aborted: after a moment nothing is tried again; what is owed stays in the journal. */
  readonly end: AbortSignal
  readonly log: (line: string) => void
}

const EXPECTED_NEEDS = `expected a list of ${NEEDS.join(', ')}`

/** A job as servers give it out; fields without a value are absent. */
const JOB = z.object({
  command: z.string('expected a text'),
  fileUrl: z.string('expected an address').nullish(),
  timeoutMs: z.number('expected milliseconds').nullish(),
  require: z.array(z.enum(NEEDS, EXPECTED_NEEDS), EXPECTED_NEEDS).nullish(),
})

/** A server that holds a poll until there is a job answers within this. */
const POLL_WITHIN_MS = 90_000
/** Seconds that it is asked to hold it; others do not know the word. */
const HOLD_S = 25
const LAST_ANSWER_MS = 1_000
const GOODBYE_MS = 3_000
/** Milliseconds for what is not worth waiting for: the command does. */
const BRIEF_MS = 5_000
/** Milliseconds in which files are requested again: a restart of the server costs the task no attempt. */
const FILES_WITHIN_MS = 60_000
/** Output after a piece that could not be sent is dropped for so long: a server that is away must not stop the command. */
const MUTE_MS = 10_000

export class HttpSource implements TaskSource {
  /** Jobs between `take` and the end of `report`. */
  private readonly held = new Set<string>()
  private readonly muted = new Set<string>()
  private polling: Promise<unknown> = Promise.resolve()
  /** Tasks that ended with the agent are still reported. */
  private readonly silence: AbortSignal

  constructor(private readonly options: HttpSourceOptions) {
    this.silence = later(options.end, GOODBYE_MS).signal
  }

  get running(): readonly string[] {
    return [...this.held]
  }

  /** Tells the server what an agent before this one has not: jobs that died with it, and reports that did not arrive. */
  async settle(): Promise<void> {
    for (const { jobId, request } of this.options.journal.owed()) {
      const owed = request ?? this.requestOf(jobId, CRASHED)
      this.options.journal.ended(jobId, owed)
      await this.deliver(jobId, owed)
      this.options.log(`${neutralise(jobId)}: reported for the agent before this one`)
    }
  }

  /** One slot asks at a time: the others would get the same answer. */
  take(signal: AbortSignal): Promise<Task | undefined> {
    const turn = this.polling.then(() => this.poll(signal))
    this.polling = turn.catch(() => undefined)
    return turn
  }

  async progress(task: Task, { stream, text }: TaskOutput): Promise<void> {
    if (this.muted.has(task.id)) return
    const { client, end } = this.options
    const body = { jobId: task.id, data: text, type: stream }
    try {
      const { status } = await client.ask('api/jobs/stream-output', {
        method: 'POST',
        body,
        signal: end,
        withinMs: BRIEF_MS,
      })
      if (status < 500) return
    } catch {
      // Said below.
    }
    this.muted.add(task.id)
    void pause(MUTE_MS, end).then(() => this.muted.delete(task.id))
  }

  async isCancelled(task: Task): Promise<boolean> {
    const { client, end } = this.options
    try {
      const path = `api/jobs/check-cancel?jobId=${encodeURIComponent(task.id)}`
      const { status, body } = await client.ask(path, { signal: end, withinMs: BRIEF_MS })
      return status === 200 && body['cancelRequested'] === true
    } catch {
      return false // The next question may be answered.
    }
  }

  async report(task: Task, report: TaskReport): Promise<void> {
    const request = this.requestOf(task.id, report)
    try {
      this.options.journal.ended(task.id, request)
      await this.deliver(task.id, request)
    } finally {
      this.held.delete(task.id)
    }
  }

  private async poll(signal: AbortSignal): Promise<Task | undefined> {
    // A job that the server gives out at this very moment would be lost with its answer.
    const asking = later(signal, LAST_ANSWER_MS)
    try {
      return await this.pollUntil(signal, asking.signal)
    } finally {
      // The same signal is for every poll of an agent's life.
      asking.forget()
    }
  }

  private async pollUntil(signal: AbortSignal, asking: AbortSignal): Promise<Task | undefined> {
    for (let failures = 0; !signal.aborted; ) {
      // From the question on: a server that has held it for as long is asked again at once.
      const next = pause(jittered(this.options.pollMs), signal)
      const found = await this.askForJob(asking).catch((error: unknown) => error as Error)
      if (found instanceof Error) {
        if (failures === 0 && !signal.aborted) this.options.log(`no job can be had: ${neutralise(found.message)}`)
        await pause(delayMs(failures), signal)
        failures += 1
        continue
      }
      failures = 0
      const task = found === undefined ? undefined : await this.accept(found)
      if (task !== undefined && !signal.aborted) return task
      if (task !== undefined) await this.report(task, NOT_BEGUN)
      // Also after a job that is none for us: a server that repeats itself is not asked faster.
      await next
    }
    return undefined
  }

  private async askForJob(signal: AbortSignal): Promise<Mapping | undefined> {
    const { client, workerId, register } = this.options
    const path = `api/jobs/get-job?workerId=${encodeURIComponent(workerId)}&wait=${HOLD_S}`
    const answer = await client.ask(path, { signal, withinMs: POLL_WITHIN_MS })
    const { job } = answer.body
    if (answer.status === 404) await register()
    else if (answer.status > 299) throw new StatusError('get-job', answer)
    return answer.status === 200 && isMapping(job) ? job : undefined
  }

  /** @returns undefined for what is not run: it is under way, was reported already, or cannot be understood */
  private async accept(found: Mapping): Promise<Task | undefined> {
    const { journal, log } = this.options
    const { jobId } = found
    if (typeof jobId !== 'string' || jobId === '' || jobId.length > 256) {
      log('the server gave a job without a usable ID')
      return undefined
    }
    if (this.held.has(jobId)) return undefined
    const before = journal.reportOf(jobId)
    if (before !== undefined && isFinal(before)) {
      log(`${neutralise(jobId)}: given again, so its report is sent again`)
      await this.send(before).catch((error: unknown) => log(neutralise((error as Error).message)))
      return undefined
    }
    journal.taken(jobId)
    this.held.add(jobId)
    const task = this.taskOf(jobId, found)
    const problem = typeof task === 'string' ? task : taskProblem(task)
    if (problem === undefined) return task as Task
    await this.report(
      { id: jobId, commands: [] },
      { status: 'refused', cause: 'invalid', message: problem, elsewhere: false },
    )
    return undefined
  }

  /** `filename` is not used: what a server calls a file is nothing on this machine. @returns what is wrong with it */
  private taskOf(id: string, found: Mapping): Task | string {
    const read = JOB.safeParse(found)
    if (!read.success) return read.error.issues.map(({ path, message }) => `${String(path[0])}: ${message}`)[0] ?? ''
    const { command, fileUrl, timeoutMs, require } = read.data
    return {
      id,
      commands: commandLines(command),
      ...(fileUrl && { files: { open: (signal) => this.download(fileUrl, signal) } }),
      ...(typeof timeoutMs === 'number' && { timeoutMs }),
      ...(require && { require }),
    }
  }

  private async download(fileUrl: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return await persist(() => this.options.client.download(fileUrl, signal), {
      signal: AbortSignal.any([signal, AbortSignal.timeout(FILES_WITHIN_MS)]),
      isFinal: (error) => error instanceof ProtocolError || (error instanceof StatusError && error.status < 500),
      onError: (error) =>
        this.options.log(`the files will be asked for again: ${neutralise((error as Error).message)}`),
    })
  }

  private requestOf(jobId: string, report: TaskReport): ReportRequest {
    const { workerId } = this.options
    return report.status === 'finished'
      ? { method: 'POST', body: { jobId, workerId, ...finishedBody(jobId, report) } }
      : { method: 'PUT', body: { jobId, workerId, ...refusedBody(report) } }
  }

  private async deliver(jobId: string, request: ReportRequest): Promise<void> {
    const { log, journal } = this.options
    await persist(() => this.send(request), {
      signal: this.silence,
      isFinal: () => false,
      onError: (error) =>
        log(`${neutralise(jobId)}: the report will be sent again: ${neutralise((error as Error).message)}`),
    })
    journal.delivered(jobId)
  }

  /** @throws what another attempt may mend */
  private async send(request: ReportRequest): Promise<void> {
    const { client, log } = this.options
    const ask = ({ method, body }: ReportRequest) =>
      client
        .ask(`api/jobs/submit-result?jobId=${encodeURIComponent(String(body['jobId']))}`, {
          method,
          body,
          signal: this.silence,
        })
        .catch((error: unknown) => {
          if (!(error instanceof ProtocolError)) throw error
          log(neutralise(error.message))
          return undefined
        })
    const answer = await ask(request)
    if (answer === undefined || answer.status < 300) return
    if (answer.status === 413 && 'resultZipBase64' in request.body) return await this.send(withoutFiles(request))
    const error = new StatusError('submit-result', answer)
    if (answer.status >= 500 || answer.status === 429 || answer.status === 408) throw error
    // 403: the job is another worker's by now. It and every other "no" is the server's last word.
    log(neutralise(error.message))
  }
}

/**
 * Whether the task has run to its end here. One that did not, or whose run was ended because another agent had it by then, is tried again:
 * that is what it is given again for.
 */
const isFinal = ({ body }: ReportRequest): boolean => body['elsewhere'] !== true && body['reason'] !== 'cancelled'

const NOT_BEGUN: RefusedTask = {
  status: 'refused',
  cause: 'shutdown',
  message: 'this machine takes no more jobs',
  elsewhere: true,
}

const CRASHED: RefusedTask = {
  status: 'refused',
  cause: 'crash',
  message: 'the agent was ended while the job ran; nothing of it is left',
  elsewhere: true,
}

function finishedBody(jobId: string, report: FinishedTask): Mapping {
  const { status: _, stderr, message, warnings, resultZip, ...rest } = report
  const lines = [...(message === '' ? [] : [message]), ...warnings].map((line) => `llm-do: ${line}\n`)
  const separator = lines.length === 0 || stderr === '' || stderr.endsWith('\n') ? '' : '\n'
  return {
    ...rest,
    message,
    warnings,
    stderr: `${stderr}${separator}${lines.join('')}`,
    ...(resultZip !== undefined && {
      resultZipBase64: Buffer.from(resultZip.buffer, resultZip.byteOffset, resultZip.byteLength).toString('base64'),
      resultZipName: `${jobId.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)}-result.zip`,
    }),
  }
}

/** A number for servers that know only numbers: the sandbox, not the command, has failed. */
const SANDBOX_FAILED = 125

function refusedBody({ cause, code, message, elsewhere }: RefusedTask): Mapping {
  const advice = elsewhere ? ' (another machine may run it)' : ''
  return {
    errorMessage: `${code === undefined ? '' : `${code}: `}${message}${advice}`,
    exitCode: SANDBOX_FAILED,
    cause,
    elsewhere,
    ...(code !== undefined && { code }),
  }
}

function withoutFiles({ method, body }: ReportRequest): ReportRequest {
  const { resultZipBase64: _, resultZipName: __, ...rest } = body
  return {
    method,
    body: { ...rest, stderr: `${String(rest['stderr'] ?? '')}llm-do: the server takes no files of this size\n` },
  }
}
