/**
 * The audit log as a file: appended to by many runs at once, checked by `llm-do audit verify`.
 * A writer takes the lock, reads the last line, and adds its own in one write(2) with O_APPEND.
 *
 * Edge: the file system.
 */
import { closeSync, constants, createReadStream, fstatSync, openSync, readSync, realpathSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { SandboxError } from '../error.ts'
import { whileLocked } from '../os/file-lock.ts'
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

function append(file: string, entry: AuditEntry): void {
  const descriptor = open(file)
  try {
    const last = lastLine(descriptor)
    const previous = last.bytes.length === 0 ? CHAIN_START : sha256(last.bytes)
    // A writer that died half-way left a line without an end. It stays as it is, `audit verify` names it.
    const separator = last.bytes.length === 0 || last.ended ? '' : '\n'
    writeAll(descriptor, Buffer.from(`${separator}${auditLine(entry, previous)}\n`))
  } finally {
    closeSync(descriptor)
  }
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done)
}

/** The directory is resolved, the file itself is not: every spelling of one log takes the same lock. */
function canonical(file: string): string {
  try {
    return join(realpathSync(dirname(file)), basename(file))
  } catch (error) {
    throw refuse(file, OPEN_FAILURES[(error as NodeJS.ErrnoException).code ?? ''] ?? String(error), error)
  }
}

/** With the lock held; whatever the file system refuses (a directory that cannot be written to) becomes one kind of error. */
async function locked(file: string, work: (log: string) => void): Promise<void> {
  const log = canonical(file)
  try {
    await whileLocked(log, () => work(log))
  } catch (error) {
    if (error instanceof SandboxError) throw error
    throw refuse(file, OPEN_FAILURES[(error as NodeJS.ErrnoException).code ?? ''] ?? String(error), error)
  }
}

/**
 * Whether a line could be appended, asked before anything runs: a run that cannot be recorded must not happen.
 * @throws SandboxError as appendAudit
 */
export async function checkAuditFile(file: string): Promise<void> {
  await locked(file, (log) => closeSync(open(log)))
}

/**
 * Appends one run to the log.
 * @throws SandboxError POLICY_INVALID for a path that is no regular file, SETUP_FAILED for a lock that is never released
 */
export async function appendAudit(file: string, entry: AuditEntry): Promise<void> {
  await locked(file, (log) => append(log, entry))
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

/** Reads a whole log and follows the chain. @throws SandboxError POLICY_INVALID when the file cannot be read */
export async function verifyAudit(file: string): Promise<AuditVerdict> {
  const problems: string[] = []
  let [lines, previous] = [0, CHAIN_START]
  try {
    for await (const line of linesOf(file)) {
      lines += 1
      const problem = checkAuditLine(line, previous)
      if (problem !== undefined) problems.push(`line ${lines}: ${problem}`)
      previous = sha256(line)
    }
  } catch (error) {
    throw unreadable(file, error)
  }
  return { lines, last: previous, problems }
}
