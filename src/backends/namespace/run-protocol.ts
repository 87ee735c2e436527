/**
 * One run whose streams, signals and end are frames (frames.ts) on one socket: that of a warm sandbox, or that of a launcher.
 * Edge: sockets.
 *
 * Whatever comes is read into one buffer and copied no further than it is kept: node's own way of reading allocates 64 KiB for
 * each read, which in a flood is garbage faster than it is collected. Back-pressure holds in both directions: after its first
 * piece stdin is sent when launch wants it, and nothing is read while a listener is busy with a chunk.
 */
import { connect, type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net'
import { constants } from 'node:os'
import { FRAME } from '../../contract.ts'
import { promised } from '../../os/promised.ts'
import { HeadTail, type Listener } from '../capture.ts'
import { Delivery } from '../delivery.ts'
import type { Input } from '../input.ts'
import type { Capture } from '../outcome.ts'
import { FrameReader, writeFrame } from './frames.ts'

/** Shared by all sockets: what was read is dealt with before the event loop reads again. */
const READ_BUFFER = Buffer.alloc(64 * 1024)

/** A socket that is read into the buffer; what comes before `listen` is dropped. */
export class FramedLine {
  readonly socket: Socket
  private readonly listener: { receive: (bytes: Uint8Array) => boolean }

  private constructor(make: (onread: OnReadOpts) => Socket) {
    this.listener = { receive: () => true }
    const { listener } = this
    this.socket = make({ buffer: READ_BUFFER, callback: (size, bytes) => listener.receive(bytes.subarray(0, size)) })
    this.socket.on('error', () => this.socket.destroy())
    this.socket.resume()
  }

  static connect(path: string): FramedLine {
    return new FramedLine((onread) => connect({ path, onread }))
  }

  /**
   * The far end of a child's stream. Node has no option for the buffer of those, so the handle gets another socket; a runtime
   * whose streams have no handle is read in its own way.
   */
  static adopt(stream: Socket): FramedLine {
    const { _handle: handle } = stream as Socket & { readonly _handle?: object }
    if (handle !== undefined)
      return new FramedLine(
        (onread) => new Socket({ handle, onread, readable: true, writable: true } as SocketConstructorOpts),
      )
    return new FramedLine(({ callback }) =>
      stream.on('data', (chunk: Buffer) => callback(chunk.length, chunk) || stream.pause()),
    )
  }

  /** @param receive returns whether more may be read; if not, `socket.resume()` continues */
  listen(receive: (bytes: Uint8Array) => boolean): void {
    this.listener.receive = receive
  }
}

const NO_BYTES = new Uint8Array(0)

/** Milliseconds beyond the deadline, which counts from the start of the command: it takes that long to build a sandbox on a slow machine. */
const LISTENER_GRACE_MS = 5_000

export interface FramedStreams {
  readonly stdin: Input
  /** Milliseconds; the launcher holds the deadline, and what a listener has not taken then is not waited for. */
  readonly deadlineMs?: number | undefined
  /** Bytes of each stream that are kept; `null` keeps all. */
  readonly outputCap: number | null
  readonly onStdout?: Listener | undefined
  readonly onStderr?: Listener | undefined
}

export interface FramedEnd {
  /** False: the command was not and will not be started. */
  readonly taken: boolean
  /** It was said so; else the connection has ended, or never came about. */
  readonly isRefused: boolean
  /** Launch's line of JSON, empty when the connection ended without. */
  readonly status: string
  readonly stdout: Capture
  readonly stderr: Capture
}

interface LastFrame {
  readonly taken: boolean
  readonly isRefused?: boolean
  /** A number that is the exit status for a shell, then the line. */
  readonly status?: Uint8Array
}

export class FramedRun {
  private readonly socket: Socket
  private readonly streams: FramedStreams
  private readonly reader = new FrameReader()
  private readonly stdout: HeadTail
  private readonly stderr: HeadTail
  private readonly over = promised<void>()
  private readonly started = promised<void>()
  private readonly delivery: Delivery
  /** All output is read, however busy listeners are. */
  private isLast = false
  private patience: NodeJS.Timeout | undefined
  private onTaken: () => void = () => undefined
  private taken: boolean
  private isRefused = false
  private fed = 0
  private status = ''

  constructor(line: FramedLine, streams: FramedStreams & { readonly isTaken: boolean }) {
    this.socket = line.socket
    this.streams = streams
    this.taken = streams.isTaken
    if (this.taken) this.started.resolve()
    this.stdout = new HeadTail(streams.outputCap)
    this.stderr = new HeadTail(streams.outputCap)
    this.delivery = new Delivery(() => this.socket.resume())
    this.socket.once('close', () => this.over.resolve())
    line.listen((bytes) => this.receive(bytes))
  }

  get isTaken(): boolean {
    return this.taken
  }

  /** Called once when the sandbox has taken the command. */
  whenTaken(onTaken: () => void): void {
    this.onTaken = onTaken
  }

  private send(kind: number, bytes: Uint8Array): void {
    this.write(writeFrame(kind, bytes))
  }

  /** The run ends by it. */
  stop(name: NodeJS.Signals): void {
    const number = Buffer.alloc(4)
    number.writeInt32LE(constants.signals[name])
    this.send(FRAME.stop, number)
  }

  /** These frames and the first piece of stdin, in one write: each wakes the other side. */
  begin(frames: readonly (readonly [kind: number, bytes: Uint8Array])[], { withInput = true } = {}): void {
    const { stdin, deadlineMs } = this.streams
    const first = withInput ? stdin.piece(0) : NO_BYTES
    const isThere = withInput && first instanceof Uint8Array
    const all = isThere ? [...frames, [FRAME.input, first] as const] : frames
    this.write(Buffer.concat(all.map(([kind, bytes]) => writeFrame(kind, bytes))))
    this.fed = 1
    if (first instanceof Promise) this.sendLater(first)
    if (deadlineMs !== undefined) this.patience = setTimeout(() => this.release(), deadlineMs + LISTENER_GRACE_MS)
  }

  /** For a run that must end: a busy listener delays neither the launcher nor the result. */
  release(): void {
    this.delivery.release()
    this.readOn()
  }

  /** The other side is gone, so what is still to be read is bounded: listeners get all of it in their time. */
  readOn(): void {
    this.isLast = true
    this.socket.resume()
  }

  /** Never throws. */
  async end(): Promise<FramedEnd> {
    await this.over.promise
    await this.delivery.heard()
    clearTimeout(this.patience)
    const { taken, isRefused, status } = this
    return { taken, isRefused, status, stdout: this.stdout.capture(), stderr: this.stderr.capture() }
  }

  private receive(bytes: Uint8Array): boolean {
    if (!this.reader.push(bytes, (kind, piece) => this.handle(kind, piece))) this.socket.destroy()
    return this.delivery.isIdle || this.isLast
  }

  private handle(kind: number, bytes: Uint8Array): void {
    if (kind === FRAME.output) this.keep(this.stdout, bytes, this.streams.onStdout)
    else if (kind === FRAME.errors) this.keep(this.stderr, bytes, this.streams.onStderr)
    else if (kind === FRAME.want) this.feed()
    else if (kind === FRAME.taken) this.take()
    else if (kind === FRAME.status) this.finish({ taken: true, status: bytes })
    else this.finish({ taken: kind !== FRAME.refused && this.taken, isRefused: kind === FRAME.refused })
  }

  private take(): void {
    this.taken = true
    this.started.resolve()
    this.onTaken()
  }

  private finish({ taken, isRefused = false, status = NO_BYTES }: LastFrame): void {
    this.taken = taken
    this.isRefused = isRefused
    this.status = Buffer.from(status.subarray(4)).toString()
    this.over.resolve()
    this.socket.destroy()
  }

  private keep(stream: HeadTail, bytes: Uint8Array, listener: Listener | undefined): void {
    stream.push(bytes)
    // The buffer is everybody's; a listener may keep what it gets.
    if (listener !== undefined) this.delivery.hand(Uint8Array.from(bytes), listener)
  }

  private feed(): void {
    const piece = this.streams.stdin.piece(this.fed)
    this.fed += 1
    if (piece instanceof Promise) this.sendLater(piece)
    else this.send(FRAME.input, piece)
  }

  /**
   * Not before the command is taken: a write to a launcher that has ended destroys the socket, and with it the word that the command was taken.
   * If a source fails, its owner handles the error; the command only gets no more.
   */
  private sendLater(piece: Promise<Uint8Array>): void {
    Promise.all([piece, this.started.promise]).then(
      ([bytes]) => this.send(FRAME.input, bytes),
      () => undefined,
    )
  }

  private write(bytes: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.write(bytes)
  }
}
