/**
 * Protected names of a container: the paths that a mount must cover, and the guard that watches names that do not exist yet.
 * Edge: processes, pipes.
 *
 *     runner ──a line, or its end──► sh ──end──► native/tools/guard.c ──lines──► runner
 *
 * The guard inspects the zones before the daemon gets them, watches while the command runs, and sweeps when its input
 * ends: once the container is gone. If the runner is killed, the shell sees the end of its input, removes the
 * container, and ends. So the sweep always comes after the end of the container.
 */
import type { Socket } from 'node:net'
import {
  type Guarded,
  guardedOf,
  type Outcome,
  type Plan,
  type PlannedZone,
  partWord,
  promised,
  runChild,
  SandboxError,
  type SetupFailure,
  withExitStatus,
  writeLaunchFile,
  zoneRecords,
} from '../run-kit.ts'
import type { DockerInputs } from './command-environment.ts'
import { watchByHand, withGit } from './guard-in-node.ts'
import { type LineProgram, startLineProgram } from './line-program.ts'
import type { Cover } from './mounts.ts'

const GUARD = partWord('guard')

/** Descriptor of the launch file, see native/tools/guard.c. */
const FILE_FD = 3

/** Zones in which something may be protected: the guard also looks for files that run with rights of their own. */
export function guardedZones({ zones }: Pick<Plan, 'zones'>): readonly PlannedZone[] {
  return zones.filter(({ mode, kind }) => mode === 'rw' && kind === 'directory')
}

export function guardFile(zones: readonly PlannedZone[]): Uint8Array {
  return writeLaunchFile(zones.flatMap((zone) => zoneRecords(zone)))
}

/* ---- before the container is made ---- */

/** `guard --plan`. */
interface GuardPlan {
  readonly covers: readonly {
    /** Target of the zone. */
    readonly zone: string
    readonly path: string
    readonly mode: 'ro' | 'rw'
  }[]
}

/** Milliseconds; the guard walks through each zone once. */
const PLAN_MS = 60_000

/**
 * The paths of each zone that must become mounts, parents first.
 * @throws SandboxError HELPER_MISSING without the guard, ZONE_INVALID where something cannot be covered
 */
export async function planCovers(
  plan: Plan,
  { guard, signal }: { readonly guard: string | undefined; readonly signal?: AbortSignal | undefined },
): Promise<readonly Cover[]> {
  const zones = guardedZones(plan)
  if (zones.length === 0) return []
  const end = await runChild({
    launch: {
      file: guard ?? missing(),
      argv: [GUARD, '--plan'],
      env: {},
      cwd: '/',
      descriptors: [{ fd: FILE_FD, carries: 'bytes', bytes: guardFile(zones), what: 'zones' }],
    },
    stdio: { mode: 'capture', stdin: 'ignore', outputCap: null },
    deadlineMs: PLAN_MS,
    signal,
    stop: async (child) => void child.kill('SIGKILL'),
  })
  const [reply, message] = [end.stdout, end.stderr].map(({ head, tail }) =>
    Buffer.concat([head, tail]).toString('utf8'),
  )
  if (end.exitCode !== 0)
    throw cannotProtect(message || `the guard ended with ${end.startErrno ?? end.signal ?? end.cause}`)
  const sources = new Map(zones.map(({ target, source }) => [target, source]))
  return (JSON.parse(reply ?? '') as GuardPlan).covers.map(({ zone, path, mode }) => ({
    zone: sources.get(zone) ?? zone,
    path,
    readonly: mode === 'ro',
  }))
}

function missing(): never {
  throw new SandboxError(
    'HELPER_MISSING',
    'native program llm-do is missing: nothing would watch over protected names',
    {
      hint: 'make native   (or: npm install llm-do-exec), or show the zone ro',
    },
  )
}

function cannotProtect(message: string): SandboxError {
  const line = message.trim().split('\n').at(-1) ?? ''
  return new SandboxError(
    'ZONE_INVALID',
    `protected paths cannot be covered: ${line.replace(/^guard: (protect: )?/, '')}`,
    {
      hint: '--protect-not NAME opens a name; a symbolic link in the way must be replaced by what it leads to, or the zone be shown ro',
    },
  )
}

/* ---- while it runs ---- */

export interface Watch {
  /** Resolved at the first attempt, or when the watch has ended. */
  readonly alarm: Promise<void>
  /** When the container is gone. @returns what was made in spite of its protection; `lost` when the guard did not tell */
  readonly end: () => Promise<Guarded | 'lost' | undefined>
}

export interface WatchInputs {
  readonly plan: Plan
  readonly docker: DockerInputs
  readonly name: string
  readonly runId: string
  /** Removed, too, when the runner is killed. */
  readonly socket: string | undefined
}

/**
 * Waits for a line or the end of its input. No line: the runner is gone. The daemon may still be busy making the container
 * then, so it is asked until there was one to remove.
 */
const SCRIPT = `
trap '' PIPE
client=$1 name=$2 socket=$3 guard=$4 part=$5 run=$6
wait_for_end() {
  read -r word && return
  for pause in 0 0.2 0.5 2; do
    sleep $pause
    [ -z "$("$client" rm --force --volumes "$name" 2>/dev/null)" ] || break
  done
  [ -z "$socket" ] || rm -f "$socket"
}
if [ -z "$guard" ]; then wait_for_end; else wait_for_end | { "$guard" "$part" "$run" || echo '{"failed":true}'; }; fi`

/**
 * Watches from here on, if there is something to watch.
 * @throws SandboxError when the guard cannot
 */
export async function startWatch({ plan, docker, name, runId, socket = '' }: WatchInputs): Promise<Watch> {
  const byHand = docker.platform === 'linux' ? undefined : watchByHand(guardedZones(plan).map(withGit), runId)
  // Without a shell (Windows) what a killed runner leaves waits for the next run's sweep.
  if (docker.platform === 'win32') return { alarm: new Promise(() => undefined), end: async () => byHand?.() }
  const zones = docker.platform === 'linux' && !docker.remote ? guardedZones(plan) : []
  const guard = zones.length === 0 ? '' : (docker.guard ?? missing())
  const watch = watchBy({
    argv: ['-c', SCRIPT, 'llm-do-guard', docker.path, name, socket, guard, GUARD, runId],
    env: docker.environment,
    launchFile: guardFile(zones),
    isGuarded: guard !== '',
  })
  if (await watch.ready) return byHand === undefined ? watch : { ...watch, end: () => watch.end().then(byHand) }
  void watch.end()
  throw cannotProtect(watch.message() || 'the guard could not be started')
}

export interface Watched {
  readonly watch: Watch
  /** The caller's. */
  readonly signal: AbortSignal | undefined
}

/** Why a run was stopped, among the reasons of signals. */
const ALARM = 'protected'

/**
 * Runs until its end or the first attempt; afterwards the guard sweeps.
 * @param run ends when nothing of the run is left inside
 */
export async function underWatch(
  { watch, signal }: Watched,
  run: (signal: AbortSignal) => Promise<Outcome>,
): Promise<Outcome> {
  const alarm = new AbortController()
  void watch.alarm.then(() => alarm.abort(ALARM))
  const outcome = await run(AbortSignal.any(signal === undefined ? [alarm.signal] : [signal, alarm.signal])).catch(
    async (error: unknown) => {
      await watch.end()
      throw error
    },
  )
  return concludeGuarded(outcome, await watch.end())
}

const GUARD_ENDED: SetupFailure = {
  code: 'BACKEND_FAILED',
  step: 'guard of protected names ended without a report',
  path: '',
  errno: '',
  detail: '',
}

/** Combines the outcome of a run with the findings of the guard after it. Pure. */
export function concludeGuarded(outcome: Outcome, guarded: Guarded | 'lost' | undefined): Outcome {
  const { cancelledBy, ...ended } = outcome
  const isStopped = cancelledBy === ALARM
  const hasRun = outcome.reason !== 'setup'
  if (guarded === 'lost' || (isStopped && !guarded?.attempts.count))
    return hasRun
      ? withExitStatus({ ...ended, reason: 'lost', exitCode: null, signal: null, failure: GUARD_ENDED })
      : outcome
  if (guarded === undefined) return outcome
  // A change before the command began was made by somebody else.
  return guarded.attempts.count > 0 && hasRun
    ? withExitStatus({ ...ended, reason: 'protected', guarded })
    : { ...outcome, guarded }
}

interface Listening extends Watch {
  /** Whether the guard watches. */
  readonly ready: Promise<boolean>
  readonly message: () => string
}

type Line =
  | { readonly watching: true }
  | { readonly attempt: string }
  /** Of the shell: the guard ended without a report. */
  | { readonly failed: true }
  | ({ readonly end: true } & Parameters<typeof guardedOf>[0])

interface Guarding extends Pick<LineProgram<Line>, 'argv' | 'env' | 'launchFile'> {
  /** There is a guard, and not only the shell that waits for our end. */
  readonly isGuarded: boolean
}

function watchBy({ isGuarded, ...started }: Guarding): Listening {
  const received: { end?: Guarded | 'nothing' } = {}
  const [ready, alarm, closed] = [promised<boolean>(), promised<void>(), promised<void>()]
  const over = (): void => {
    ready.resolve(!isGuarded)
    closed.resolve()
    if (isGuarded) alarm.resolve()
  }
  const onLine: LineProgram<Line>['onLine'] = (line) => {
    if ('watching' in line) ready.resolve(true)
    if ('attempt' in line) alarm.resolve()
    if ('failed' in line) over()
    if ('end' in line) received.end = guardedOf(line).guarded ?? 'nothing'
  }
  if (!isGuarded) ready.resolve(true)
  const { child, message } = startLineProgram<Line>({ ...started, file: '/bin/sh', onLine, over })
  if (!isGuarded) (child.stdout as Socket).unref()
  const end = async () => {
    child.stdin.end('done\n')
    if (!isGuarded) return undefined
    await closed.promise
    return received.end === undefined ? 'lost' : received.end === 'nothing' ? undefined : received.end
  }
  return { ready: ready.promise, alarm: alarm.promise, end, message }
}
