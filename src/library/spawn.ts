/**
 * A command that runs while its caller talks to it. No extra process is involved: it is one run like every other, with
 * streams for its listeners and its input. Pure.
 *
 * A stream without a reader makes the command wait once the pipes and a few buffers of 64 KiB are full. Nothing here can be an
 * unhandled rejection or an unhandled `error` event: streams only end, and what went wrong is in `result`.
 */
import { PassThrough, Readable, type Writable } from 'node:stream'
import type { Listener } from '../backends/capture.ts'
import { type Input, streamInput } from '../backends/input.ts'
import type { ExecResult } from '../run/layer-handle.ts'
import { listWords } from '../text/choices.ts'
import { quoteValue } from '../text/units.ts'
import { OptionsError } from './check-options.ts'

const KILL_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
export type KillSignal = (typeof KILL_SIGNALS)[number]

export interface SpawnedCommand extends AsyncDisposable {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /**
   * Ends the run. The command gets the signal (default SIGTERM; a container none), and its remaining processes get SIGKILL 250 ms later.
   * @throws OptionsError for another signal: SIGKILL follows automatically
   */
  readonly kill: (signal?: KillSignal) => void
  /**
   * How the command ended, when that is so and its output was read; after `kill`, an abort or the time limit no reader is waited for.
   * Its `stdout` and `stderr` are what the output limit keeps. Rejects with SandboxError when the sandbox was refused.
   */
  readonly result: Promise<ExecResult>
}

export interface SpawnStreams {
  readonly stdin: Input
  readonly onStdout: Listener
  readonly onStderr: Listener
  readonly signal: AbortSignal
}

/** @param signal ends the run, too */
export function spawnBy(run: (streams: SpawnStreams) => Promise<ExecResult>, signal?: AbortSignal): SpawnedCommand {
  const abort = new AbortController()
  const stdin = new PassThrough()
  const [stdout, stderr] = [new Output(), new Output()]
  const follow = (): void => abort.abort(signal?.reason)
  if (signal?.aborted === true) follow()
  signal?.addEventListener('abort', follow)
  const kill = (by: KillSignal = 'SIGTERM'): void => abort.abort(checkedSignal(by))
  const streams = {
    stdin: closable(streamInput(stdin)),
    onStdout: stdout.hear,
    onStderr: stderr.hear,
    signal: abort.signal,
  }
  const result = run(streams).finally(() => {
    signal?.removeEventListener('abort', follow)
    stdin.destroy()
    for (const stream of [stdout, stderr]) stream.finish()
  })
  // Nobody has to look at it.
  result.catch(() => undefined)
  const dispose = async (): Promise<void> => {
    kill()
    await result.catch(() => undefined)
  }
  return { stdin, stdout, stderr, kill, result, [Symbol.asyncDispose]: dispose }
}

/** The caller may end it by `destroy()` as well as by `end()`. */
function closable(input: Input): Input {
  const endOf = (error: NodeJS.ErrnoException): Uint8Array => {
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return new Uint8Array(0)
    throw error
  }
  return { ...input, piece: (index) => Promise.resolve(input.piece(index)).catch(endOf) }
}

function checkedSignal(signal: KillSignal): KillSignal {
  if (KILL_SIGNALS.includes(signal)) return signal
  const choices = listWords(KILL_SIGNALS)
  throw new OptionsError([
    `kill: expected ${choices}, got ${quoteValue(signal)}. What is left after 250 ms gets SIGKILL by itself.`,
  ])
}

/**
 * The capacity of a pipe: a program that reads only one of the two streams gets as far as with pipes. Both come over one socket, so behind a
 * stream that is full the other one waits, too.
 */
const PIPE_BYTES = 65_536

/** Chunks are pushed as they come; the run waits while the reader has enough of them. */
class Output extends Readable {
  private isFinished = false
  private wake: () => void = () => undefined

  constructor() {
    super({ highWaterMark: PIPE_BYTES })
  }

  readonly hear = (chunk: Uint8Array): Promise<void> | undefined => {
    // A destroyed stream has no reader: the command continues, and its output is in the result.
    if (this.isFinished || this.destroyed || this.push(chunk)) return undefined
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }

  finish(): void {
    this.isFinished = true
    this.push(null)
  }

  override _read(): void {
    this.wake()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.wake()
    done(error)
  }
}
