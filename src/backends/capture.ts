/** Keeps the head and the tail of a stream, so memory stays flat however much a command prints. */
import type { Capture } from './outcome.ts'

/** Hears what a command prints. While a promise that it returns is pending, the command's output waits. */
export type Listener = (chunk: Uint8Array) => unknown

const NOTHING = new Uint8Array(0)

/** The last `size` bytes of a stream; older ones are overwritten in place. */
class Ring {
  private bytes: Uint8Array = NOTHING
  private written = 0

  constructor(private readonly size: number) {}

  /** Grows towards `size` by doubling, so that a command that prints three bytes does not cost a megabyte. */
  private reserve(wanted: number): void {
    if (wanted <= this.bytes.length || this.bytes.length === this.size) return
    const larger = new Uint8Array(Math.min(this.size, Math.max(wanted, this.bytes.length * 2)))
    larger.set(this.bytes.subarray(0, this.written))
    this.bytes = larger
  }

  push(chunk: Uint8Array): void {
    if (this.size === 0) return
    this.reserve(this.written + chunk.length)
    // Only the last `size` bytes of a long chunk can survive; the position still counts all of them.
    const kept = chunk.subarray(Math.max(0, chunk.length - this.size))
    const at = (this.written + chunk.length - kept.length) % this.size
    const first = kept.subarray(0, this.size - at)
    this.bytes.set(first, at)
    this.bytes.set(kept.subarray(first.length), 0)
    this.written += chunk.length
  }

  content(): Uint8Array {
    if (this.written <= this.size) return Uint8Array.from(this.bytes.subarray(0, this.written))
    const at = this.written % this.size
    return Buffer.concat([this.bytes.subarray(at), this.bytes.subarray(0, at)])
  }
}

/**
 * Keeps the first and the last half of `cap` bytes of a stream and counts the rest.
 * @param cap bytes, both parts together; 0 keeps nothing, `null` keeps all
 */
export class HeadTail {
  private readonly head: Uint8Array[] = []
  private readonly headCap: number
  private readonly tail: Ring
  private headBytes = 0
  private seen = 0

  constructor(cap: number | null) {
    this.headCap = cap === null ? Number.POSITIVE_INFINITY : Math.ceil(cap / 2)
    this.tail = new Ring(cap === null ? 0 : Math.floor(cap / 2))
  }

  push(chunk: Uint8Array): void {
    const room = this.headCap - this.headBytes
    const first = chunk.subarray(0, Math.min(room, chunk.length))
    // A copy: the reader of the stream may use its buffer again.
    if (first.length > 0) this.head.push(Uint8Array.from(first))
    this.headBytes += first.length
    if (first.length < chunk.length) this.tail.push(chunk.subarray(first.length))
    this.seen += chunk.length
  }

  /** All bytes pushed so far. */
  get bytes(): number {
    return this.seen
  }

  capture(): Capture {
    return { head: Buffer.concat(this.head), tail: this.tail.content(), bytes: this.seen }
  }
}

/** A stream that was not captured. */
export const NO_CAPTURE: Capture = { head: NOTHING, tail: NOTHING, bytes: 0 }
