/**
 * The output of a task on its way to a source: pieces are gathered for a moment, kept in order, sent one at a time, and the command
 * waits while enough of them wait.
 * Edge: timers.
 */
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Listener } from '../backends/capture.ts'
import type { TaskOutput } from './port.ts'

/** UTF-16 units of a piece: at most three bytes of UTF-8 each, so below 64 KiB. */
const PIECE_UNITS = 21_000
/** Units that wait before the command does. */
const ENOUGH_UNITS = 4 * PIECE_UNITS
/** Milliseconds in which small pieces become one. */
const GATHER_MS = 100

type Stream = TaskOutput['stream']

export class OutputRelay {
  private readonly send: (output: TaskOutput) => Promise<void>
  private readonly decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  private readonly waiting: { readonly stream: Stream; text: string }[] = []
  private units = 0
  private sending: Promise<void> | undefined
  private readonly ending = new AbortController()

  constructor(send: (output: TaskOutput) => Promise<void>) {
    this.send = send
  }

  readonly listener =
    (stream: Stream): Listener =>
    (chunk) =>
      this.add(stream, this.decoders[stream].write(Buffer.from(chunk)))

  /** Resolves when everything has been sent. */
  async end(): Promise<void> {
    this.ending.abort()
    for (const stream of ['stdout', 'stderr'] as const) this.add(stream, this.decoders[stream].end())
    await this.sending
  }

  private add(stream: Stream, text: string): Promise<void> | undefined {
    if (text === '') return undefined
    const last = this.waiting.at(-1)
    if (last?.stream === stream) last.text += text
    else this.waiting.push({ stream, text })
    this.units += text.length
    this.sending ??= this.sendAll().finally(() => {
      this.sending = undefined
    })
    return this.units > ENOUGH_UNITS ? this.sending : undefined
  }

  private async sendAll(): Promise<void> {
    while (this.units > 0) {
      if (this.units < PIECE_UNITS)
        await sleep(GATHER_MS, undefined, { signal: this.ending.signal }).catch(() => undefined)
      const first = this.waiting[0]
      if (first === undefined) return
      const text = first.text.slice(0, pieceEnd(first.text))
      first.text = first.text.slice(text.length)
      if (first.text === '') this.waiting.shift()
      this.units -= text.length
      await this.send({ stream: first.stream, text })
    }
  }
}

/** Not between the two halves of a character. */
function pieceEnd(text: string): number {
  if (text.length <= PIECE_UNITS) return text.length
  const last = text.charCodeAt(PIECE_UNITS - 1)
  return last >= 0xd800 && last <= 0xdbff ? PIECE_UNITS - 1 : PIECE_UNITS
}
