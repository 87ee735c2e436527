/**
 * The jobs that an agent has taken, in files, so that an agent that was killed knows at its next start which reports are due. A job is one
 * file, named by a hash of its ID: `HASH.taken` while it runs, `HASH.report` with the request that reports it, `HASH.done` when the server
 * has that; the last ones are kept for a server that gives a job out twice. A rename changes the state.
 * Edge: the file system.
 */
import { createHash } from 'node:crypto'
import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { dropOldest, isOwnDirectory, jsonIn, makeDirectories, readPrivateFile, writePrivateFile } from '../core.ts'

const REQUEST = z.object({ method: z.enum(['POST', 'PUT']), body: z.record(z.string(), z.unknown()) })
/** Without a request it was taken and has not ended. */
const ENTRY = z.object({ jobId: z.string(), request: REQUEST.optional() })

/** Of submit-result. */
export type ReportRequest = Readonly<z.infer<typeof REQUEST>>
export type JournalEntry = z.infer<typeof ENTRY>

/** Reports that are kept for a second question. */
const MOST_DONE = 64
/** Bytes of one: twice the files of a report in Base64. */
const MOST_BYTES = 128 * 1024 * 1024

export class Journal {
  /**
   * @param directory private, made when it is missing
   * @throws Error where it cannot be had: an agent that forgets what it took would leave jobs running forever
   */

  constructor(
    private readonly directory: string,
    private readonly uid: number,
  ) {
    makeDirectories(directory, 0o700)
    if (!isOwnDirectory(directory, uid)) throw new Error(`${directory} is not a private directory of this user`)
  }

  taken(jobId: string): void {
    this.write(jobId, 'taken', { jobId })
  }

  /** From now on the job has ended, whatever becomes of the agent. */
  ended(jobId: string, request: ReportRequest): void {
    this.write(jobId, 'report', { jobId, request })
    rmSync(this.file(jobId, 'taken'), { force: true })
  }

  delivered(jobId: string): void {
    renameSync(this.file(jobId, 'report'), this.file(jobId, 'done'))
    dropOldest(this.directory, MOST_DONE, (name) => name.endsWith('.done'))
  }

  /** The report that the server has had already. */
  reportOf(jobId: string): ReportRequest | undefined {
    const bytes = this.bytesOf(this.file(jobId, 'done'))
    return bytes === undefined ? undefined : entryIn(bytes.toString())?.request
  }

  /** Reports that the server does not have yet. */
  owed(): readonly JournalEntry[] {
    const names = readdirSync(this.directory)
    const isOwed = (name: string): boolean =>
      name.endsWith('.report') || (name.endsWith('.taken') && !names.includes(name.replace(/taken$/, 'report')))
    return names.filter(isOwed).flatMap((name) => this.readOrDrop(name))
  }

  /** A damaged one names no job: its server learns from the next heartbeat that it does not run. */
  private readOrDrop(name: string): readonly JournalEntry[] {
    const file = join(this.directory, name)
    const bytes = this.bytesOf(file)
    if (bytes === undefined) return []
    const entry = entryIn(bytes.toString())
    if (entry !== undefined) return [entry]
    rmSync(file, { force: true })
    return []
  }

  private file(jobId: string, state: 'taken' | 'report' | 'done'): string {
    return join(this.directory, `${createHash('sha256').update(jobId).digest('hex')}.${state}`)
  }

  private write(jobId: string, state: 'taken' | 'report', entry: JournalEntry): void {
    const file = this.file(jobId, state)
    const place = {
      directory: this.directory,
      name: file.slice(this.directory.length + 1),
      uid: this.uid,
      isFlushed: true,
    }
    if (!writePrivateFile(place, JSON.stringify(entry)))
      throw new Error(`${this.directory} cannot be written: what this agent takes would be lost with it`)
  }

  private bytesOf(file: string): Buffer | undefined {
    return readPrivateFile(file, { uid: this.uid, most: MOST_BYTES })
  }
}

/** @returns undefined for what no agent has written, or not as a whole */
function entryIn(text: string): JournalEntry | undefined {
  return ENTRY.safeParse(jsonIn(text)).data
}
