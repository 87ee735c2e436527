/**
 * The agent of a machine: it checks whether the machine meets the needs of tasks, registers, sends a heartbeat every ten seconds, and
 * serves the tasks of its server (http-source.ts) until it must stop.
 * Edge: the machine's load, the clock, timers.
 */
import { cpus, freemem, loadavg, release, totalmem } from 'node:os'
import {
  doctor,
  type ExecOptions,
  type Holder,
  KERNEL_HOLDERS,
  type Need,
  neutralise,
  packageVersion,
  prepare,
  SandboxError,
  TaskPlans,
} from '../core.ts'
import { type AgentSettings, QUEUE_PASSWORD, SECRET_VARIABLE } from './agent-settings.ts'
import type { Engine } from './engine.ts'
import { ProtocolError, ServerClient, StatusError } from './http-client.ts'
import { HttpSource } from './http-source.ts'
import { Journal } from './journal.ts'
import { policyHash } from './policy-hash.ts'
import { jittered, pause, persist } from './retry.ts'
import { serve } from './serve.ts'
import { type AgentState, openState } from './state.ts'
import { TaskPlaces } from './task-places.ts'
import { workerToken } from './worker-token.ts'

/** The layers are flags of the operator. */
export interface Agent extends Pick<Engine, 'profile' | 'layers' | 'env'> {
  readonly settings: AgentSettings
  /** Absolute directory for its state, which is else that of the user. */
  readonly stateHome?: string
  /** Milliseconds between polls without a job. */
  readonly pollMs: number
  /** Milliseconds that a task of a queue stays ours without a sign of life. */
  readonly leaseMs: number
  /** Aborted: tasks that run are finished, no more are taken. */
  readonly drain: AbortSignal
  /** Aborted: everything ends now. */
  readonly end: AbortSignal
  readonly log: (line: string) => void
}

/** Milliseconds. A server takes a worker for gone after 30 s of silence. */
const HEARTBEAT_MS = 10_000
const HEARTBEAT_WITHIN_MS = 5_000
const FAREWELL_WITHIN_MS = 2_000

/**
 * Resolves when the agent was told to stop and nothing of it is left.
 * @throws SandboxError where this machine or this policy cannot run tasks; nothing has been registered then
 */
export async function runAgent(agent: Agent): Promise<void> {
  const uid = process.getuid?.() ?? -1
  const home = agent.stateHome === undefined ? {} : { XDG_STATE_HOME: agent.stateHome }
  const state = await openState({ ...agent.env, ...home }, uid, agent.settings)
  try {
    if (agent.settings.server.protocol.startsWith('redis')) await serveQueue(agent, state)
    else await serveServer(agent, state, new Journal(state.journal, uid))
  } finally {
    state.lock.release()
  }
}

function engineOf({ settings, profile, layers, env: whole }: Agent, state: AgentState): Engine {
  // No secret is for what a task's policy might let in from the environment.
  const { [SECRET_VARIABLE]: _, [QUEUE_PASSWORD]: __, ...env } = whole
  const [places, plans] = [new TaskPlaces(state.tasks), new TaskPlans()]
  return { profile, layers: [settings.layer, ...layers], env, places, plans }
}

/** BullMQ has the tasks, their locks and their attempts: no journal is needed. */
async function serveQueue(agent: Agent, state: AgentState): Promise<void> {
  const { settings, drain, end, log, env } = agent
  const engine = engineOf(agent, state)
  const isolation = await checkMachine(engine)
  const { QueueSource } = await import('./bullmq.ts')
  const { server, slots, workerId } = settings
  const source = new QueueSource({
    server,
    password: env[QUEUE_PASSWORD],
    name: workerId,
    slots,
    log,
    lockMs: agent.leaseMs,
    end,
  })
  log(`${workerId} serves the queue ${source.queue} of ${server.host} with ${slots} slots${weakness(isolation)}`)
  try {
    await serve({ source, engine, slots, drain, end, log })
  } finally {
    await source.close()
  }
}

async function serveServer(agent: Agent, state: AgentState, journal: Journal): Promise<void> {
  const { settings, log } = agent
  const engine = engineOf(agent, state)
  const isolation = await checkMachine(engine)
  const client = new ServerClient({ server: settings.server, workerId: settings.workerId, token: tokens(settings) })
  warnOfPlainToken(settings, log)
  const register = () => registerAt(client, agent, isolation)
  await register()
  log(`${settings.workerId} serves ${settings.server.origin} with ${settings.slots} slots${weakness(isolation)}`)
  const { workerId } = settings
  const source = new HttpSource({ client, journal, workerId, pollMs: agent.pollMs, register, end: agent.end, log })
  const over = new AbortController()
  const status = () => (source.running.length < settings.slots ? 'IDLE' : 'BUSY')
  const heart = beat({ client, agent, register, running: () => source.running, status, over: over.signal })
  try {
    await source.settle()
    await serve({ source, engine, slots: settings.slots, drain: agent.drain, end: agent.end, log })
  } finally {
    over.abort()
    await heart
    await farewell(client, agent)
  }
}

/* ---- what the machine holds ---- */

/** The walls here, for the server: `weak` are parts that the doctor calls limited or missing. */
interface MachineIsolation {
  readonly backend: string
  readonly engine?: string
  readonly planHash: string
  readonly weak: readonly string[]
  /** Needs of the policy that the kernel holds for every task here. */
  readonly holds: readonly Need[]
  /** The holder of each need of the policy here: the rungs of the ladder on which limits stand. */
  readonly heldBy: Readonly<Partial<Record<Need, Holder>>>
  /** Equal for agents whose operators want the same. */
  readonly policyHash: string
}

/** One real run under the operator's policy. @throws SandboxError where it cannot be had */
async function checkMachine(engine: Parameters<typeof serve>[0]['engine']): Promise<MachineIsolation> {
  const { trial, parts } = await doctor(engine.env)
  if (!trial.ok)
    throw new SandboxError('NO_BACKEND', `this machine is no worker: ${trial.message}`, {
      hint: trial.hint || 'llm-do doctor',
    })
  const { profile, layers, env, places, plans } = engine
  return await places.use(async ({ work }) => {
    const result = await plans.exec({
      command: ['/bin/sh', '-c', ':'],
      profile,
      layers,
      env,
      cwd: work,
      stdin: 'ignore',
      variant: '',
    })
    if (!result.ok)
      throw new SandboxError('SETUP_FAILED', `this machine is no worker: ${result.error?.message ?? result.message}`, {
        hint: result.error?.hint || 'llm-do doctor',
      })
    const weak = parts.filter(({ state }) => state !== 'ok').map(({ name }) => name)
    const { planHash, backend } = result
    const held = await ladderOf({ profile, layers, env, cwd: work })
    const engineName = trial.engine && { engine: trial.engine }
    return { backend: backend ?? trial.backend, ...engineName, planHash, weak, ...held }
  })
}

/** The needs of the policy here, each with its holder. */
async function ladderOf(
  options: Omit<ExecOptions, 'command'> & { readonly cwd: string },
): Promise<Pick<MachineIsolation, 'holds' | 'heldBy' | 'policyHash'>> {
  const { plan, policy, offers } = await prepare({ ...options, command: ['/bin/sh', '-c', ':'] })
  const { gives = {} } = offers.find(({ name }) => name === plan.backend) ?? {}
  return {
    holds: plan.needs.filter((need) => KERNEL_HOLDERS.some((holder) => holder === gives[need])),
    heldBy: Object.fromEntries(plan.needs.flatMap((need) => (gives[need] === undefined ? [] : [[need, gives[need]]]))),
    policyHash: policyHash(policy, options.cwd),
  }
}

const weakness = ({ weak }: MachineIsolation): string =>
  weak.length === 0 ? '' : ` (limited here: ${weak.join(', ')})`

/* ---- the server ---- */

/** A token is good for a day and made anew each half of one. */
function tokens({ secret, workerId, hostname }: AgentSettings): () => string | undefined {
  if (secret === undefined) return () => undefined
  const made = { token: '', atMs: Number.NEGATIVE_INFINITY }
  return () => {
    const nowMs = Date.now()
    if (nowMs - made.atMs > 12 * 3_600_000)
      Object.assign(made, { token: workerToken({ workerId, hostname }, secret, nowMs), atMs: nowMs })
    return made.token
  }
}

function warnOfPlainToken({ secret, server }: AgentSettings, log: Agent['log']): void {
  const isLocal = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(server.hostname)
  if (secret !== undefined && server.protocol === 'http:' && !isLocal)
    log(`everybody on the way to ${server.origin} can read this worker's token: use https`)
}

const MiB = 1024 * 1024

const load = () => ({
  cpuUsage: Math.min(100, Math.round(((loadavg()[0] ?? 0) / cpus().length) * 100)),
  ramTotalMb: Math.round(totalmem() / MiB),
  ramFreeMb: Math.round(freemem() / MiB),
})

async function registerAt(
  client: ServerClient,
  { settings, log, drain, end }: Agent,
  isolation: MachineIsolation,
): Promise<void> {
  const { workerId, hostname, slots } = settings
  const body = {
    workerId,
    hostname,
    os: `${process.platform} ${release()}`,
    cpuCount: cpus().length,
    version: packageVersion(),
    ...load(),
    status: 'IDLE',
    slots,
    isolation,
  }
  const attempt = async (): Promise<void> => {
    const answer = await client.ask('api/workers/register', { method: 'POST', body, signal: end })
    if (answer.status > 299) throw new StatusError('register', answer)
  }
  await persist(attempt, {
    signal: AbortSignal.any([drain, end]),
    isFinal: (error) => error instanceof ProtocolError || (error instanceof StatusError && error.status === 400),
    onError: (error) => log(`not registered yet: ${neutralise((error as Error).message)}`),
  })
}

interface Heart {
  readonly client: ServerClient
  readonly agent: Agent
  readonly register: () => Promise<void>
  readonly running: () => readonly string[]
  readonly status: () => string
  readonly over: AbortSignal
}

async function beat({ client, agent: { settings, end, log }, register, running, status, over }: Heart): Promise<void> {
  const { workerId } = settings
  const stop = AbortSignal.any([over, end])
  let isLost = false
  while (!stop.aborted) {
    const jobs = running()
    const body = { workerId, ...load(), status: status(), dockerContainers: jobs.length, jobs }
    const options = { method: 'POST', body, signal: stop, withinMs: HEARTBEAT_WITHIN_MS } as const
    const answer = await client.ask('api/workers/heartbeat', options).catch((error: unknown) => error as Error)
    // A restarted server knows no agent.
    if (!(answer instanceof Error) && answer.status === 404) await register().catch(() => undefined)
    const isLostNow = answer instanceof Error || answer.status > 499
    if (isLostNow && !isLost && !stop.aborted) log('the server does not answer')
    isLost = isLostNow
    await pause(jittered(HEARTBEAT_MS), stop)
  }
}

async function farewell(client: ServerClient, { settings: { workerId } }: Agent): Promise<void> {
  const body = { workerId, status: 'OFFLINE' }
  // A server that is unreachable finds out on its own.
  await client
    .ask('api/workers/heartbeat', { method: 'POST', body, withinMs: FAREWELL_WITHIN_MS })
    .catch(() => undefined)
}
