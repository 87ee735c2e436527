/**
 * Sends the output of a task to a source: gathers pieces for a moment, keeps their order, sends one at a time. The command waits while too
 * much output is queued, and continues as soon as less is, not when all has been sent.
 * Edge: timers.
 */
import { StringDecoder } from 'node:string_decoder'
import { type Listener, type Promised, promised } from '../core.ts'
import type { TaskOutput } from './port.ts'

/** UTF-16 units of a piece: at most three bytes of UTF-8 each, so below 64 KiB. */
const PIECE_UNITS = 21_000
/** Units that wait before the command does. */
const ENOUGH_UNITS = 4 * PIECE_UNITS
/** Milliseconds in which small pieces become one. */
const GATHER_MS = 100
/** Units of each stream that go out live, as many as a report and our server keep. The command does not wait for the rest. */
const LIVE_UNITS = 1024 * 1024

type Stream = TaskOutput['stream']

export class OutputRelay {
  private readonly decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  private readonly waiting: { readonly stream: Stream; text: string }[] = []
  private readonly live = { stdout: LIVE_UNITS, stderr: LIVE_UNITS }
  private units = 0
  private sending: Promise<void> | undefined
  /** While the command waits. */
  private room: Promised<void> | undefined
  private stopGathering = (): void => undefined
  private isEnding = false

  constructor(private readonly send: (output: TaskOutput) => Promise<void>) {}

  readonly listener =
    (stream: Stream): Listener =>
    (chunk) =>
      this.add(stream, this.decoders[stream].write(Buffer.from(chunk)))

  /** Resolves when everything has been sent. */
  async end(): Promise<void> {
    this.isEnding = true
    this.stopGathering()
    for (const stream of ['stdout', 'stderr'] as const) void this.add(stream, this.decoders[stream].end())
    await this.sending
  }

  private add(stream: Stream, whole: string): Promise<void> | undefined {
    const text = whole.slice(0, pieceEnd(whole, this.live[stream]))
    // A character that was cut away is the last one, too.
    this.live[stream] = text.length < whole.length ? 0 : this.live[stream] - text.length
    if (text === '') return undefined
    const last = this.waiting.at(-1)
    if (last?.stream === stream) last.text += text
    else this.waiting.push({ stream, text })
    this.units += text.length
    if (this.units >= PIECE_UNITS) this.stopGathering()
    this.sending ??= this.sendAll().finally(() => {
      this.sending = undefined
    })
    if (this.units <= ENOUGH_UNITS) return undefined
    this.room ??= promised()
    return this.room.promise
  }

  private async sendAll(): Promise<void> {
    while (this.units > 0) {
      if (this.units < PIECE_UNITS && !this.isEnding) await this.gather()
      const first = this.waiting[0]
      if (first === undefined) return
      const text = first.text.slice(0, pieceEnd(first.text, PIECE_UNITS))
      first.text = first.text.slice(text.length)
      if (first.text === '') this.waiting.shift()
      this.units -= text.length
      await this.send({ stream: first.stream, text })
      if (this.units > ENOUGH_UNITS) continue
      this.room?.resolve()
      this.room = undefined
    }
  }

  private async gather(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS)
      this.stopGathering = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** At most so many units, and not between the two halves of a character. */
function pieceEnd(text: string, most: number): number {
  if (text.length <= most) return text.length
  const last = text.charCodeAt(most - 1)
  return last >= 0xd800 && last <= 0xdbff ? most - 1 : most
}
