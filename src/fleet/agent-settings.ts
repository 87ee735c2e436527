/** The variables of an agent, as container-based agents have always had them. Pure; DOCKER_TIMEOUT, _MEMORY_LIMIT and _CPU_LIMIT and
 * ENABLE_DOCKER are read with every policy (policy/environment.ts). */
import { type Environment, type PolicyLayer, quoteValue, SandboxError } from '../core.ts'

export interface AgentSettings {
  /** The URL of a server, or redis: of a queue. */
  readonly server: URL
  readonly workerId: string
  readonly hostname: string
  /** Tasks at once. */
  readonly slots: number
  /** Signs the token that is shown to the server; absent: none is. */
  readonly secret?: string
  /** The policy layer of variables: below the flags. */
  readonly layer: PolicyLayer
}

export interface SettingsInputs {
  readonly env: Environment
  /** `--server`, `--queue`, `--slots`; above the variables. */
  readonly given: { readonly server?: string; readonly queue?: string; readonly slots?: string }
  readonly host: { readonly name: string; readonly processors: number }
  readonly cwd: string
}

const MOST_SLOTS = 256
/** The secret, which no run gets to see. */
export const SECRET_VARIABLE = 'WORKER_TOKEN_SECRET'
/** The password of the queue's Redis, which no run gets to see either. */
export const QUEUE_PASSWORD = 'LLM_DO_QUEUE_PASSWORD'

/** @throws SandboxError USAGE */
export function agentSettings({ env, given, host, cwd }: SettingsInputs): AgentSettings {
  const hostname = env['HOSTNAME'] || host.name
  const secret = env[SECRET_VARIABLE] || undefined
  return {
    server: given.queue === undefined ? serverOf(given.server ?? env['SERVER_URL'] ?? '') : queueOf(given.queue),
    workerId: idOf(env['WORKER_ID'] || hostname),
    hostname,
    slots: slotsOf(given.slots, env['MAX_PARALLEL_JOBS'], host.processors),
    ...(secret !== undefined && { secret }),
    layer: layerOf(env, cwd),
  }
}

const wrong = (what: string, expected: string, got: string): SandboxError =>
  new SandboxError('USAGE', `${what}: expected ${expected}, got ${quoteValue(got)}`, { hint: 'llm-do agent --help' })

function serverOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // A password in an address would be in the list of processes, and in every message about the server.
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== '' ||
    url.password !== '' ||
    url.search !== ''
  )
    throw wrong('--server (SERVER_URL)', 'an address such as https://host:3000', text.replace(/\/\/[^/]*@/, '//...@'))
  return url
}

/** A password in it would be in the list of processes. */
function queueOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^rediss?:$/.test(url.protocol) || url.password !== '' || url.hash !== '')
    throw wrong(
      '--queue',
      `an address such as redis://host:6379/0?queue=NAME, with the password in ${QUEUE_PASSWORD}`,
      text.replace(/\/\/[^/]*@/, '//...@'),
    )
  return url
}

function idOf(text: string): string {
  if (text.length > 128 || /[\p{Cc}\s]/u.test(text))
    throw wrong('WORKER_ID', 'up to 128 characters without spaces', text)
  return text
}

/** 0 is as many as there are processors. */
function slotsOf(given: string | undefined, variable: string | undefined, processors: number): number {
  const text = given ?? (variable || '0')
  const count = /^\d{1,3}$/.test(text) ? Number(text) : -1
  if (count < 0 || count > MOST_SLOTS) throw wrong('--slots (MAX_PARALLEL_JOBS)', `a number up to ${MOST_SLOTS}`, text)
  return count === 0 ? Math.min(processors, MOST_SLOTS) : count
}

/** `bridge` and `host` differ for containers; here either is the network of this machine. */
const NETWORKS: Readonly<Record<string, 'none' | 'host'>> = { none: 'none', bridge: 'host', host: 'host' }

function layerOf(env: Environment, cwd: string): PolicyLayer {
  const [tmpfs, network] = [env['DOCKER_TMPFS_MB'] ?? '', env['DOCKER_NETWORK_MODE'] ?? '']
  if (tmpfs !== '' && !/^[1-9]\d{0,6}$/.test(tmpfs)) throw wrong('DOCKER_TMPFS_MB', 'whole MiB such as 1024', tmpfs)
  const mode = Object.hasOwn(NETWORKS, network) ? NETWORKS[network] : undefined
  if (network !== '' && mode === undefined) throw wrong('DOCKER_NETWORK_MODE', 'none, bridge or host', network)
  return {
    layer: 'docker-environment',
    source: 'environment',
    directory: cwd,
    locations: { 'resources.tmp': 'DOCKER_TMPFS_MB', 'network.mode': 'DOCKER_NETWORK_MODE' },
    values: {
      ...(tmpfs !== '' && { resources: { tmp: `${tmpfs}m` } }),
      ...(mode !== undefined && { network: mode }),
    },
  }
}
