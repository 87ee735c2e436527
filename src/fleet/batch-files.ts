/**
 * The files of a batch: lines of the input, bounded; the results, a whole line in each write, so that a crash tears at most the last.
 * Edge: the file system.
 */
import { closeSync, createReadStream, fstatSync, ftruncateSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type HeldLock, holderOf, lockOf, mappingIn, neutralise, SandboxError, shellWord, tryLock } from '../core.ts'

const LONGEST_LINE = 16 * 1024 * 1024
const NEWLINE = 10

/** @throws SandboxError USAGE for a line of more than 16 MiB; Error for what cannot be read */
export async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: readonly Uint8Array[] = []
  let bytes = 0
  for await (const chunk of input) {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      yield Buffer.concat([...rest, chunk.subarray(from, at)]).toString('utf8')
      rest = []
      bytes = 0
      from = at + 1
    }
    bytes += chunk.length - from
    if (bytes > LONGEST_LINE)
      throw new SandboxError('USAGE', `a line is longer than ${LONGEST_LINE / 1024 ** 2} MiB`, {
        hint: 'put large data into a file that the command reads',
      })
    rest = [...rest, Buffer.from(chunk.subarray(from))]
  }
  if (bytes > 0) yield Buffer.concat(rest).toString('utf8')
}

const REFUSALS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
}

function refused(file: string, cause: unknown): SandboxError {
  const { code = '', message } = cause as NodeJS.ErrnoException
  const hint = `ls -ld ${shellWord(file)}`
  return new SandboxError('USAGE', `${neutralise(file)}: ${REFUSALS[code] ?? message}`, { hint, cause })
}

/** @throws SandboxError USAGE for a file that cannot be read */
export async function fileInput(file: string): Promise<AsyncIterable<Uint8Array>> {
  const handle = await open(file).catch((error: unknown) => {
    throw refused(file, error)
  })
  // A directory opens, and fails with the first read; a batch is to end before it makes a file of results.
  if ((await handle.stat()).isDirectory()) throw refused(file, { code: 'EISDIR' })
  return handle.createReadStream()
}

/** Lines that are not blank. @returns undefined for what can be read only once, and for what cannot be read, which is an error of its real reader */
export async function countLines(file: string): Promise<number | undefined> {
  try {
    if (!statSync(file).isFile()) return undefined
    let lines = 0
    for await (const line of linesOf(await fileInput(file))) if (line.trim() !== '') lines += 1
    return lines
  } catch {
    return undefined
  }
}

export interface Results {
  readonly write: (line: string) => void
  /** IDs of the results that were there, and how many of them are failures. */
  readonly done: ReadonlySet<string>
  readonly failed: number
  readonly close: () => void
}

/** @throws SandboxError where the file cannot be opened, is another batch's, or not one of results */
export async function openResults(file: string, isResumed: boolean): Promise<Results> {
  const fd = openedResults(file)
  const lock = lockedBy(file, fd)
  const close = (): void => {
    lock.release()
    closeSync(fd)
  }
  try {
    const before = await readResults(file, fd, isResumed)
    return { ...before, write: (line) => writeWhole({ file, fd, bytes: Buffer.from(line) }), close }
  } catch (error) {
    close()
    throw error
  }
}

function openedResults(file: string): number {
  try {
    return openSync(file, 'a+', 0o666)
  } catch (error) {
    throw refused(file, error)
  }
}

function lockedBy(file: string, fd: number): HeldLock {
  const lock = fstatSync(fd).isFile() ? tryLock(file) : { release: () => undefined }
  if (lock !== undefined) return lock
  closeSync(fd)
  throw new SandboxError(
    'USAGE',
    `${file}: another batch writes its results there: ${lockOf(file)} is locked by ${holderOf(lockOf(file))}`,
    { hint: 'wait for it, or take another file' },
  )
}

async function readResults(file: string, fd: number, isResumed: boolean): Promise<Pick<Results, 'done' | 'failed'>> {
  const done = new Set<string>()
  const found = fstatSync(fd)
  if (!found.isFile() || found.size === 0) return { done, failed: 0 }
  if (!isResumed)
    throw new SandboxError('USAGE', `${file}: there are results already`, {
      hint: 'go on with --resume, or take another file',
    })
  const whole = cutTornLine(fd, found.size)
  let failed = 0
  if (whole > 0)
    for await (const line of linesOf(createReadStream(file, { end: whole - 1 }))) {
      const { id, ok } = mappingIn(line) ?? {}
      if (typeof id !== 'string' || typeof ok !== 'boolean')
        throw new SandboxError('USAGE', `${file}: a line is no result of a batch`, { hint: 'take another file' })
      done.add(id)
      if (!ok) failed += 1
    }
  return { done, failed }
}

/** @returns bytes that are left: up to the last line feed */
function cutTornLine(fd: number, size: number): number {
  const block = Buffer.alloc(65_536)
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - block.length)
    const count = readSync(fd, block, 0, end - start, start)
    const at = block.subarray(0, count).lastIndexOf(NEWLINE)
    if (at !== -1) {
      if (start + at + 1 < size) ftruncateSync(fd, start + at + 1)
      return start + at + 1
    }
    end = start
  }
  ftruncateSync(fd, 0)
  return 0
}

function writeWhole({ file, fd, bytes }: { file: string; fd: number; bytes: Uint8Array }): void {
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code
    const hint = `df -h ${shellWord(dirname(file))}; then go on with --resume`
    throw new SandboxError('OUTPUT_FAILED', `${neutralise(file)} cannot be written: ${why}`, { hint, cause })
  }
}
