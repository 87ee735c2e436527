/**
 * One run in one warm sandbox, over its socket, with the command's streams as frames (backends/namespace/run-protocol.ts).
 * Edge: sockets, the clock.
 *
 * The sandbox is built for the connection, long before it is used: then a run costs one write.
 */
import { reasonWord, signalOf } from '../backends/child-process.ts'
import { outcomeOfLaunch } from '../backends/launch-status.ts'
import { awaitedLauncher } from '../backends/namespace/fork-server.ts'
import { commandBlock, FrameReader, writeFrame } from '../backends/namespace/frames.ts'
import { type FramedLine, FramedRun, type FramedStreams } from '../backends/namespace/run-protocol.ts'
import type { Outcome } from '../backends/outcome.ts'
import { FRAME } from '../contract.ts'
import { hostCall } from '../os/native-programs.ts'
import { ownUmask } from '../os/umask.ts'

export interface WarmCommand extends FramedStreams {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Files that must be on disk, or it does not take the command; see FRAME_GUARDS. */
  readonly files?: Uint8Array | undefined
  readonly signal?: AbortSignal | undefined
}

/** Milliseconds after which a run that was cancelled is cut off. */
const CANCEL_MS = 2_000
/** Milliseconds for the end of a sandbox that has not been used. */
const CLOSE_MS = 2_000
/** How the plan of a sandbox without a command begins. */
const WARM = Buffer.from('warm\0')

export class WarmSandbox {
  readonly line: FramedLine
  private files: Uint8Array | undefined

  private constructor(line: FramedLine) {
    this.line = line
  }

  /**
   * Built now, by the fork server of this process.
   * @param signal it is not needed any more: resolves when nothing of it is left
   * @returns undefined where none could be built
   */
  static async open(
    launchFile: Uint8Array,
    { signal, onGone }: { readonly signal: AbortSignal; readonly onGone: (gone: WarmSandbox) => void },
  ): Promise<WarmSandbox | undefined> {
    const line = signal.aborted ? undefined : await awaitedLauncher(hostCall('launch', []).file)
    if (line === undefined) return undefined
    const { socket } = line
    const warm = new WarmSandbox(line)
    socket.unref()
    socket.write(writeFrame(FRAME.plan, Buffer.concat([WARM, launchFile])))
    const ended = new AbortController()
    const isReady = await new Promise<boolean>((resolve) => {
      const reader = new FrameReader()
      line.listen((bytes) => reader.push(bytes, (kind) => resolve(kind === FRAME.ready)))
      socket.once('close', () => resolve(false))
      signal.addEventListener('abort', () => resolve(false), { signal: ended.signal })
      if (signal.aborted) resolve(false)
    })
    ended.abort()
    if (!isReady || !warm.usable) return void (await warm.close())
    socket.once('close', () => onGone(warm))
    return warm
  }

  get usable(): boolean {
    return !this.line.socket.destroyed
  }

  /** Resolves when nothing of it is left. */
  async close(): Promise<void> {
    const { socket } = this.line
    if (socket.destroyed) return
    const cutOff = setTimeout(() => socket.destroy(), CLOSE_MS)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.ref()
    socket.end()
    await closed
    clearTimeout(cutOff)
  }

  /** Its runner looks at these while the command is still prepared. Each takes one list of them, for whichever command comes. */
  lookAhead(files: Uint8Array): void {
    if (this.files !== undefined) return
    this.files = files
    this.line.socket.write(writeFrame(FRAME.guards, files))
  }

  /** Whether it can look at these for a command: it has no other list yet. */
  takes(files: Uint8Array | undefined): boolean {
    return this.files === undefined || this.files === files
  }

  /** @returns undefined when the sandbox did not take the command, which then has not been started */
  async run({ command, env, files, signal, ...streams }: WarmCommand): Promise<Outcome | undefined> {
    const started = performance.now()
    const { socket } = this.line
    const run = new FramedRun(this.line, { ...streams, isTaken: false })
    const cancel = canceller(run, { signal, cut: () => socket.destroy() })
    socket.ref()
    signal?.addEventListener('abort', cancel.cancel)
    try {
      const frames = files === undefined || files === this.files ? [] : [[FRAME.guards, files] as const]
      run.begin([...frames, [FRAME.run, commandBlock({ command, env, umask: ownUmask() })]])
      const { taken, status, stdout, stderr } = await run.end()
      // A run that must end is not tried again: its last messages may not have been read.
      if (!taken && signal?.aborted !== true) return undefined
      return outcomeOfLaunch({
        cause: signal?.aborted === true && status === '' ? 'cancelled' : 'exit',
        exitCode: null,
        signal: null,
        ...reasonWord(signal?.reason),
        stdout,
        stderr,
        status,
        elapsedMs: performance.now() - started,
      })
    } finally {
      cancel.disarm()
      signal?.removeEventListener('abort', cancel.cancel)
    }
  }
}

interface Cancelling {
  readonly signal: AbortSignal | undefined
  readonly cut: () => void
}

/** Before the command is taken there is nothing to end: the answer to that question comes first. */
function canceller(run: FramedRun, { signal, cut }: Cancelling) {
  const state: { cutOff?: NodeJS.Timeout } = {}
  const reportGone = (): void => run.stop(signalOf(signal?.reason))
  run.whenTaken(() => {
    if (signal?.aborted === true) reportGone()
  })
  return {
    cancel: (): void => {
      run.release()
      if (run.isTaken) reportGone()
      state.cutOff ??= setTimeout(cut, CANCEL_MS)
    },
    disarm: (): void => clearTimeout(state.cutOff),
  }
}
