/**
 * One child that speaks frames: a captured run by the native launcher. The command has pipes that launch reads, so programs that
 * open /dev/stdout or /dev/stderr again find what they expect (node's own pipes are sockets, which cannot be opened), and this
 * process has one descriptor to watch.
 * Edge: processes, the clock, files that the child reads.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { NO_CAPTURE } from '../capture.ts'
import { armStopper, type ChildEnd, type ChildStdio, endOf, openFor } from '../child-process.ts'
import type { Launch } from '../launch.ts'
import { FramedLine, FramedRun } from './run-protocol.ts'

export interface FramedChild {
  readonly launch: Launch
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
  readonly stop: (child: ChildProcess) => Promise<void>
  /** Whether the result may come when the command has ended and nothing of it is left, before its walls are taken down. */
  readonly isEarly: boolean
}

/** Milliseconds for what a launcher that was killed had sent. */
const DRAIN_MS = 200

export async function runFramed(input: FramedChild): Promise<ChildEnd> {
  const { launch, stdio } = input
  const started = performance.now()
  const child = spawnFramed(launch, stdio)
  const ended = endOf(child)
  if (child.pid === undefined) return { ...(await ended), ...NOTHING, elapsedMs: performance.now() - started }
  const line = FramedLine.adopt(child.stdio[FRAMES_FD] as Socket)
  const { stdin } = stdio
  const run = new FramedRun(line, { ...stdio, stdin: stdin instanceof Uint8Array ? stdin : NO_INPUT, isTaken: true })
  if (stdin instanceof Uint8Array) run.begin([])
  const stopper = armStopper(child, input)
  const gone = ended.then(() => closeSoon(line.socket))
  const { stdout, stderr, status } = await run.end()
  const isDone = input.isEarly && status !== ''
  const end = isDone ? { exitCode: null, signal: null } : await ended
  stopper.disarm()
  if (!isDone) await gone
  return { ...end, ...stopper.why(), stdout, stderr, status, elapsedMs: performance.now() - started }
}

const NO_INPUT = new Uint8Array(0)
const NOTHING = { cause: 'exit', stdout: NO_CAPTURE, stderr: NO_CAPTURE, status: '' } as const
/** Descriptor of native/runner/launch.h: the status, or the frames. */
const FRAMES_FD = 4

function spawnFramed({ file, argv, env, cwd, descriptors }: Launch, { stdin }: ChildStdio): ChildProcess {
  const files = descriptors.map((one) => ({ fd: one.fd, open: openFor(one) })).filter(isFile)
  const last = Math.max(FRAMES_FD, ...files.map(({ fd }) => fd))
  const extra = Array.from({ length: last - 2 }, (_, index) =>
    index + 3 === FRAMES_FD ? 'pipe' : (files.find(({ fd }) => fd === index + 3)?.open ?? 'ignore'),
  )
  const isFed = stdin instanceof Uint8Array
  try {
    return spawn(file, withOptions(argv, ['--framed', isFed ? 'all' : 'output']), {
      env: { ...env },
      cwd,
      stdio: [isFed ? 'ignore' : stdin, 'ignore', 'ignore', ...extra],
    })
  } finally {
    for (const { open } of files) closeSync(open)
  }
}

interface OpenFile {
  readonly fd: number
  readonly open: number
}

/** With frames, status and liveness are the socket's. */
function isFile(one: { readonly fd: number; readonly open: number | 'pipe' }): one is OpenFile {
  return one.open !== 'pipe'
}

/** The words of the command come last. */
function withOptions(argv: readonly string[], options: readonly string[]): string[] {
  const end = argv.indexOf('--')
  return end === -1 ? [...argv, ...options] : argv.toSpliced(end, 0, ...options)
}

/** The end of the process is the end of the run; its last words may still be on their way. */
function closeSoon(socket: Socket): Promise<void> {
  if (socket.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.destroy(), DRAIN_MS)
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
