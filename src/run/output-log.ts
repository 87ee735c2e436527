/**
 * The output of a command in the background: a line of JSON for each piece, in two files of which the older one is thrown away when the
 * newer one is full.
 * Edge: the file system, the clock.
 */
import { closeSync, fstatSync, openSync, readSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { orElse } from '../os/look.ts'
import { jsonIn } from '../text/json.ts'
import { utf8In } from '../text/utf8.ts'

export type StreamName = 'stdout' | 'stderr'

/** `text` where the bytes are UTF-8. */
export type LogLine = { readonly time: string; readonly stream: StreamName } & (
  | { readonly text: string }
  | { readonly base64: string }
)

const [NEWER, OLDER] = ['log', 'log.1']
/** Bytes of each of both files. */
const MOST_BYTES = 4 << 20

function contentOf(bytes: Uint8Array): { readonly text: string } | { readonly base64: string } {
  const text = utf8In(bytes)
  return text === undefined ? { base64: Buffer.from(bytes).toString('base64') } : { text }
}

/** A disk that is full loses output; it does not end the command. */
export class OutputLog {
  private file: number
  private size = 0

  constructor(
    private readonly directory: string,
    private readonly most = MOST_BYTES,
  ) {
    this.file = openSync(join(directory, NEWER), 'a', 0o600)
  }

  write(stream: StreamName, bytes: Uint8Array): void {
    const line = Buffer.from(`${JSON.stringify({ time: new Date().toISOString(), stream, ...contentOf(bytes) })}\n`)
    try {
      if (this.size + line.length > this.most) this.rotate()
      this.size += writeSync(this.file, line)
    } catch {
      // Said in the class's comment.
    }
  }

  close(): void {
    closeSync(this.file)
  }

  private rotate(): void {
    renameSync(join(this.directory, NEWER), join(this.directory, OLDER))
    closeSync(this.file)
    this.file = openSync(join(this.directory, NEWER), 'a', 0o600)
    this.size = 0
  }
}

interface OpenFile {
  readonly fd: number
  readonly inode: number
  readonly size: number
}

function openIfThere(file: string): OpenFile | undefined {
  // Not begun, or forgotten.
  return orElse(undefined, () => {
    const fd = openSync(file, 'r')
    const { ino, size } = fstatSync(fd)
    return { fd, inode: ino, size }
  })
}

/** Reads what has been written since it was last asked; what was thrown away meanwhile is not there. */
export class LogReader {
  /** How far which file was read. */
  private last = { inode: -1, offset: 0 }

  constructor(private readonly directory: string) {}

  next(): readonly LogLine[] {
    // In this order: what is renamed between the two is met twice, and not missed.
    const newer = openIfThere(join(this.directory, NEWER))
    const older = openIfThere(join(this.directory, OLDER))
    try {
      const isOlderNew = older !== undefined && older.inode !== newer?.inode && newer?.inode !== this.last.inode
      return [...(isOlderNew ? this.rest(older) : []), ...(newer === undefined ? [] : this.rest(newer))]
    } finally {
      for (const file of [newer, older]) if (file !== undefined) closeSync(file.fd)
    }
  }

  private rest({ fd, inode, size }: OpenFile): readonly LogLine[] {
    const { last } = this
    const from = inode === last.inode && last.offset <= size ? last.offset : 0
    const bytes = Buffer.alloc(size - from)
    const text = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from))
    const whole = text.subarray(0, text.lastIndexOf(10) + 1)
    this.last = { inode, offset: from + whole.length }
    // A line may have been cut off by a full disk.
    return whole
      .toString('utf8')
      .split('\n')
      .flatMap((line) => (jsonIn(line) as LogLine | undefined) ?? [])
  }
}

export const bytesOf = (line: LogLine): Buffer =>
  'text' in line ? Buffer.from(line.text) : Buffer.from(line.base64, 'base64')
