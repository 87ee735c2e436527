/**
 * One task in, one report out. Each command runs in a new sandbox over the task's directory, which is made for the task and removed with it.
 * Edge: the clock, timers.
 */
import {
  type Environment,
  HeadTail,
  type Listener,
  neutralise,
  type PolicyLayer,
  type Result,
  SandboxError,
  type TaskPlans,
} from '../core.ts'
import { OutputRelay } from './output-relay.ts'
import {
  CANCEL_CHECK_MS,
  type FinishedTask,
  type RefusedTask,
  type Task,
  type TaskReport,
  type TaskSource,
} from './port.ts'
import { pause } from './retry.ts'
import { narrowedBy, taskProblem } from './task.ts'
import { packChanges, type Stamps, stampFiles, TooManyFiles } from './task-files.ts'
import type { TaskPlace, TaskPlaces } from './task-places.ts'
import { ARCHIVE_BOUNDS, ArchiveError, receiveArchive, unpack } from './unpack.ts'

/** The operator's grants to every task. */
export interface Engine {
  readonly profile: string
  readonly layers: readonly PolicyLayer[]
  /** The caller's environment; holds no secret of the fleet. */
  readonly env: Environment
  /** Where tasks work that name no directory. */
  readonly places: TaskPlaces
  readonly plans: TaskPlans
  /** Files of this machine that no task may change, whatever its policy shows: they decide what runs next, or say what has run. */
  readonly protect?: readonly string[]
}

export interface TaskRun {
  readonly task: Task
  readonly engine: Engine
  readonly source: Pick<TaskSource, 'progress' | 'isCancelled'>
  /** Ends the task at once: this machine goes away. */
  readonly signal: AbortSignal
}

/** Does not throw: what goes wrong is a report. When it resolves, nothing of the task is left. */
export async function runTask(run: TaskRun): Promise<TaskReport> {
  const problem = taskProblem(run.task)
  if (problem !== undefined) return { status: 'refused', cause: 'invalid', message: problem, elsewhere: false }
  const begunMs = performance.now()
  try {
    const report = run.task.directory === undefined ? await runApart(run) : await runIn(run, run.task.directory)
    if (run.signal.aborted && (report.status === 'refused' || report.reason === 'cancelled')) return SHUTDOWN
    if (report.status === 'refused') return report
    return { ...report, durationMs: Math.round(performance.now() - begunMs) }
  } catch (error) {
    return run.signal.aborted ? SHUTDOWN : refusalOf(error)
  }
}

const SHUTDOWN: RefusedTask = {
  status: 'refused',
  cause: 'shutdown',
  message: 'this machine was told to stop before the task had ended',
  elsewhere: true,
}

/** The files could not be had. */
class FilesError extends Error {}

function refusalOf(error: unknown): RefusedTask {
  const { message } = error as Error
  if (error instanceof ArchiveError) return { status: 'refused', cause: 'files', message, elsewhere: false }
  if (error instanceof FilesError) return { status: 'refused', cause: 'files', message, elsewhere: true }
  if (!(error instanceof SandboxError)) return { status: 'refused', cause: 'sandbox', message, elsewhere: true }
  return { status: 'refused', cause: 'sandbox', code: error.code, message, elsewhere: error.code !== 'COMMAND_INVALID' }
}

/* ---- a directory for each task ---- */

async function runApart(run: TaskRun): Promise<TaskReport> {
  return await run.engine.places.use(async (place) => {
    const before = await fill(run, place)
    const report = await runIn(run, place.work)
    return report.status === 'finished' ? await withChanges(report, place.work, before) : report
  })
}

async function fill({ task: { files }, signal }: TaskRun, { work, archive }: TaskPlace): Promise<Stamps> {
  if (files === undefined) return new Map()
  try {
    await receiveArchive(await files.open(signal), archive, ARCHIVE_BOUNDS.archiveBytes)
  } catch (cause) {
    if (cause instanceof ArchiveError) throw cause
    throw new FilesError(`the files of the task cannot be had: ${(cause as Error).message}`, { cause })
  }
  await unpack(archive, work)
  return await stampFiles(work)
}

/** A task with more than can be carried has run all the same: its output says what is missing. */
async function withChanges(report: FinishedTask, work: string, before: Stamps): Promise<FinishedTask> {
  try {
    const { zip, left } = await packChanges(work, before)
    const more = left.length > MOST_NAMED ? [`${left.length - MOST_NAMED} more`] : []
    const named = [...left.slice(0, MOST_NAMED).map((line) => neutralise(line.slice(-LONGEST_LINE))), ...more]
    const missing = named.map((line) => `a file that the task made is not in the report: ${line}`)
    return { ...report, ...(zip !== undefined && { resultZip: zip }), warnings: [...report.warnings, ...missing] }
  } catch (error) {
    const why = error instanceof TooManyFiles ? error.message : `they cannot be read: ${(error as Error).message}`
    return { ...report, warnings: [...report.warnings, `the files that the task made are not in the report: ${why}`] }
  }
}

/** Files that are named of those that a report lacks, and characters of such a line. */
const MOST_NAMED = 10
const LONGEST_LINE = 400

/* ---- its commands ---- */

async function runIn(run: TaskRun, directory: string): Promise<TaskReport> {
  const { task, source, signal } = run
  const relay = new OutputRelay((output) => source.progress(task, output))
  const watch = watchForCancel(run)
  try {
    const results = await runCommands(run, {
      directory,
      onStdout: relay.listener('stdout'),
      onStderr: relay.listener('stderr'),
      signal: AbortSignal.any([signal, watch.signal]),
    })
    await relay.end()
    return reportOf(results)
  } finally {
    await watch.end()
  }
}

interface Commands {
  readonly directory: string
  readonly onStdout: Listener
  readonly onStderr: Listener
  readonly signal: AbortSignal
}

/** At least one. A command that fails does not keep the next from running; a sandbox that fails does. */
async function runCommands(
  { task, engine }: TaskRun,
  { directory, signal, ...listeners }: Commands,
): Promise<readonly Result[]> {
  const { profile, layers, env, plans, protect = [] } = engine
  const variant = JSON.stringify([task.timeoutMs, task.env, task.require])
  const results: Result[] = []
  for (const command of task.commands) {
    const result = await plans.exec({
      command,
      profile,
      layers,
      env,
      cwd: directory,
      mode: 'capture',
      stdin: typeof task.stdin === 'string' ? Buffer.from(task.stdin) : (task.stdin ?? 'ignore'),
      variant,
      narrow: async (policy) => narrowedBy(task, { ...policy, protectFiles: [...policy.protectFiles, ...protect] }),
      signal,
      ...listeners,
    })
    results.push(result)
    if (isRefusal(result) || signal.aborted) break
  }
  return results
}

/** The sandbox failed, not the command in it. */
const isRefusal = (result: Result): boolean => result.error !== undefined && result.exitStatus === SANDBOX_FAILED
const SANDBOX_FAILED = 125

/** Exit code of a task that was cancelled, whatever its command made of it (docs/fleet.md). */
const CANCELLED = 130

function reportOf(results: readonly Result[]): TaskReport {
  const last = results.at(-1)
  if (last === undefined) throw new TypeError('a task without commands')
  const { error, reason, message, planHash, backend, isolation, limits, denials } = last
  if (error !== undefined && isRefusal(last))
    return { status: 'refused', cause: 'sandbox', code: error.code, message: error.message, elsewhere: true }
  const [stdout, stderr] = [joined(results, 'stdout'), joined(results, 'stderr')]
  return {
    status: 'finished',
    exitCode: last.reason === 'cancelled' ? CANCELLED : last.exitStatus,
    reason,
    message: error?.message ?? (reason === 'exit' || reason === 'signal' ? '' : message),
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: { stdout: stdout.dropped, stderr: stderr.dropped },
    durationMs: 0,
    planHash,
    backend,
    isolation,
    limits,
    denials,
    warnings: [...new Set(results.flatMap(({ warnings }) => warnings))],
  }
}

/** Bytes of each stream that a report holds, however many commands there are. */
const REPORTED_BYTES = 1024 * 1024

/** Bytes that are not UTF-8 become U+FFFD: protocols carry text. */
function joined(
  results: readonly Result[],
  stream: 'stdout' | 'stderr',
): { readonly text: string; readonly dropped: number } {
  const kept = new HeadTail(REPORTED_BYTES)
  for (const result of results) kept.push(Buffer.from(result[stream], result.encoding))
  const { head, tail, bytes } = kept.capture()
  const whole = Buffer.concat([head, tail])
  const before = results.reduce((sum, { truncated }) => sum + truncated[stream], 0)
  return { text: whole.toString('utf8'), dropped: before + bytes - whole.length }
}

/* ---- its end from outside ---- */

function watchForCancel({ task, source }: TaskRun): {
  readonly signal: AbortSignal
  readonly end: () => Promise<void>
} {
  const cancel = new AbortController()
  const over = new AbortController()
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted && !cancel.signal.aborted) {
      await pause(CANCEL_CHECK_MS, over.signal)
      if (!over.signal.aborted && (await source.isCancelled(task))) cancel.abort('SIGTERM')
    }
  }
  const watching = watch()
  return {
    signal: cancel.signal,
    end: async () => {
      over.abort()
      await watching
    },
  }
}
