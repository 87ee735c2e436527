/**
 * One command in a container, from create to rm.
 * Edge: processes, the clock.
 *
 * Ends: at the deadline and on abort we ask the daemon to kill the container, and the attached client ends with it.
 * If we are killed ourselves, a shell that waits for our end of its pipe removes the container; if that is gone too, the
 * next run sweeps it away. The daemon's own account of the container, not the client's exit status, says how it ended.
 */

import {
  type BackendRun,
  type ChildEnd,
  type Launch,
  type Outcome,
  type Runner,
  runChild,
  SandboxError,
  type SetupFailure,
} from '../run-kit.ts'
import { buildCreate, containerName, imageOf, noRestrictedNetwork, reporterOf } from './build.ts'
import { inspectContainer, removeContainer, runClient } from './client.ts'
import type { DockerRunInputs } from './command-environment.ts'
import {
  type Container,
  checkContainer,
  createWithInit,
  type DockerRun,
  INIT_UNREACHABLE,
  killContainer,
  lookupOf,
  lost,
  type Reporting,
  SHARED_STATUSES,
  superviseIn,
  textOf,
} from './container.ts'
import { refusalOf } from './daemon-errors.ts'
import { whyNotExecuted } from './explain-not-executed.ts'
import { dockerInputs } from './inputs.ts'
import { type ContainerReport, concludeDocker, hasRun } from './outcome.ts'
import { sweep } from './prune.ts'
import { superviseSession } from './session.ts'
import type { InitReport } from './status-socket.ts'

/** @throws SandboxError when the container cannot be made or started, or would not hold what the plan says it holds */
export async function superviseDocker(input: DockerRun): Promise<Outcome> {
  if (input.plan.tty && input.run.stdin === 'data') throw nothingTyped()
  if (input.plan.dockerReuse === 'session' && input.plan.network.mode === 'restricted')
    throw noRestrictedNetwork('the container of a session serves many runs, and each has a network of its own')
  return input.plan.dockerReuse === 'session' ? superviseSession(input, superviseContainer) : superviseContainer(input)
}

/** The client refuses to pass on a stream other than a terminal, and a command that waits for one would hang. */
function nothingTyped(): SandboxError {
  return new SandboxError('NO_BACKEND', 'docker types no pipe and no file into the terminal of a container (--tty)', {
    hint: 'leave out --tty, or give it a terminal or /dev/null as stdin; the backend namespace types what a pipe brings',
  })
}

function superviseContainer(input: DockerRun): Promise<Outcome> {
  const place = { name: containerName(input.run.runId), reporter: reporterOf(input.run) }
  return superviseIn(input, place, (held, container) =>
    runContainer(held, container).finally(() => removeContainer(container.docker, container.name)),
  )
}

async function runContainer(input: DockerRun, container: Reporting): Promise<Outcome> {
  const { plan, run } = input
  const started = performance.now()
  const { complaints, hasInit } = await createWithInit({
    ...container,
    plan,
    run,
    reporter: container.socket && reporterOf(run),
    image: imageOf(plan, run.command),
    build: (inputs) => buildCreate(plan, inputs),
  })
  const socket = hasInit ? container.socket : undefined
  const warnings = await checkContainer(input, { ...container, complaints })
  const [client] = await Promise.all([
    attach(input, container),
    sweep(container.docker, { now: Date.now(), runsDirectory: run.runsDirectory }),
  ])
  const report = await inspectContainer(container.docker, container.name)
  if (report === undefined) throw lost(container)
  const initReport = await socket?.report()
  const notExecuted = await reasonNotExecuted(input, { report, client, initReport, hasInit, ...container })
  const totalMs = performance.now() - started
  const silent = socket !== undefined && initReport?.connected !== true && client.cause === 'exit'
  return concludeDocker({
    report,
    client,
    initReport,
    isFiltered: plan.seccomp.filter !== '',
    totalMs,
    warnings: [...warnings, ...(silent ? [INIT_UNREACHABLE] : [])],
    ...(notExecuted && { notExecuted }),
  })
}

/** Starts the container with our stdio and waits for its end. */
function attach({ plan, run, stdio, signal }: DockerRun, { docker, name }: Container): Promise<ChildEnd> {
  const interactive = plan.tty && run.stdin !== 'terminal' ? [] : ['--interactive']
  const launch: Launch = {
    file: docker.path,
    argv: ['start', '--attach', ...interactive, name],
    // The client's advice for people is not the command's output.
    env: { ...docker.environment, DOCKER_CLI_HINTS: 'false' },
    cwd: '/',
    descriptors: [],
  }
  return runChild({
    launch,
    stdio,
    signal,
    deadlineMs: plan.limits.timeoutMs,
    extensionMs: () => startDelayMs({ docker, name, limitMs: plan.limits.timeoutMs ?? 0 }),
    stop: () => killContainer({ docker, name }),
    pass: (signalName) => void runClient(docker, ['kill', '--signal', signalName, name]),
  })
}

interface Delay extends Container {
  readonly limitMs: number
}

/** The part of the command's time that the container's start took; bounded, because the daemon's clock may be another machine's. */
async function startDelayMs({ docker, name, limitMs }: Delay): Promise<number> {
  const report = await inspectContainer(docker, name)
  const ran = report === undefined ? limitMs : Date.now() - Date.parse(report.State.StartedAt)
  return Number.isFinite(ran) && ran >= 0 && ran < limitMs ? Math.min(limitMs - ran, MOST_START_MS) : 0
}

/** Milliseconds; a slow daemon may take this long to start a container without the command paying for it. */
const MOST_START_MS = 2_000

interface EndedContainer extends Container {
  readonly report: ContainerReport
  readonly client: ChildEnd
  /** Our init was to run the command. */
  readonly hasInit: boolean
  readonly initReport: InitReport | undefined
}

/** @throws SandboxError when the container never ran for a reason that is not the command's */
async function reasonNotExecuted(input: DockerRun, ended: EndedContainer): Promise<SetupFailure | undefined> {
  const { report, client, initReport, hasInit, docker, name } = ended
  if (client.cause !== 'exit' || initReport?.connected === true) return undefined
  const { ExitCode, Error: message } = report.State
  const ran = hasRun(report)
  // Our init tells of a command that cannot be executed; what it cannot tell of is a container that did not start.
  const why =
    hasInit || (ran && !isShared(ExitCode))
      ? undefined
      : await whyNotExecuted(lookupOf({ docker, name }, input, report))
  if (why !== undefined) return why
  if (!ran) throw refusalOf(message || textOf(client.stderr), { program: docker.program, image: report.Config.Image })
  if (hasInit && input.plan.zones.length > 0) throw initUnreachable(docker)
  return undefined
}

const isShared = (exitCode: number): boolean => (SHARED_STATUSES as readonly number[]).includes(exitCode)

/** In a container with zones our init starts the command only after it has connected to the runner. */
function initUnreachable({ program }: Container['docker']): SandboxError {
  return new SandboxError(
    'SETUP_FAILED',
    `${program}: the init of the container could not reach the runner, so nothing was run`,
    {
      hint: 'llm-do doctor; a security module may forbid containers to connect to sockets of the host: --backend namespace',
    },
  )
}

function inputsOf({ facts, env, run }: BackendRun): DockerRunInputs {
  if (facts.docker !== undefined) return { ...run, docker: dockerInputs(facts.docker, env) }
  throw new SandboxError('INTERNAL', 'docker: the plan was made without a look at the docker client')
}

export const runner: Runner = {
  build: (planned) => buildCreate(planned.plan, inputsOf(planned)),
  run: (started) => superviseDocker({ ...started, run: inputsOf(started) }),
}
