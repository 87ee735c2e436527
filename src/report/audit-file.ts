/**
 * The audit log as a file: appended to by many runs at once, checked by `llm-do audit verify`.
 * Log and lock are opened before the run, and room is kept for its line. After it the writer takes the lock, reads the last line, and adds
 * its own by the descriptor it has: what the run does to the names does not reach its line.
 *
 * Edge: the file system.
 */
import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { SandboxError } from '../error.ts'
import { lockOf, NoRoom, openLock, waitForLock } from '../os/file-lock.ts'
import { shellWord } from '../text/shell-word.ts'
import { type AuditEntry, auditLine, CHAIN_START, checkAuditLine, sha256 } from './audit.ts'

const LINE_FEED = 0x0a
/** Bytes read at once when looking for the last line from behind. */
const CHUNK = 64 * 1024

/** O_NONBLOCK: a FIFO must be refused, not waited for. */
const FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK

function refuse(file: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError('POLICY_INVALID', `--audit ${file}: ${why}`, {
    hint: 'name a regular file of your own in a directory that exists; it is created when it is missing',
    cause,
  })
}

const OPEN_FAILURES: Readonly<Record<string, string>> = {
  ELOOP: 'expected a regular file, got a symbolic link',
  EISDIR: 'expected a regular file, got a directory',
  ENXIO: 'expected a regular file, got a FIFO or a socket',
  ENOENT: 'its directory does not exist',
  ENOTDIR: 'a part of its path is not a directory',
  EACCES: 'permission denied',
  EROFS: 'it is on a read-only file system',
}

function open(file: string): number {
  const descriptor = tryOpen(file)
  if (fstatSync(descriptor).isFile()) return descriptor
  closeSync(descriptor)
  throw refuse(file, 'expected a regular file, got something else')
}

function tryOpen(file: string): number {
  try {
    return openSync(file, FLAGS, 0o600)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw refuse(file, OPEN_FAILURES[code] ?? message, error)
  }
}

/** The bytes after the last line feed that is not the very last byte, and whether a line feed ends them. */
function lastLine(descriptor: number): { readonly bytes: Buffer; readonly ended: boolean } {
  const { size } = fstatSync(descriptor)
  const parts: Buffer[] = []
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK)
    const chunk = Buffer.alloc(end - start)
    readSync(descriptor, chunk, 0, chunk.length, start)
    // In the last chunk the line feed that ends the line is not the one that is looked for.
    const found = end === size ? chunk.subarray(0, -1).lastIndexOf(LINE_FEED) : chunk.lastIndexOf(LINE_FEED)
    parts.unshift(found === -1 ? chunk : chunk.subarray(found + 1))
    if (found !== -1) break
    end = start
  }
  const all = Buffer.concat(parts)
  const ended = all.at(-1) === LINE_FEED
  return { bytes: ended ? all.subarray(0, -1) : all, ended }
}

/** A line that cannot be written whole is taken back: under the lock no other writer has added one after it. */
function append(descriptor: number, entry: AuditEntry): void {
  const last = lastLine(descriptor)
  const previous = last.bytes.length === 0 ? CHAIN_START : sha256(last.bytes)
  // A writer that died half-way left a line without an end. It stays as it is, `audit verify` names it.
  const separator = last.bytes.length === 0 || last.ended ? '' : '\n'
  const { size } = fstatSync(descriptor)
  try {
    writeFileSync(descriptor, `${separator}${auditLine(entry, previous)}\n`)
  } catch (error) {
    ftruncateSync(descriptor, size)
    throw error
  }
}

/** The directory is resolved, the file itself is not: every spelling of one log takes the same lock. */
function canonical(file: string): string {
  try {
    return join(realpathSync(dirname(file)), basename(file))
  } catch (error) {
    throw refusedBy(file, error)
  }
}

/** Whatever the file system refuses (a directory that cannot be written to) becomes one kind of error. */
function refusedBy(file: string, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error
  const { code = '', message } = error as NodeJS.ErrnoException
  return refuse(file, OPEN_FAILURES[code] ?? message, error)
}

/** Bytes of a line but for the words of the command, and what a byte of these takes at most (\u0000). As native/client/audit-log.h has them. */
const [ROOM, ROOM_PER_BYTE] = [64 * 1024, 6]

export interface AuditLog {
  /**
   * Appends the line of the run, and closes the log.
   * @throws SandboxError OUTPUT_FAILED: the run is over, and is not in the log
   */
  readonly append: (entry: AuditEntry) => Promise<void>
  /** Without a line. May come twice. */
  readonly close: () => void
}

interface Opened {
  readonly log: number
  readonly lock: number
}

/**
 * Opens the log before anything runs: a run that cannot be recorded must not happen.
 * @throws SandboxError POLICY_INVALID for anything but a regular file, SETUP_FAILED for a lock that is never released or a full disk
 */
export async function openAuditLog(file: string, command: readonly string[]): Promise<AuditLog> {
  const log = canonical(file)
  const opened = openBoth(file, log)
  const bytes = ROOM + ROOM_PER_BYTE * Buffer.byteLength(command.join(''))
  try {
    const release = await waitForLock({ lock: lockOf(log), fd: opened.lock, room: { fd: opened.log, bytes } })
    release()
  } catch (error) {
    closeSync(opened.log)
    closeSync(opened.lock)
    throw error instanceof NoRoom ? full(file, bytes, error) : error
  }
  return writerTo(log, opened)
}

function openBoth(file: string, path: string): Opened {
  const log = open(path)
  try {
    return { log, lock: openLock(lockOf(path)) }
  } catch (error) {
    closeSync(log)
    throw refusedBy(file, error)
  }
}

function full(file: string, bytes: number, cause: Error): SandboxError {
  const room = `a line of up to ${Math.ceil(bytes / 1024)} KiB`
  return new SandboxError('SETUP_FAILED', `--audit ${file}: no room for ${room}: ${cause.message}; nothing was run`, {
    hint: `df -h ${shellWord(dirname(file))}`,
    cause,
  })
}

/**
 * The log of a run that the client has made, by the descriptors it leaves. They are opened anew: programs that this process starts must not
 * have them, as one that stays would hold the lock.
 */
export function adoptAuditLog(file: string, { log, lock }: Opened): AuditLog {
  const opened = {
    log: openSync(`/proc/self/fd/${log}`, constants.O_RDWR | constants.O_APPEND),
    lock: openSync(`/proc/self/fd/${lock}`, constants.O_WRONLY),
  }
  closeSync(log)
  closeSync(lock)
  return writerTo(file, opened)
}

function writerTo(file: string, { log, lock }: Opened): AuditLog {
  let isOpen = true
  const close = (): void => {
    if (!isOpen) return
    isOpen = false
    closeSync(log)
    closeSync(lock)
  }
  const write = async (entry: AuditEntry): Promise<void> => {
    try {
      const release = await waitForLock({ lock: lockOf(file), fd: lock })
      try {
        append(log, entry)
      } finally {
        release()
      }
    } catch (error) {
      throw unrecorded(file, error)
    } finally {
      close()
    }
  }
  return { append: write, close }
}

function unrecorded(file: string, cause: unknown): SandboxError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new SandboxError('OUTPUT_FAILED', `--audit ${file}: the run is over, and its line was not written: ${why}`, {
    hint: `ls -l ${shellWord(file)}; df -h ${shellWord(dirname(file))}   # this result is the only record of the run`,
    cause,
  })
}

export interface AuditVerdict {
  readonly lines: number
  /** Hash of the last line; keep it elsewhere to notice a log that was cut short. */
  readonly last: string
  /** `line 3: ...`, every broken place. */
  readonly problems: readonly string[]
}

/** The lines of a file without their ends; memory holds one of them. */
async function* linesOf(file: string): AsyncGenerator<Buffer> {
  const rest: Buffer[] = []
  for await (const chunk of createReadStream(file, { highWaterMark: CHUNK })) {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      yield Buffer.concat([...rest.splice(0), chunk.subarray(start, end)])
      start = end + 1
    }
    rest.push(chunk.subarray(start))
  }
  const unfinished = Buffer.concat(rest)
  if (unfinished.length > 0) yield unfinished
}

function unreadable(file: string, error: unknown): SandboxError {
  const { code = '', message } = error as NodeJS.ErrnoException
  const why = code === 'ENOENT' ? 'no such file' : (OPEN_FAILURES[code] ?? message)
  return new SandboxError('POLICY_INVALID', `${file}: ${why}`, {
    hint: `ls -ld ${shellWord(file)}   # a log is written by: llm-do exec --audit FILE -- COMMAND`,
    cause: error,
  })
}

/** The lines of a log or of results, as `llm-do report` reads them. @throws SandboxError POLICY_INVALID when the file cannot be read */
export async function* readLines(file: string): AsyncGenerator<Buffer> {
  try {
    yield* linesOf(file)
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** Reads a whole log and follows the chain. @throws SandboxError POLICY_INVALID when the file cannot be read */
export async function verifyAudit(file: string): Promise<AuditVerdict> {
  const problems: string[] = []
  let [lines, previous] = [0, CHAIN_START]
  for await (const line of readLines(file)) {
    lines += 1
    const problem = checkAuditLine(line, previous)
    if (problem !== undefined) problems.push(`line ${lines}: ${problem}`)
    previous = sha256(line)
  }
  return { lines, last: previous, problems }
}
