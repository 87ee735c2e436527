/** Tasks that are lines of JSON, and results that are lines again: the third source. Pure: lines come and go by its options. */
import { quoteText, SandboxError } from '../core.ts'
import { isOk, readTaskLine, resultLine } from './batch-line.ts'
import type { Task, TaskReport, TaskSource } from './port.ts'

export interface BatchOptions {
  readonly lines: AsyncIterable<string>
  /** Where the tasks work. */
  readonly directory: string
  /** IDs that have a result already. */
  readonly done: ReadonlySet<string>
  /** In the order of the input, not as they end. */
  readonly isOrdered: boolean
  readonly write: (line: string) => Promise<void>
  readonly onResult: (isOk: boolean) => void
}

/** Results that wait for one before them. */
const MOST_WAITING = 1_000

export class BatchSource implements TaskSource {
  private readonly lines: AsyncIterator<string>
  private readonly seen = new Set<string>()
  /** Order of tasks that were taken. */
  private readonly places = new Map<string, number>()
  private readonly waiting = new Map<number, string>()
  private readonly onRoom: (() => void)[] = []
  private lost: unknown
  private number = 0
  private taken = 0
  private written = 0
  private reading: Promise<unknown> = Promise.resolve()
  private writing: Promise<unknown> = Promise.resolve()

  constructor(private readonly options: BatchOptions) {
    this.lines = options.lines[Symbol.asyncIterator]()
  }

  /** @throws SandboxError USAGE for an ID that another line has: one of them would have no result; the error of a result that was lost */
  take(signal: AbortSignal): Promise<Task | undefined> {
    const turn = this.reading.then(() => this.next(signal))
    this.reading = turn.catch(() => undefined)
    return turn
  }

  async progress(): Promise<void> {
    // The output is in the result.
  }

  async isCancelled(): Promise<boolean> {
    return false
  }

  /** A task that a signal ended has no result: `--resume` takes it again. */
  async report({ id }: Task, report: TaskReport): Promise<void> {
    if (report.status === 'refused' && report.cause === 'shutdown') return
    this.options.onResult(isOk(report))
    const line = resultLine(id, report)
    const turn = this.writing.then(() => this.write(id, line))
    this.writing = turn.catch((error: unknown) => {
      this.lost ??= error
    })
    await turn
  }

  private async next(signal: AbortSignal): Promise<Task | undefined> {
    while (!signal.aborted) {
      // Where one result was lost, the next ones would be, too, and a status of 0 would be a lie.
      if (this.lost !== undefined) throw this.lost
      if (this.waiting.size >= MOST_WAITING) await this.room(signal)
      const line = await unlessAborted(this.lines.next(), signal)
      if (line === undefined || line.done === true) return undefined
      this.number += 1
      const task = line.value.trim() === '' ? undefined : await this.taskOf(line.value)
      if (task !== undefined) return task
    }
    return undefined
  }

  private async taskOf(line: string): Promise<Task | undefined> {
    const read = readTaskLine(line, this.number, this.options.directory)
    if (this.seen.has(read.id))
      throw new SandboxError('USAGE', `line ${this.number}: another line has the ID ${quoteText(read.id)}, too`, {
        hint: 'give each line another ID, or none: then the number of the line is the ID',
      })
    this.seen.add(read.id)
    if (this.options.done.has(read.id)) return undefined
    this.places.set(read.id, this.taken)
    this.taken += 1
    if (!('problem' in read)) return read
    const { id, problem } = read
    await this.report({ id, commands: [] }, { status: 'refused', cause: 'invalid', message: problem, elsewhere: false })
    return undefined
  }

  private async write(id: string, line: string): Promise<void> {
    const place = this.places.get(id) ?? this.written
    this.places.delete(id)
    if (!this.options.isOrdered) return await this.options.write(line)
    this.waiting.set(place, line)
    for (let next = this.waiting.get(this.written); next !== undefined; next = this.waiting.get(this.written)) {
      this.waiting.delete(this.written)
      this.written += 1
      await this.options.write(next)
    }
    for (const proceed of this.onRoom.splice(0)) proceed()
  }

  private room(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.onRoom.push(resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }
}

/** An input that never ends must not keep us from ending. */
async function unlessAborted<T>(coming: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return undefined
  const stop = new AbortController()
  const aborted = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true, signal: stop.signal })
  })
  return await Promise.race([coming, aborted]).finally(() => stop.abort())
}
