/**
 * One command as a plain process of the host.
 * Edge: processes, /proc, the clock.
 *
 * It leads a new process group. At the end every process that carries the run's variable is killed: members that left the
 * group keep their environment, so a double fork does not hide them; only a process that clears its environment escapes.
 */
import { existsSync, statSync } from 'node:fs'
import pidusage from 'pidusage'
import { SandboxError } from '../../error.ts'
import { namesIn, orElse, textOf } from '../../os/look.ts'
import { processorsIn, statusLine } from '../../os/proc-status.ts'
import { SYSTEM_PATH } from '../../os/run-program.ts'
import type { Plan } from '../../plan/plan.ts'
import type { BackendRun, RunInputs, Runner } from '../backend.ts'
import { type ChildEnd, type ChildStdio, runChild } from '../child-process.ts'
import { ownReason, REASON_OF_CAUSE, withExitStatus } from '../ending.ts'
import type { Launch } from '../launch.ts'
import type { Outcome, SetupFailure } from '../outcome.ts'
import { buildProcess, type ProcessInputs, RUN_VARIABLE } from './build.ts'

export interface ProcessRun {
  readonly plan: Plan
  readonly run: ProcessInputs
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
}

/** @throws SandboxError NO_BACKEND without the second half of the opt-in, SETUP_FAILED without a shell to start it */
export async function superviseProcess({ plan, run, stdio, signal }: ProcessRun): Promise<Outcome> {
  const launch = onFewerProcessors(buildProcess(plan, run), plan)
  const watchdog = newWatchdog(plan, run.runId)
  const end = await runChild({
    launch,
    stdio,
    signal,
    deadlineMs: plan.limits.timeoutMs,
    ownGroup: true,
    onStart: watchdog.start,
    stop: async () => void killRun(run.runId),
  })
  watchdog.stop()
  const killed = killRun(run.runId)
  if (end.startErrno !== undefined)
    throw new SandboxError(
      'SETUP_FAILED',
      `process: ${launch.file} cannot be started in ${launch.cwd} (${end.startErrno})`,
      {
        hint: 'check that the directory exists (--workdir DIR) and that util-linux is installed',
      },
    )
  const isOutOfProcesses = watchdog.fired() === 'pids'
  return withExitStatus({
    ...conclude(end, { run, fired: watchdog.fired() }),
    ...(end.cancelledBy !== undefined && { cancelledBy: end.cancelledBy }),
    stdout: end.stdout,
    stderr: end.stderr,
    setupMs: 0,
    durationMs: end.elapsedMs,
    usage: { cpuMs: 0, peakMemory: watchdog.peak(), peakPids: 0 },
    ...(isOutOfProcesses && { events: { oomKill: 0, pidsMax: 1, throttledMs: 0 } }),
    killed,
    warnings: [],
  })
}

type End = Pick<Outcome, 'reason' | 'exitCode' | 'signal' | 'failure'>

function conclude(end: ChildEnd, { run, fired }: { run: RunInputs; fired: Fired }): End {
  if (fired !== undefined) return { reason: fired, exitCode: null, signal: 'SIGKILL' }
  if (end.cause !== 'exit') return { reason: REASON_OF_CAUSE[end.cause], exitCode: null, signal: end.signal }
  const failure = notExecuted(end, run)
  if (failure !== undefined) return { reason: 'setup', exitCode: null, signal: null, failure }
  const reason = end.signal === 'SIGXCPU' ? 'cpu-time' : ownReason(end, false)
  return { reason, exitCode: end.exitCode, signal: end.signal }
}

/** 126 and 127 may be the shell's word for a program that it could not become, or the command's own. */
function notExecuted({ exitCode }: ChildEnd, { command, commandEnv }: RunInputs): SetupFailure | undefined {
  const program = command[0] ?? ''
  if (exitCode === 127 && !isThere(program, commandEnv))
    return { code: 'COMMAND_NOT_FOUND', step: 'exec', path: program, errno: 'ENOENT', detail: '' }
  return undefined
}

function isThere(program: string, env: Readonly<Record<string, string>>): boolean {
  const candidates = program.includes('/')
    ? [program]
    : (env['PATH'] ?? '').split(':').map((directory) => `${directory}/${program}`)
  return candidates.some((candidate) => orElse(false, () => statSync(candidate).isFile()))
}

/**
 * Pids whose environment says that they belong to the run; that of another user's process cannot be read. Without /proc (macOS) none are
 * found, and the group must do.
 */
function pidsOf(runId: string): readonly number[] {
  const mark = `${RUN_VARIABLE}=${runId}\0`
  const pids = namesIn('/proc').filter((name) => /^\d+$/.test(name))
  return pids.filter((pid) => textOf(`/proc/${pid}/environ`).includes(mark)).map(Number)
}

/** Rounds: something may fork while it is being killed. */
const KILL_ROUNDS = 5

/** @returns how many processes were killed */
function killRun(runId: string): number {
  const killed = new Set<number>()
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const alive = pidsOf(runId).filter((pid) => !killed.has(pid))
    if (alive.length === 0) break
    for (const pid of alive) if (kill(pid)) killed.add(pid)
  }
  return killed.size
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

/** The limit that the watchdog saw crossed. */
type Fired = 'memory' | 'pids' | undefined

interface Watchdog {
  readonly start: () => void
  readonly stop: () => void
  readonly fired: () => Fired
  /** Bytes, the largest sample. */
  readonly peak: () => number
}

const SAMPLE_MS = 100

/** Samples the memory and the processes of the run and ends it above a limit; without limits it does nothing. */
function newWatchdog({ limits: { memory, pids: most } }: Plan, runId: string): Watchdog {
  const state: { timer?: NodeJS.Timeout; fired: Fired; peak: number } = { fired: undefined, peak: 0 }
  const sample = async (): Promise<void> => {
    const pids = pidsOf(runId)
    state.peak = Math.max(state.peak, await memoryOf(pids))
    const overMemory = memory !== undefined && state.peak > memory.max
    const overPids = most !== undefined && pids.length > most.max
    if (!overMemory && !overPids) return
    state.fired ??= overMemory ? 'memory' : 'pids'
    killRun(runId)
  }
  return {
    start: () => {
      if (memory !== undefined || most !== undefined) state.timer = setInterval(() => void sample(), SAMPLE_MS)
    },
    stop: () => clearInterval(state.timer),
    fired: () => state.fired,
    peak: () => state.peak,
  }
}

/** Whole processors out of those that we may use ourselves. */
function onFewerProcessors(launch: Launch, { limits: { cpus } }: Plan): Launch {
  if (cpus?.by !== 'affinity') return launch
  const own = processorsIn(statusLine(textOf('/proc/self/status'), 'Cpus_allowed_list'))
  const list = own.slice(0, cpus.max).join(',') || '0'
  return { ...launch, file: systemProgram('taskset'), argv: ['--cpu-list', list, launch.file, ...launch.argv] }
}

/** By the command's PATH it could be any file. What is missing is named by the failure to start it. */
function systemProgram(name: string): string {
  const files = SYSTEM_PATH.split(':').map((directory) => `${directory}/${name}`)
  return files.find((file) => existsSync(file)) ?? `/usr/bin/${name}`
}

/** Bytes resident; pages that two processes share count twice, so a limit is held rather too tight. */
async function memoryOf(pids: readonly number[]): Promise<number> {
  const each = await Promise.all(pids.map((pid) => pidusage(pid).then(({ memory }) => memory, gone)))
  return each.reduce((sum, bytes) => sum + bytes, 0)
}

/** Ended between the list and the look. */
function gone(): number {
  return 0
}

const inputsOf = ({ env, run }: BackendRun): ProcessInputs => ({
  ...run,
  allowUnsandboxed: env['LLM_DO_ALLOW_UNSANDBOXED'] === '1',
})

export const runner: Runner = {
  build: (planned) => buildProcess(planned.plan, inputsOf(planned)),
  run: (started) => superviseProcess({ ...started, run: inputsOf(started) }),
}
