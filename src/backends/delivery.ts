/**
 * Delivers a command's output to its listeners: one chunk after the other, however long a listener takes. The reader pauses while a
 * listener is busy. If it cannot pause, chunks wait here. Pure.
 */
import { promised } from '../os/promised.ts'
import type { Listener } from './capture.ts'

export class Delivery {
  private readonly released = promised<void>()
  private busy: Promise<unknown> = Promise.resolve()
  private idle = true
  private isReleased = false
  private isDeaf = false

  /** @param onIdle called when all that was handed over has been dealt with */

  constructor(private readonly onIdle: () => void) {}

  /** Whether no listener is busy with a chunk. */
  get isIdle(): boolean {
    return this.idle
  }

  /** @param chunk the listener's own; @param listener that never fails (run/callbacks.ts), or whose failure is of no interest */
  hand(chunk: Uint8Array, listener: Listener): void {
    // Never with a gap: once a chunk was left out, no later one is handed over.
    this.isDeaf ||= this.isReleased && !this.idle
    if (this.isDeaf) return
    const pending = this.idle ? listener(chunk) : this.busy.then(() => (this.isDeaf ? undefined : listener(chunk)))
    if (pending instanceof Promise) this.waitFor(pending)
  }

  /** For a run that must end: waits for no listener any more, and a busy one gets no further chunk. */
  release(): void {
    this.isReleased = true
    this.isDeaf = !this.idle
    this.released.resolve()
  }

  /** Resolves when every chunk so far has been handled, or when delivery waits for no listener. */
  async heard(): Promise<void> {
    await Promise.race([this.busy, this.released.promise])
  }

  private waitFor(pending: Promise<unknown>): void {
    this.idle = false
    const done = (): void => {
      if (this.busy !== all) return
      this.idle = true
      this.onIdle()
    }
    const all: Promise<void> = pending.then(done, done)
    this.busy = all
  }
}
