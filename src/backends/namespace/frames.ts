/** The frames of native/lib/frames.h: a header of two numbers, then so many bytes. Pure. */

import { FRAME } from '../../contract.ts'

const HEADER_BYTES = 8
/** No frame that a sandbox sends is longer: its pipes are read in pieces of 64 KiB. */
const LONGEST = 1024 ** 2

/** All machines that node and the native programs support are little-endian. */
export function writeFrame(kind: number, bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(kind, 0)
  header.writeUInt32LE(bytes.length, 4)
  return Buffer.concat([header, bytes])
}

export interface CommandBlock {
  readonly command: readonly (string | Uint8Array)[]
  readonly env: Readonly<Record<string, string>>
  /** The caller's, which a plan or a warm sandbox knows nothing of. */
  readonly umask: number
}

/** argc, envc, the umask, then the words, each ended by NUL: what init reads. */
export function commandBlock({ command, env, umask }: CommandBlock): Uint8Array {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const words = [String(command.length), String(variables.length), String(umask), ...command, ...variables]
  if (words.every((word) => typeof word === 'string')) return Buffer.from(`${words.join('\0')}\0`)
  return Buffer.concat(words.flatMap((word) => [Buffer.from(word as string), Buffer.alloc(1)]))
}

/** Bytes of a frame as they come: what a command prints is handed on in pieces, all else whole. */
export type OnPiece = (kind: number, bytes: Uint8Array) => void

/** Cuts a stream of bytes into frames and copies nothing that it need not keep: the bytes may be overwritten after `push`. */
export class FrameReader {
  private readonly header = Buffer.alloc(HEADER_BYTES)
  private inHeader = 0
  private kind = 0
  /** Bytes of the frame that have not come yet. */
  private left = 0
  private parts: Uint8Array[] = []

  /** @returns whether the stream is still one of frames; after `false` it is of no use */
  push(chunk: Uint8Array, onPiece: OnPiece): boolean {
    for (let at = 0; at < chunk.length; ) {
      at += this.inHeader < HEADER_BYTES ? this.takeHeader(chunk, at) : this.takeBody(chunk, at, onPiece)
      if (this.inHeader < HEADER_BYTES) continue
      if (this.left > LONGEST) return false
      if (this.left === 0) this.finish(onPiece)
    }
    return true
  }

  private takeHeader(chunk: Uint8Array, at: number): number {
    const part = chunk.subarray(at, at + HEADER_BYTES - this.inHeader)
    this.header.set(part, this.inHeader)
    this.inHeader += part.length
    if (this.inHeader < HEADER_BYTES) return part.length
    this.kind = this.header.readUInt32LE(0)
    this.left = this.header.readUInt32LE(4)
    return part.length
  }

  private takeBody(chunk: Uint8Array, at: number, onPiece: OnPiece): number {
    const part = chunk.subarray(at, at + this.left)
    this.left -= part.length
    if (isStream(this.kind)) onPiece(this.kind, part)
    else this.parts.push(Uint8Array.from(part))
    return part.length
  }

  private finish(onPiece: OnPiece): void {
    const whole = this.parts
    this.inHeader = 0
    this.parts = []
    if (!isStream(this.kind)) onPiece(this.kind, Buffer.concat(whole))
  }
}

const isStream = (kind: number): boolean => kind === FRAME.output || kind === FRAME.errors
