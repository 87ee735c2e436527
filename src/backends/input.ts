/**
 * A command's stdin, in pieces that are read when the command has room for them. A source other than an array of bytes waits meanwhile,
 * so only one piece of it is in memory.
 */
import type { Readable } from 'node:stream'
import { FRAME_DATA_MAX } from '../contract.ts'

export interface Input {
  /**
   * The piece of this number; empty = the end. Asked for in order, and the last one perhaps again: where a sandbox has refused the
   * command, the next one gets it.
   * @throws whatever the source fails with
   */
  readonly piece: (index: number) => Uint8Array | Promise<Uint8Array>
  /** Whether it can be asked from its beginning again, whatever was asked for. */
  readonly canRestart: boolean
  /** Nothing is asked for any more: the source is let go. */
  readonly close: () => void
}

const END = new Uint8Array(0)

export function bytesInput(bytes: Uint8Array): Input {
  return {
    piece: (index) => bytes.subarray(index * FRAME_DATA_MAX, (index + 1) * FRAME_DATA_MAX),
    canRestart: true,
    close: () => undefined,
  }
}

export const NO_INPUT: Input = bytesInput(END)

/** The stream is the run's from now on: it is destroyed at the end, read or not. */
export function streamInput(stream: Readable): Input {
  const pieces = piecesOf(stream)
  const last: { index: number; piece: Promise<Uint8Array> } = { index: -1, piece: Promise.resolve(END) }
  // An error after the last read is of no interest.
  stream.on('error', () => undefined)
  const next = async (): Promise<Uint8Array> => (await pieces.next()).value ?? END
  return {
    piece: (index) => {
      if (index !== last.index) Object.assign(last, { index, piece: next() })
      return last.piece
    },
    canRestart: false,
    close: () => void stream.destroy(),
  }
}

async function* piecesOf(stream: Readable): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of stream) {
    const bytes = bytesOf(chunk)
    for (let at = 0; at < bytes.length; at += FRAME_DATA_MAX) yield bytes.subarray(at, at + FRAME_DATA_MAX)
  }
  return undefined
}

function bytesOf(chunk: unknown): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk)
  if (chunk instanceof Uint8Array) return chunk
  throw new TypeError(`stdin: expected pieces of text or bytes (Uint8Array), got one of type ${typeof chunk}`)
}
