/** The frames of native/frame.h: a header of two numbers, then so many bytes. Pure. */

export const FRAME = {
  run: 2,
  signal: 3,
  input: 4,
  caller: 1,
  taken: 16,
  refused: 17,
  want: 18,
  output: 19,
  errors: 20,
  status: 21,
} as const

/** Most bytes of stdin in one frame. */
export const INPUT_BYTES = 64 * 1024
const HEADER_BYTES = 8
/** No frame that a sandbox sends is longer: its pipes are read in pieces of 64 KiB. */
const LONGEST = 1024 ** 2

export interface Frame {
  readonly kind: number
  readonly bytes: Buffer
}

/** All machines that node and the native helpers support are little-endian. */
export function writeFrame(kind: number, bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(kind, 0)
  header.writeUInt32LE(bytes.length, 4)
  return Buffer.concat([header, bytes])
}

/** argc, envc, then the words, each ended by NUL: what init reads. */
export function commandBlock(
  command: readonly (string | Uint8Array)[],
  env: Readonly<Record<string, string>>,
): Uint8Array {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const words = [String(command.length), String(variables.length), ...command, ...variables]
  return Buffer.concat(words.flatMap((word) => [Buffer.from(word as string), Buffer.alloc(1)]))
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  private pending: Buffer = Buffer.alloc(0)

  /** @returns the frames that are whole now; undefined for what is no frame, after which the stream is of no use */
  push(chunk: Buffer): readonly Frame[] | undefined {
    const bytes = this.pending.length === 0 ? chunk : Buffer.concat([this.pending, chunk])
    const frames: Frame[] = []
    let at = 0
    while (bytes.length - at >= HEADER_BYTES) {
      const size = bytes.readUInt32LE(at + 4)
      if (size > LONGEST) return undefined
      if (bytes.length - at - HEADER_BYTES < size) break
      frames.push({
        kind: bytes.readUInt32LE(at),
        bytes: bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + size),
      })
      at += HEADER_BYTES + size
    }
    this.pending = bytes.subarray(at)
    return frames
  }
}
