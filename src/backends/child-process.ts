/**
 * One child process held from node: for the backends whose end is not held by the native launcher.
 * Edge: processes, pipes, the clock, unlinked temporary files.
 *
 * The child gets its own stdio, files that have no name any more for what it must read, and a pipe for what it reports.
 * At the deadline, or when the caller cancels, `stop` is asked to end it; whatever is left of the child after that is killed.
 * The end is the end of the process, not of its output: an orphan that keeps stdout open delays nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, constants, openSync, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { SandboxError } from '../error.ts'
import type { LentSignals } from '../os/passed-signals.ts'
import { promised } from '../os/promised.ts'
import { randomHex } from '../os/random-id.ts'
import { HeadTail, type Listener, NO_CAPTURE } from './capture.ts'
import { Delivery } from './delivery.ts'
import type { Input } from './input.ts'
import type { Launch, LaunchDescriptor } from './launch.ts'
import type { Capture } from './outcome.ts'

export interface ChildStdio {
  /** `inherit`: the caller's own stdout and stderr; `capture`: kept up to the cap and handed to the callbacks. */
  readonly mode: 'inherit' | 'capture'
  readonly stdin: 'inherit' | 'ignore' | Input
  /** Bytes of each stream that are kept; `null` keeps all. */
  readonly outputCap: number | null
  readonly onStdout?: Listener
  readonly onStderr?: Listener
  /** The caller's, for the command. */
  readonly signals?: LentSignals
}

export interface ChildInput {
  readonly launch: Launch
  readonly stdio: ChildStdio
  readonly deadlineMs?: number | undefined
  /** Called at the deadline: milliseconds to add, for a child whose command started later than the child. */
  readonly extensionMs?: () => Promise<number>
  readonly signal?: AbortSignal | undefined
  /** The child leads its process group, so that the whole group can be ended. */
  readonly ownGroup?: boolean
  /** Called once with the pid, as soon as the child exists. */
  readonly onStart?: (pid: number) => void
  /** Ends it; the child itself is killed when it is still there `STOP_GRACE_MS` later. */
  readonly stop: (child: Stoppable) => Promise<void>
  /** How a signal for the command reaches it; by default the child gets it. */
  readonly pass?: (signal: NodeJS.Signals) => void
}

export interface ChildEnd {
  readonly cause: 'exit' | 'deadline' | 'cancelled'
  readonly exitCode: number | null
  readonly signal: string | null
  readonly cancelledBy?: string
  /** Symbolic, when the program could not be started at all. */
  readonly startErrno?: string
  readonly stdout: Capture
  readonly stderr: Capture
  /** Bytes that came through the status descriptor. */
  readonly status: string
  readonly elapsedMs: number
}

/** Milliseconds between the call of `stop` and the kill of a child that is still there. */
const STOP_GRACE_MS = 1_000
/** Milliseconds without a byte after which a stream that another process still holds open is given up. */
const DRAIN_MS = 100
/** Rounds of `DRAIN_MS`, so that an orphan that prints without end does not delay the result. */
const DRAIN_ROUNDS = 10

export async function runChild(input: ChildInput): Promise<ChildEnd> {
  const { launch, stdio } = input
  const files = launch.descriptors.map((descriptor) => ({ descriptor, fd: openFor(descriptor) }))
  const startedNs = process.hrtime.bigint()
  const child = spawnChild(input, files)
  for (const { fd } of files) if (typeof fd === 'number') closeSync(fd)
  if (child.pid !== undefined) input.onStart?.(child.pid)
  const stdout = collect(child.stdout, stdio.outputCap, stdio.onStdout)
  const stderr = collect(child.stderr, stdio.outputCap, stdio.onStderr)
  const status = collect(statusPipe(child, launch.descriptors), null)
  feed(child, stdio.stdin)
  const stopper = armStopper(child, { ...input, signals: stdio.signals })
  const end = await endOf(child)
  await drain([stdout, stderr, status], stopper)
  stopper.disarm()
  for (const stream of streamsOf(child)) stream?.destroy()
  const elapsedMs = Number(process.hrtime.bigint() - startedNs) / 1e6
  const reported = Buffer.from(status.capture().head).toString('utf8')
  return { ...end, ...stopper.why(), stdout: stdout.capture(), stderr: stderr.capture(), status: reported, elapsedMs }
}

interface OpenDescriptor {
  readonly descriptor: LaunchDescriptor
  readonly fd: number | 'pipe'
}

export function openFor(descriptor: LaunchDescriptor): number | 'pipe' {
  if (descriptor.carries === 'file') return openSync(descriptor.path, 'r')
  return descriptor.carries === 'bytes' ? openUnlinked(descriptor.bytes) : 'pipe'
}

/**
 * A file that only its descriptor leads to, read from its start. A pipe would do for readers of descriptors, but node's are
 * sockets, and those cannot be opened again as /dev/fd/N.
 */
export function openUnlinked(bytes: Uint8Array): number {
  const fd = openNew()
  // At positions, not at the offset: where /dev/fd/N shares the offset (macOS) the reader must find it at 0.
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at)
  return fd
}

/** O_TMPFILE of open(2), which node has no name for: a file without a name is not left behind when this process is killed. */
const NAMELESS = 0o20000000 | constants.O_DIRECTORY | constants.O_RDWR
/** Errors of a file system without O_TMPFILE, and of a kernel that does not know the flag. */
const NOT_NAMELESS = new Set(['EOPNOTSUPP', 'EISDIR', 'EINVAL'])

/** @throws SandboxError SETUP_FAILED where this user can make no temporary file */
function openNew(): number {
  try {
    return process.platform === 'linux' ? openNameless() : openAndUnlink()
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? 'unknown'
    throw new SandboxError('SETUP_FAILED', `${tmpdir()}: no temporary file can be made there (${why})`, {
      hint: 'make it writable (chmod 1777), or set TMPDIR to a directory that is',
      cause,
    })
  }
}

function openNameless(): number {
  try {
    return openSync(tmpdir(), NAMELESS, 0o600)
  } catch (error) {
    if (!NOT_NAMELESS.has((error as NodeJS.ErrnoException).code ?? '')) throw error
    return openAndUnlink()
  }
}

function openAndUnlink(): number {
  const path = join(tmpdir(), `.llm-do-${randomHex(16)}`)
  const fd = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return fd
}

function spawnChild({ launch, stdio, ownGroup }: ChildInput, files: readonly OpenDescriptor[]): ChildProcess {
  const out = stdio.mode === 'capture' ? 'pipe' : 'inherit'
  const input = typeof stdio.stdin === 'string' ? stdio.stdin : 'pipe'
  const last = Math.max(2, ...files.map(({ descriptor }) => descriptor.fd))
  const extra = Array.from({ length: last - 2 }, (_, index) => fdAt(files, index + 3))
  return spawn(launch.file, [...launch.argv], {
    env: { ...launch.env },
    cwd: launch.cwd,
    detached: ownGroup === true,
    stdio: [input, out, out, ...extra],
    windowsHide: true,
  })
}

function fdAt(files: readonly OpenDescriptor[], wanted: number): number | 'pipe' | 'ignore' {
  return files.find(({ descriptor }) => descriptor.fd === wanted)?.fd ?? 'ignore'
}

/** None where no process could be made for want of descriptors (EMFILE): node's types promise too much. */
function streamsOf(child: ChildProcess): readonly ChildProcess['stdio'][number][] {
  return (child.stdio as ChildProcess['stdio'] | undefined) ?? []
}

function statusPipe(child: ChildProcess, descriptors: Launch['descriptors']): Readable | null {
  const fd = descriptors.find(({ carries }) => carries === 'status')?.fd
  return fd === undefined ? null : ((streamsOf(child)[fd] ?? null) as Readable | null)
}

export interface Collected {
  readonly capture: () => Capture
  readonly bytes: () => number
  readonly closed: Promise<void>
  readonly delivery: Delivery
}

export function collect(stream: Readable | null | undefined, cap: number | null, listener?: Listener): Collected {
  const delivery = new Delivery(() => void stream?.resume())
  if (!stream) return { capture: () => NO_CAPTURE, bytes: () => 0, closed: Promise.resolve(), delivery }
  const kept = new HeadTail(cap)
  stream.on('data', (chunk: Uint8Array) => {
    kept.push(chunk)
    if (listener === undefined) return
    delivery.hand(chunk, listener)
    // Node resumes the streams of a child that has ended.
    if (!delivery.isIdle) stream.pause()
  })
  // A reset says the same as an end: nothing more comes.
  stream.on('error', () => stream.destroy())
  const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()))
  return { capture: () => kept.capture(), bytes: () => kept.bytes, closed, delivery }
}

/**
 * Waits until all streams are closed, or silent for a while: the pipe may hold the last output of a child that is gone. A listener
 * that is busy is waited for, but not that of a run that was stopped.
 */
export async function drain(streams: readonly Collected[], { stopped }: Pick<Stopper, 'stopped'>): Promise<void> {
  void stopped.then(() => {
    for (const { delivery } of streams) delivery.release()
  })
  const heard = () => Promise.all(streams.map(({ delivery }) => delivery.heard()))
  const bytes = (): number => streams.reduce((sum, stream) => sum + stream.bytes(), 0)
  const closed = Promise.all(streams.map((stream) => stream.closed)).then(() => true)
  for (let round = 0; round < DRAIN_ROUNDS; round += 1) {
    await heard()
    const before = bytes()
    if (await Promise.race([closed, afterMs(DRAIN_MS)])) break
    // Timers come before reads in the event loop: what arrived in the meantime must be read before silence is believed.
    await new Promise((resolve) => setImmediate(resolve))
    if (bytes() === before) break
  }
  await heard()
}

/** Passes the input on piece by piece. If a source fails, its owner handles the error; the command only gets no more. */
export function feed({ stdin: pipe }: ChildProcess, stdin: ChildStdio['stdin']): void {
  if (typeof stdin === 'string' || pipe === null) return
  // EPIPE: a command may end without reading its input.
  pipe.on('error', () => pipe.destroy())
  pour(stdin, pipe).catch(() => pipe.destroy())
}

async function pour(input: Input, pipe: Writable): Promise<void> {
  for (let index = 0; !pipe.destroyed; index += 1) {
    const piece = await input.piece(index)
    if (piece.length === 0) return void pipe.end()
    if (!pipe.write(piece)) await roomIn(pipe)
  }
}

function roomIn(pipe: Writable): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['drain', 'close']) pipe.once(event, () => resolve())
  })
}

export type ProcessEnd = Pick<ChildEnd, 'exitCode' | 'signal' | 'startErrno'>

export function endOf(child: ChildProcess): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) resolve({ exitCode: null, signal: null, startErrno: error.code ?? 'UNKNOWN' })
    })
  })
}

export interface Stopper {
  /** At the deadline or an abort, even one that comes when the process has ended and only its output is still read. */
  readonly stopped: Promise<void>
  readonly disarm: () => void
  readonly why: () => Pick<ChildEnd, 'cause' | 'cancelledBy'>
}

export interface StopInput extends Pick<ChildInput, 'deadlineMs' | 'extensionMs' | 'signal' | 'stop' | 'pass'> {
  readonly signals: LentSignals | undefined
}

/** A child, or its replacement, that can be ended. */
export interface Stoppable extends Pick<ChildProcess, 'exitCode' | 'signalCode'> {
  readonly kill: (signal: NodeJS.Signals) => void
}

/** Asks for the end once, for whichever reason comes first. */
export function armStopper(child: Stoppable, input: StopInput): Stopper {
  const { deadlineMs, extensionMs, signal, stop, signals, pass = (name) => child.kill(name) } = input
  const state: { why: Pick<ChildEnd, 'cause' | 'cancelledBy'>; kill?: NodeJS.Timeout; deadline?: NodeJS.Timeout } = {
    why: { cause: 'exit' },
  }
  const stopped = promised<void>()
  const end = (why: Pick<ChildEnd, 'cause' | 'cancelledBy'>): void => {
    stopped.resolve()
    if (state.why.cause !== 'exit' || child.exitCode !== null || child.signalCode !== null) return
    state.why = why
    state.kill = setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS)
    stop(child).catch(() => child.kill('SIGKILL'))
  }
  // On a busy machine an end that came before the deadline is learned after it: timers are looked at first.
  const endAtDeadline = async (): Promise<void> => {
    await new Promise(setImmediate)
    end({ cause: 'deadline' })
  }
  const cancel = (): void => end({ cause: 'cancelled', ...reasonWord(signal?.reason) })
  const expire = async (): Promise<void> => {
    // An extension that cannot be found out is none: the deadline is a promise.
    const more = (await extensionMs?.().catch(() => 0)) ?? 0
    if (more <= 0) await endAtDeadline()
    else state.deadline = setTimeout(() => void endAtDeadline(), more)
  }
  if (deadlineMs !== undefined) state.deadline = setTimeout(() => void expire(), deadlineMs)
  if (signal?.aborted === true) cancel()
  signal?.addEventListener('abort', cancel)
  const giveBack = signals?.(pass)
  return {
    stopped: stopped.promise,
    disarm: () => {
      giveBack?.()
      clearTimeout(state.deadline)
      clearTimeout(state.kill)
      signal?.removeEventListener('abort', cancel)
    },
    why: () => state.why,
  }
}

/** Describes the reason of an abort: a plain word, such as the name of a signal, or an error other than the standard AbortError. */
export function reasonWord(reason: unknown): { readonly cancelledBy?: string } {
  if (typeof reason === 'string') return { cancelledBy: reason }
  return reason instanceof Error && reason.name !== 'AbortError' ? { cancelledBy: String(reason) } : {}
}

const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGHUP'] as const

/** The signal that a run gets when it is aborted for this reason. */
export function signalOf(reason: unknown): NodeJS.Signals {
  return PASSED_ON.find((name) => name === reason) ?? 'SIGTERM'
}

function afterMs(ms: number): Promise<false> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(false), ms).unref()
  })
}
