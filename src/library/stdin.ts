/** Turns each kind of stdin that a program may give a command into the one kind of input of a run. Pure. */
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { bytesInput, type Input, streamInput } from '../backends/input.ts'

type Chunk = string | Uint8Array

/**
 * Text (as UTF-8), bytes, or a source of either: an iterable, a stream of node or of the web. A source is read as fast as the command
 * reads, and belongs to the run: it is destroyed (cancelled, returned) at the end.
 */
export type Stdin = Chunk | Iterable<Chunk> | AsyncIterable<Chunk> | Readable | ReadableStream<Chunk>

/** @throws {TypeError} for a stream that somebody else reads */
export function inputFrom(stdin: Stdin): Input {
  if (typeof stdin === 'string') return bytesInput(Buffer.from(stdin))
  if (stdin instanceof Uint8Array) return bytesInput(stdin)
  if ('getReader' in stdin) return streamInput(Readable.fromWeb(stdin))
  return streamInput(stdin instanceof Readable ? stdin : Readable.from(stdin))
}
