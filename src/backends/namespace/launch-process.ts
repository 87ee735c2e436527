/**
 * One child that is the native runner: every run of node's is started here, or by the fork server. It gets the launch file by a descriptor and
 * everything else as frames on one socket, whose end is the end of the run. A captured command writes to pipes that the runner reads, so programs that
 * open /dev/stdout or /dev/stderr again find what they expect (node's own pipes are sockets, which cannot be opened).
 * Edge: processes, the clock, files that the child reads.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { FRAME, RUN_FD } from '../../contract.ts'
import { ownUmask } from '../../os/umask.ts'
import { NO_CAPTURE } from '../capture.ts'
import {
  armStopper,
  type ChildEnd,
  type ChildInput,
  collect,
  drain,
  endOf,
  feed,
  openFor,
  type Stoppable,
} from '../child-process.ts'
import { NO_INPUT } from '../input.ts'
import type { NativeLaunch } from '../launch.ts'
import { parseLaunchStatus } from '../launch-status.ts'
import { endedOnItsOwn } from '../outcome.ts'
import { forkedLauncher, noteForked } from './fork-server.ts'
import { commandBlock } from './frames.ts'
import { FramedLine, FramedRun } from './run-protocol.ts'

/** The launcher holds the deadline. */
export interface LaunchProcess extends Pick<ChildInput, 'stdio' | 'signal' | 'deadlineMs' | 'stop'> {
  readonly launch: NativeLaunch
  /** Called once with the pid of a launcher that is a child of our own, as soon as it exists. */
  readonly onStart?: (pid: number) => void
  /** The terminator's channel, for the helper of the network; ours is closed. */
  readonly channel?: Socket | undefined
  /** For a sandbox that serves: called once, when its command has been executed. */
  readonly onServing?: (() => void) | undefined
  /** Whether the result may come when the command has ended and nothing of it is left, before its walls are taken down. */
  readonly isEarly: boolean
}

export interface LaunchEnd extends ChildEnd {
  /** The facts of the plan have changed, and nothing was run. */
  readonly isStale: boolean
}

/** Milliseconds for what a launcher that was killed had sent. */
const DRAIN_MS = 200

/** Milliseconds since the call, by the clock that costs nothing: node loads eight modules for `performance`. */
function stopwatch(): () => number {
  const started = process.hrtime.bigint()
  return () => Number(process.hrtime.bigint() - started) / 1e6
}

export async function runLaunch(input: LaunchProcess): Promise<LaunchEnd> {
  const mode = modeOf(input)
  const line = mode !== 'own' && isForkable(input) ? forkedLauncher(input.launch.file) : undefined
  return (line && (await runForked(input, { line, mode }))) ?? (await runChild(input, mode))
}

async function runChild(input: LaunchProcess, mode: StreamMode): Promise<LaunchEnd> {
  const { launch, stdio } = input
  const elapsedMs = stopwatch()
  const child = spawnLaunch(input, mode)
  const ended = endOf(child)
  if (child.pid === undefined) return { ...(await ended), ...NOTHING, elapsedMs: elapsedMs() }
  input.onStart?.(child.pid)
  const line = FramedLine.adopt(child.stdio[RUN_FD] as Socket)
  const stdin = mode === 'all' && typeof stdio.stdin !== 'string' ? stdio.stdin : undefined
  const run = new FramedRun(line, { ...stdio, stdin: stdin ?? NO_INPUT, deadlineMs: input.deadlineMs, isTaken: true })
  if (input.onServing !== undefined) run.whenTaken(input.onServing)
  // In a terminal's run only: its bytes come by the runner's own streams.
  const own = [
    collect(child.stdout, stdio.outputCap, stdio.onStdout),
    collect(child.stderr, stdio.outputCap, stdio.onStderr),
  ] as const
  feed(child, stdio.stdin)
  run.begin(framesOf(launch), { withInput: stdin !== undefined })
  const stop = () => input.stop(endable(child, run))
  const stopper = armStopper(child, { signal: input.signal, stop, signals: stdio.signals })
  void stopper.stopped.then(() => run.release())
  const gone = ended.then(() => {
    run.readOn()
    return closeSoon(line.socket)
  })
  const { taken, status, ...framed } = await run.end()
  const isDone = input.isEarly && (status !== '' || !taken)
  const end = isDone ? { exitCode: null, signal: null } : await ended
  if (!isDone) await gone
  if (mode === 'own') await drain(own, wasStopped(status) ? { stopped: Promise.resolve() } : stopper)
  stopper.disarm()
  const [stdout, stderr] = mode === 'own' ? own.map(({ capture }) => capture()) : [framed.stdout, framed.stderr]
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
  return {
    ...end,
    ...stopper.why(),
    stdout: stdout ?? NO_CAPTURE,
    stderr: stderr ?? NO_CAPTURE,
    status,
    isStale: !taken,
    elapsedMs: elapsedMs(),
  }
}

/** Only a child of our own can be waited for until all is taken down, or be handed what is open here. */
const isForkable = ({ isEarly, channel, stdio: { stdin } }: LaunchProcess): boolean =>
  isEarly && channel === undefined && stdin !== 'inherit'

interface Forked {
  readonly line: FramedLine
  readonly mode: StreamMode
}

/** @returns undefined when the server let it down: then nothing has been run */
async function runForked(input: LaunchProcess, { line, mode }: Forked): Promise<LaunchEnd | undefined> {
  const { launch, stdio, deadlineMs } = input
  const elapsedMs = stopwatch()
  const stdin = typeof stdio.stdin === 'string' ? NO_INPUT : stdio.stdin
  const run = new FramedRun(line, { ...stdio, stdin, deadlineMs, isTaken: false })
  run.begin([[FRAME.plan, planOf(launch, mode)], ...framesOf(launch)], { withInput: mode === 'all' })
  const stopper = armStopper(stoppable(run, line), { signal: input.signal, stop: input.stop, signals: undefined })
  void stopper.stopped.then(() => run.release())
  const { taken, isRefused, status, stdout, stderr } = await run.end()
  stopper.disarm()
  // A run that must end is not tried again: its last messages may not have been read.
  const isLetDown = !taken && !isRefused && input.signal?.aborted !== true
  noteForked({ isLetDown })
  if (isLetDown) return undefined
  const end = { exitCode: null, signal: null, ...stopper.why(), stdout, stderr, status }
  return { ...end, isStale: isRefused, elapsedMs: elapsedMs() }
}

function planOf({ descriptors }: NativeLaunch, mode: StreamMode): Uint8Array {
  const [file] = descriptors
  if (file === undefined || file.carries === 'status') throw new TypeError('a launch without its file')
  return Buffer.concat([Buffer.from(`${mode}\0`), file.carries === 'file' ? readFileSync(file.path) : file.bytes])
}

/** A launcher passes a SIGHUP on to the command, so another message tells it that the run must end. */
function endable(child: ChildProcess, run: FramedRun): Stoppable {
  const kill = (signal: NodeJS.Signals): void => {
    if (signal === 'SIGHUP') run.stop(signal)
    else child.kill(signal)
  }
  return { kill, exitCode: child.exitCode, signalCode: child.signalCode }
}

/** The end of the connection is the end of the run, at once. */
function stoppable(run: FramedRun, { socket }: FramedLine): Stoppable {
  const kill = (signal: NodeJS.Signals): void => {
    if (signal === 'SIGKILL') socket.destroy()
    else run.stop(signal)
  }
  return { kill, exitCode: null, signalCode: null }
}

const NOTHING = { cause: 'exit', stdout: NO_CAPTURE, stderr: NO_CAPTURE, status: '', isStale: false } as const

/** The launcher enforces limits on its own: at a limit no listener is waited for. */
const wasStopped = (status: string): boolean => !endedOnItsOwn(parseLaunchStatus(status) ?? { reason: 'lost' })

/** The command's streams that are frames: none, its output, or its stdin, too. A terminal has none of them. */
type StreamMode = 'own' | 'output' | 'all'

function modeOf({ launch: { request }, stdio }: LaunchProcess): StreamMode {
  if (stdio.mode === 'inherit' || request.tty) return 'own'
  return typeof stdio.stdin === 'string' ? 'output' : 'all'
}

function framesOf({ env, request }: NativeLaunch): readonly (readonly [kind: number, bytes: Uint8Array])[] {
  const run = [FRAME.run, commandBlock({ command: request.words, env, umask: ownUmask() })] as const
  return request.guards === undefined ? [run] : [[FRAME.guards, request.guards], run]
}

function spawnLaunch(
  { launch: { file, argv, cwd, descriptors }, stdio: { mode: output, stdin }, channel }: LaunchProcess,
  mode: StreamMode,
): ChildProcess {
  const files = descriptors.map((one) => openFor(one)).filter((one) => one !== 'pipe')
  const out = mode !== 'own' ? 'ignore' : output === 'capture' ? 'pipe' : 'inherit'
  const fed = mode === 'own' ? 'pipe' : 'ignore'
  try {
    return spawn(file, [...argv, '--streams', mode], {
      env: {},
      cwd,
      stdio: [
        typeof stdin === 'string' ? stdin : fed,
        out,
        out,
        ...files,
        'pipe',
        ...(channel === undefined ? [] : [channel]),
      ],
    })
  } finally {
    for (const open of files) closeSync(open)
    channel?.destroy()
  }
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
