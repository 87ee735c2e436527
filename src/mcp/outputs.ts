/**
 * Keeps the output of commands for one client: head and tail of each stream are in the answer, and the beginning of a longer one is kept
 * in a file without a name, so that nothing is left of it however this process ends.
 * Edge: files.
 */
import { closeSync, readSync, writeSync } from 'node:fs'
import { HeadTail, openUnlinked, randomHex, SandboxError } from '../core.ts'
import { textOf, wholeAtEnd, wholeAtStart } from './text.ts'
import { type ArgumentsOf, type ResultOf, STREAMS, type StreamName } from './tools.ts'

/** Bytes of a stream that a result shows, head and tail together. */
const SHOWN = 32_768
/** Bytes of one stream that are kept. */
const MOST_OF_STREAM = 8 << 20
/** Bytes of all outputs of one client; the oldest ones are forgotten first. */
const MOST_OF_ALL = 64 << 20

/** As a result shows them. */
type ShownStream = ResultOf<'run_command'>['stdout']
type Piece = ResultOf<'read_output'>

class Stream {
  private readonly shown = new HeadTail(SHOWN)
  private file: number | undefined
  private isFull = false
  kept = 0

  readonly push = (chunk: Uint8Array): void => {
    const isLong = this.shown.bytes + chunk.length > SHOWN
    if (isLong && this.shown.bytes <= SHOWN) {
      const { head, tail } = this.shown.capture()
      this.keep(Buffer.concat([head, tail]))
    }
    if (isLong) this.keep(chunk)
    this.shown.push(chunk)
  }

  /** A disk that is full ends the keeping, and nothing else. */
  private keep(bytes: Uint8Array): void {
    const part = bytes.subarray(0, MOST_OF_STREAM - this.kept)
    if (this.isFull || part.length === 0) return
    try {
      this.file ??= openUnlinked(new Uint8Array(0))
      for (let at = 0; at < part.length; ) at += writeSync(this.file, part, at, part.length - at, this.kept + at)
      this.kept += part.length
    } catch {
      this.isFull = true
    }
  }

  show(id: string, name: StreamName): ShownStream {
    const { head, tail, bytes } = this.shown.capture()
    if (bytes <= SHOWN) return { ...textOf(Buffer.concat([head, tail])), bytes }
    const [first, last] = [wholeAtEnd(head), wholeAtStart(tail)]
    const gap = { from: first.length, to: bytes - last.length }
    const call = `read_output {"id":"${id}","stream":"${name}","offset":${gap.from}}`
    const mark = `\n[... ${gap.to - gap.from} bytes left out: ${call} ...]\n`
    const [before, after] = [textOf(first), textOf(last)]
    return { text: before.text + mark + after.text, isLossy: before.isLossy || after.isLossy, bytes, gap }
  }

  read(offset: number, length: number): Piece {
    const buffer = Buffer.alloc(Math.max(0, Math.min(length, this.kept - offset)))
    const got = this.file === undefined ? 0 : readSync(this.file, buffer, 0, buffer.length, offset)
    const isLast = offset + got >= this.kept
    const found = buffer.subarray(0, got)
    const whole = isLast ? found : wholeAtEnd(found)
    const next = offset + whole.length
    return { ...textOf(whole), bytes: this.shown.bytes, kept: this.kept, ...(isLast ? {} : { next }) }
  }

  forget(): void {
    if (this.file !== undefined) closeSync(this.file)
    this.file = undefined
    this.isFull = true
    this.kept = 0
  }
}

/** Of one command. */
export class Output {
  readonly id = randomHex(8)
  readonly stdout = new Stream()
  readonly stderr = new Stream()

  get kept(): number {
    return this.stdout.kept + this.stderr.kept
  }

  show(name: StreamName): ShownStream {
    return this[name].show(this.id, name)
  }

  forget(): void {
    for (const name of STREAMS) this[name].forget()
  }
}

export class Outputs {
  private readonly all = new Map<string, Output>()

  /** An output whose command has ended; one that was shown whole is not kept. */
  add(output: Output): void {
    if (output.kept === 0) {
      output.forget()
      return
    }
    this.all.set(output.id, output)
    let kept = [...this.all.values()].reduce((sum, one) => sum + one.kept, 0)
    for (const [id, old] of this.all) {
      if (kept <= MOST_OF_ALL) return
      kept -= old.kept
      this.all.delete(id)
      old.forget()
    }
  }

  /** @throws SandboxError for an output that is not kept, or not any more, and for a place behind what is kept */
  read({ id, stream, offset, length }: ArgumentsOf<'read_output'>): Piece {
    const output = this.all.get(id)
    if (output === undefined)
      throw new SandboxError('OUTPUT_NOT_FOUND', `no output ${JSON.stringify(id)} is kept`, {
        hint: 'only long outputs are kept, the newest 64 MiB of them: run the command again, and let it print less',
      })
    const piece = output[stream].read(offset, length)
    if (offset < piece.kept || offset >= piece.bytes) return piece
    throw new SandboxError(
      'OUTPUT_NOT_FOUND',
      `${stream} of ${id} is kept up to byte ${piece.kept}, not at ${offset}`,
      {
        hint: 'run the command again, and let it write its output to a file',
      },
    )
  }

  forget(): void {
    for (const output of this.all.values()) output.forget()
    this.all.clear()
  }
}
