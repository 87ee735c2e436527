/**
 * One command as a plain process of the host.
 * Edge: processes, /proc, the clock.
 *
 * It leads a process group of its own. At the end everything that carries the run's variable is killed: members that left the
 * group keep their environment, so a double fork does not hide them; only a process that clears its environment does.
 */
import { readdirSync, readFileSync } from 'node:fs'
import pidusage from 'pidusage'
import type { RunInputs } from '../backend/backend.ts'
import { PROCESS_WARNINGS, processBackend, RUN_VARIABLE } from '../backend/process.ts'
import { SandboxError } from '../error.ts'
import type { Plan } from '../plan/plan.ts'
import { type ChildEnd, type ChildStdio, runChild } from './child.ts'
import type { Outcome, SetupFailure } from './outcome.ts'

export interface ProcessRun {
  readonly plan: Plan
  readonly run: RunInputs
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
}

/** @throws SandboxError NO_BACKEND without the second half of the opt-in, SETUP_FAILED when there is no shell to start it */
export async function superviseProcess({ plan, run, stdio, signal }: ProcessRun): Promise<Outcome> {
  const launch = processBackend.build(plan, run)
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
    throw new SandboxError('SETUP_FAILED', `process: ${launch.cwd}: cannot start there (${end.startErrno})`, {
      hint: '--workdir DIR',
    })
  return {
    ...conclude(end, { run, overMemory: watchdog.fired() }),
    ...(end.cancelledBy !== undefined && { cancelledBy: end.cancelledBy }),
    stdout: end.stdout,
    stderr: end.stderr,
    setupMs: 0,
    durationMs: end.elapsedMs,
    usage: { cpuMs: 0, peakMemory: watchdog.peak(), peakPids: 0 },
    killed,
    warnings: PROCESS_WARNINGS,
  }
}

type End = Pick<Outcome, 'cause' | 'exitCode' | 'signal' | 'failure'>

function conclude(end: ChildEnd, { run, overMemory }: { run: RunInputs; overMemory: boolean }): End {
  if (overMemory) return { cause: 'memory', exitCode: null, signal: 'SIGKILL' }
  if (end.cause !== 'exit') return { cause: end.cause, exitCode: null, signal: end.signal }
  const failure = notExecuted(end, run)
  if (failure !== undefined) return { cause: 'exec', exitCode: null, signal: null, failure }
  return { cause: end.signal === 'SIGXCPU' ? 'cpu-time' : 'exit', exitCode: end.exitCode, signal: end.signal }
}

/** 126 and 127 may be the shell's word for a program that it could not become, or the command's own. */
function notExecuted({ exitCode }: ChildEnd, { command, commandEnv }: RunInputs): SetupFailure | undefined {
  const program = command[0] ?? ''
  if (exitCode === 127 && !isThere(program, commandEnv))
    return { step: 'exec', path: program, errno: 'ENOENT', detail: '' }
  return undefined
}

function isThere(program: string, env: Readonly<Record<string, string>>): boolean {
  const places = program.includes('/')
    ? [program]
    : (env['PATH'] ?? '').split(':').map((directory) => `${directory}/${program}`)
  return places.some((place) => readable(place) !== undefined)
}

/** @returns undefined for what is gone, or belongs to somebody else: neither is ours to end */
function readable(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}

/** Pids whose environment says that they belong to the run. Without /proc (macOS) none are found, and the group must do. */
function pidsOf(runId: string): readonly number[] {
  const mark = `${RUN_VARIABLE}=${runId}\0`
  const pids = listProcesses().filter((pid) => readable(`/proc/${pid}/environ`)?.includes(mark) === true)
  return pids.map(Number)
}

function listProcesses(): readonly string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
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

interface Watchdog {
  readonly start: () => void
  readonly stop: () => void
  readonly fired: () => boolean
  /** Bytes, the largest sample. */
  readonly peak: () => number
}

const SAMPLE_MS = 100

/** Samples the memory of the run and ends it above the limit; without a limit it does nothing. */
function newWatchdog({ limits: { memory } }: Plan, runId: string): Watchdog {
  const state: { timer?: NodeJS.Timeout; fired: boolean; peak: number } = { fired: false, peak: 0 }
  const sample = async (): Promise<void> => {
    state.peak = Math.max(state.peak, await memoryOf(pidsOf(runId)))
    if (memory === undefined || state.peak <= memory.max) return
    state.fired = true
    killRun(runId)
  }
  return {
    start: () => {
      if (memory !== undefined) state.timer = setInterval(() => void sample(), SAMPLE_MS)
    },
    stop: () => clearInterval(state.timer),
    fired: () => state.fired,
    peak: () => state.peak,
  }
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
