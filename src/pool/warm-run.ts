/**
 * One run in one warm sandbox, over its socket, with the command's streams as frames (native/frame.h).
 * Edge: sockets, the clock.
 *
 * The connection is made when the sandbox is ready, long before it is used: then a run costs one write. Back-pressure holds in both
 * directions: stdin goes out when the sandbox asks for it, and while a listener is busy with a chunk nothing more is read.
 */
import { connect, type Socket } from 'node:net'
import { constants } from 'node:os'
import { HeadTail } from '../supervisor/capture.ts'
import { outcomeOfLaunch } from '../supervisor/launch-status.ts'
import type { Outcome } from '../supervisor/outcome.ts'
import { commandBlock, FRAME, type Frame, FrameReader, INPUT_BYTES, writeFrame } from './frame.ts'

export type Listener = (chunk: Uint8Array) => void | Promise<void>

export interface WarmCommand {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly stdin: Uint8Array
  /** Bytes of each stream that are kept; `null` keeps all. */
  readonly outputCap: number | null
  readonly onStdout?: Listener | undefined
  readonly onStderr?: Listener | undefined
  readonly signal?: AbortSignal | undefined
}

/** Milliseconds after which a run that was cancelled is cut off. */
const CANCEL_MS = 2_000

export class WarmSandbox {
  private readonly socket: Socket
  private isGone = false

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      this.isGone = true
    })
    // Without a reader node does not notice that the other side is gone; nothing is said before a command is taken.
    socket.resume()
    socket.unref()
  }

  /** @returns undefined when it is gone already */
  static open(path: string, onGone: (gone: WarmSandbox) => void): Promise<WarmSandbox | undefined> {
    return new Promise((resolve) => {
      const socket = connect(path)
      socket.once('connect', () => {
        const warm = new WarmSandbox(socket)
        socket.once('close', () => onGone(warm))
        resolve(warm)
      })
      socket.once('error', () => resolve(undefined))
    })
  }

  get usable(): boolean {
    return !this.isGone
  }

  close(): void {
    this.socket.destroy()
  }

  /** @returns undefined when the sandbox did not take the command, which then has not been started */
  run(command: WarmCommand): Promise<Outcome | undefined> {
    return new Run(this.socket, command).outcome()
  }
}

class Run {
  private readonly socket: Socket
  private readonly command: WarmCommand
  private readonly reader = new FrameReader()
  private readonly stdout: HeadTail
  private readonly stderr: HeadTail
  private readonly started = performance.now()
  private taken = false
  private fed = 0
  private status: string | undefined
  private cutOff: NodeJS.Timeout | undefined
  /** Frames are handled one after the other, however long a listener takes. */
  private busy: Promise<void> = Promise.resolve()

  constructor(socket: Socket, command: WarmCommand) {
    this.socket = socket
    this.command = command
    this.stdout = new HeadTail(command.outputCap)
    this.stderr = new HeadTail(command.outputCap)
  }

  async outcome(): Promise<Outcome | undefined> {
    const { socket, command } = this
    const cancel = () => this.cancel()
    const over = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.ref()
    socket.on('data', (chunk: Buffer) => this.receive(chunk))
    command.signal?.addEventListener('abort', cancel)
    try {
      socket.write(writeFrame(FRAME.run, commandBlock(command.command, command.env)))
      await over
      await this.busy
    } finally {
      clearTimeout(this.cutOff)
      command.signal?.removeEventListener('abort', cancel)
    }
    return this.taken ? this.conclude() : undefined
  }

  private receive(chunk: Buffer): void {
    const frames = this.reader.push(chunk)
    if (frames === undefined) return void this.socket.destroy()
    for (const frame of frames) {
      const pending = this.handle(frame)
      if (pending !== undefined) this.waitFor(pending)
    }
  }

  private handle({ kind, bytes }: Frame): Promise<void> | undefined {
    switch (kind) {
      case FRAME.taken:
        this.taken = true
        if (this.command.signal?.aborted === true) this.cancel()
        return undefined
      case FRAME.refused:
        this.taken = false
        this.socket.destroy()
        return undefined
      case FRAME.want:
        this.feed()
        return undefined
      case FRAME.output:
        return this.keep(this.stdout, bytes, this.command.onStdout)
      case FRAME.errors:
        return this.keep(this.stderr, bytes, this.command.onStderr)
      case FRAME.status:
        // After the number that is the exit status for a shell.
        this.status = bytes.subarray(4).toString()
        this.socket.destroy()
        return undefined
      default:
        this.socket.destroy()
        return undefined
    }
  }

  private keep(stream: HeadTail, bytes: Buffer, listener: Listener | undefined): Promise<void> | undefined {
    stream.push(bytes)
    if (listener === undefined) return undefined
    // The buffer is the socket's; a listener may keep what it gets.
    const chunk = Uint8Array.from(bytes)
    const pending = this.isIdle ? listener(chunk) : this.busy.then(() => listener(chunk))
    return pending instanceof Promise ? pending : undefined
  }

  private isIdle = true

  private waitFor(pending: Promise<void>): void {
    this.isIdle = false
    this.socket.pause()
    const all = Promise.all([this.busy, pending]).then(() => undefined)
    this.busy = all
    const resume = () => {
      if (this.busy !== all) return
      this.isIdle = true
      this.socket.resume()
    }
    all.then(resume, () => this.socket.destroy())
  }

  private feed(): void {
    const { stdin } = this.command
    const piece = stdin.subarray(this.fed, this.fed + INPUT_BYTES)
    this.fed += piece.length
    this.socket.write(writeFrame(FRAME.input, piece))
  }

  private cancel(): void {
    const number = Buffer.alloc(4)
    number.writeInt32LE(signalNumber(this.command.signal?.reason))
    // Before it is taken there is nothing to end: the answer to the question comes first.
    if (this.taken) this.socket.write(writeFrame(FRAME.signal, number))
    this.cutOff ??= setTimeout(() => this.socket.destroy(), CANCEL_MS)
  }

  private conclude(): Outcome {
    const { signal } = this.command
    const isCancelled = signal?.aborted === true && this.status === undefined
    return outcomeOfLaunch({
      cause: isCancelled ? 'cancelled' : 'exit',
      exitCode: null,
      signal: null,
      ...(typeof signal?.reason === 'string' ? { cancelledBy: signal.reason } : {}),
      stdout: this.stdout.capture(),
      stderr: this.stderr.capture(),
      status: this.status ?? '',
      elapsedMs: performance.now() - this.started,
    })
  }
}

const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function signalNumber(reason: unknown): number {
  return constants.signals[PASSED_ON.find((name) => name === reason) ?? 'SIGTERM']
}
