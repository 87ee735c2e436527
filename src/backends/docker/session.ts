/**
 * One container for all runs of a plan: an `exec` costs 80 ms where a fresh container costs 300.
 * Edge: processes, the clock, files in the user's runtime directory.
 *
 * Weaker than a fresh container, so it is off by default and every result has a warning: what a run leaves in /tmp and the like, the next
 * one sees. Only one run at a time is inside; a second one at that time gets a fresh container. A run that leaves a process
 * behind, or has to be ended, takes the container with it. The container sleeps for an hour at most, then it is over.
 */
import { rmSync } from 'node:fs'
import { type Outcome, runChild } from '../run-kit.ts'
import {
  buildSession,
  buildSessionCheck,
  buildSessionExec,
  imageOf,
  SESSION_SECONDS,
  sessionDirectory,
  sessionName,
  sessionReporterOf,
  showsInit,
} from './build.ts'
import { inspectContainer, removeContainer, runClient } from './client.ts'
import {
  type Container,
  checkContainer,
  checkLimits,
  createWithInit,
  type DockerRun,
  INIT_UNREACHABLE,
  killContainer,
  lookupOf,
  type Reporting,
  SHARED_STATUSES,
  superviseIn,
  withoutInit,
} from './container.ts'
import { refusalOf } from './daemon-errors.ts'
import { whyNotExecuted } from './explain-not-executed.ts'
import { mountsDiffer } from './held-mounts.ts'
import { type ContainerReport, concludeDocker } from './outcome.ts'
import { takeSession } from './session-lock.ts'
import { SHOWN_MODE } from './status-socket.ts'

const SHARED_CONTAINER =
  'docker.reuse is session: this container served earlier runs of the same plan and keeps what they left in its scratch directories'

/** @param fresh runs in another container while a run is inside the session's */
export async function superviseSession(
  input: DockerRun,
  fresh: (input: DockerRun) => Promise<Outcome>,
): Promise<Outcome> {
  const name = sessionName(input.plan, input.run)
  const lock = await takeSession(input.run.runsDirectory, name)
  if (lock === undefined) return fresh(input)
  try {
    const reporter = sessionReporterOf(input.plan, input.run)
    return await superviseIn(input, { name, reporter, mode: SHOWN_MODE }, runInside)
  } finally {
    lock.release()
  }
}

async function runInside(input: DockerRun, session: Reporting): Promise<Outcome> {
  const { plan, run, stdio, signal } = input
  const started = performance.now()
  const { report, warnings, hasInit } = await openContainer(input, session)
  const setupMs = performance.now() - started
  const client = await runChild({
    launch: buildSessionExec(plan, hasInit ? run : withoutInit(run)),
    stdio,
    signal,
    deadlineMs: plan.limits.timeoutMs,
    stop: () => killContainer(session),
    // docker sends none to what is executed in a container.
    pass: () => undefined,
  })
  const initReport = hasInit ? await session.socket?.report() : undefined
  const after = await inspectContainer(session.docker, session.name)
  const shared = (SHARED_STATUSES as readonly (number | null)[]).includes(client.exitCode)
  const notExecuted =
    shared && client.cause === 'exit' && initReport?.connected !== true
      ? await whyNotExecuted(lookupOf(session, input, report))
      : undefined
  if (client.cause !== 'exit' || (await hasLeftovers(session)))
    await end(session, sessionDirectory(run.runsDirectory, session.name))
  return concludeDocker({
    report: asOfRun({ before: report, after, exitCode: client.exitCode, elapsedMs: client.elapsedMs }),
    client,
    initReport,
    isFiltered: plan.seccomp.filter !== '',
    totalMs: setupMs + client.elapsedMs,
    warnings: [SHARED_CONTAINER, ...warnings, ...(initReport?.connected === false ? [INIT_UNREACHABLE] : [])],
    ...(notExecuted && { notExecuted }),
  })
}

interface RunView {
  readonly before: ContainerReport
  readonly after: ContainerReport | undefined
  readonly exitCode: number | null
  readonly elapsedMs: number
}

/** The container stays; the run has its own exit code and times, and only a new OOM kill counts. */
function asOfRun({ before, after, exitCode, elapsedMs }: RunView): ContainerReport {
  return {
    ...before,
    State: {
      ...before.State,
      Status: 'exited',
      ExitCode: exitCode ?? 1,
      OOMKilled: after?.State.OOMKilled === true && !before.State.OOMKilled,
      StartedAt: new Date(0).toISOString(),
      FinishedAt: new Date(elapsedMs).toISOString(),
    },
  }
}

interface Opened {
  readonly report: ContainerReport
  readonly warnings: readonly string[]
  readonly hasInit: boolean
}

/** The session's container, running and with time left for this run; made anew when it is not. */
async function openContainer(input: DockerRun, session: Reporting): Promise<Opened> {
  const { plan, run } = input
  const there = await inspectContainer(session.docker, session.name)
  // After one OOM kill Docker's flag stays set, and a second could not be distinguished from it.
  const isFit = there?.State.Status === 'running' && !there.State.OOMKilled && hasTime(there, plan.limits.timeoutMs)
  if (isFit && (await isIntact(input, session))) {
    const warnings = checkLimits(input, { report: there, complaints: [], docker: session.docker })
    const hasInit = session.socket !== undefined && showsInit((there.Mounts ?? []).map((mount) => mount.Destination))
    return { report: there, warnings, hasInit }
  }
  await removeContainer(session.docker, session.name)
  const image = imageOf(plan, run.command)
  const { complaints, hasInit } = await createWithInit({
    ...session,
    plan,
    run,
    reporter: session.socket && sessionReporterOf(plan, run),
    image,
    build: (inputs) => buildSession(plan, inputs),
  })
  const warnings = await checkContainer(input, { ...session, complaints })
  const started = await runClient(session.docker, ['start', session.name])
  if (!started.ok) throw refusalOf(started.stderr, { program: session.docker.program, image })
  const report = await inspectContainer(session.docker, session.name)
  if (report === undefined || report.State.Status !== 'running') {
    throw refusalOf('a session needs the program "sleep" in its image', { program: session.docker.program, image })
  }
  if (!(await isIntact(input, session))) throw mountsDiffer(session.docker)
  return { report, warnings, hasInit }
}

/**
 * Whether the zones, and all that is protected in them, are the inodes that this run has seen, each under its mount. The host takes a
 * mount away when it removes or replaces what it stands on.
 */
async function isIntact({ plan, run }: DockerRun, { docker }: Container): Promise<boolean> {
  const check = buildSessionCheck(plan, run)
  return check === undefined || (await runClient(docker, check)).ok
}

/** Milliseconds that a run without a deadline must be able to count on. */
const ENOUGH_MS = 1_800_000

function hasTime({ State }: ContainerReport, timeoutMs: number | undefined): boolean {
  const left = Date.parse(State.StartedAt) + SESSION_SECONDS * 1000 - Date.now()
  return left > (timeoutMs ?? ENOUGH_MS)
}

/** With the directory that was shown in it, which the next container of that name would make anew. */
async function end({ docker, name }: Container, directory: string): Promise<void> {
  await removeContainer(docker, name)
  rmSync(directory, { recursive: true, force: true })
}

/** Lines of `top`: its heading, docker's init, and sleep. */
const QUIET_LINES = 3

async function hasLeftovers({ docker, name }: Container): Promise<boolean> {
  const reply = await runClient(docker, ['top', name])
  return !reply.ok || reply.stdout.trim().split('\n').length > QUIET_LINES
}
