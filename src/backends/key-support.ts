/**
 * How each backend treats each key of a policy. Planning asks this table, docs/reference/backends.md shows it, and
 * tests/backends/key-support.test.ts walks it. A new key needs a row. Pure.
 */

import { isTerminated } from '../network/termination.ts'
import type { Lack } from '../plan/offers.ts'
import type { Policy } from '../policy/policy.ts'
import { BACKEND_NAMES, type BackendName } from '../policy/values.ts'

export const SUPPORT = {
  kept: 'done; where this machine cannot, the run is refused',
  needed: 'refused: a need that it never meets',
  refused: 'refused when a value is given',
  reported: 'no effect, and a warning says so',
  void: 'nothing to do: it asks for what is so in any case, or for something that is not there',
} as const
export type Support = keyof typeof SUPPORT

type Row = Readonly<Record<BackendName, Support>>

const row = (support: Support, others: Partial<Row> = {}): Row => ({
  ...(Object.fromEntries(BACKEND_NAMES.map((name) => [name, support])) as Row),
  ...others,
})

const EVERYWHERE = row('kept')
/** A wall: a process of the host has none. */
const WALL = row('kept', { process: 'reported' })
const BY_NAME = row('kept', { wasm: 'needed', 'no-namespaces': 'needed', process: 'reported' })
const OF_LAYERS = row('needed', { namespace: 'kept' })
const RATES = row('needed', { namespace: 'kept', 'no-namespaces': 'kept' })
const OWN_NETWORK = row('refused', { namespace: 'kept' })
const SCRATCH = row('reported', { namespace: 'kept', docker: 'kept' })
const HOST_PATHS = row('kept', { 'no-namespaces': 'reported', process: 'reported' })

/** A row is about the fields of its key, too: `zones` about `zones[].mode`. */
export const KEY_SUPPORT: Readonly<Record<string, Row>> = {
  require: EVERYWHERE,
  bestEffort: EVERYWHERE,
  backend: EVERYWHERE,
  engine: row('refused', { namespace: 'kept', wasm: 'kept' }),
  image: row('refused', { docker: 'kept' }),
  runtime: row('refused', { docker: 'kept', wasm: 'kept' }),
  'docker.reuse': row('void', { docker: 'kept' }),
  seccomp: WALL,
  pool: row('void', { namespace: 'kept' }),
  zones: WALL,
  'zones[].target': HOST_PATHS,
  'zones[].size': row('kept', { wasm: 'needed', 'no-namespaces': 'reported', process: 'reported' }),
  'zones[].sockets': row('kept', { 'no-namespaces': 'refused', process: 'void' }),
  workspace: WALL,
  samePath: row('kept', { 'no-namespaces': 'void', process: 'void' }),
  'cow.keep': OF_LAYERS,
  'cow.size': OF_LAYERS,
  'cow.upper': OF_LAYERS,
  caches: WALL,
  hide: row('refused', { namespace: 'kept' }),
  protect: WALL,
  protectNot: WALL,
  network: row('kept', { wasm: 'needed', process: 'reported' }),
  'network.allow': BY_NAME,
  'network.deny': BY_NAME,
  'network.local': BY_NAME,
  'network.publish': BY_NAME,
  'network.proxy': BY_NAME,
  'network.hosts': row('refused', { namespace: 'kept', docker: 'kept' }),
  'network.afterSecrets': WALL,
  'network.grants': OWN_NETWORK,
  'network.terminate': OWN_NETWORK,
  'network.credentials': OWN_NETWORK,
  'network.requests': OWN_NETWORK,
  devices: row('refused', { namespace: 'kept', 'no-namespaces': 'kept', process: 'void' }),
  gpu: row('refused', { namespace: 'kept', 'no-namespaces': 'kept', process: 'void' }),
  'resources.memory': EVERYWHERE,
  'resources.swap': WALL,
  'resources.cpus': EVERYWHERE,
  'resources.pids': EVERYWHERE,
  'resources.timeout': EVERYWHERE,
  'resources.cpuTime': EVERYWHERE,
  'resources.readBps': RATES,
  'resources.writeBps': RATES,
  'resources.readIops': RATES,
  'resources.writeIops': RATES,
  'resources.rwSize': row('refused', { namespace: 'kept', 'no-namespaces': 'kept' }),
  'resources.output': EVERYWHERE,
  'resources.tmp': SCRATCH,
  'resources.run': SCRATCH,
  'resources.shm': SCRATCH,
  'resources.home': SCRATCH,
  cgroupParent: row('refused', { namespace: 'kept', 'no-namespaces': 'kept' }),
  env: EVERYWHERE,
  workdir: EVERYWHERE,
  tty: row('kept', { wasm: 'needed' }),
  dieWithParent: EVERYWHERE,
  home: WALL,
  repository: EVERYWHERE,
  gitIdentity: EVERYWHERE,
  sshAgent: row('kept', { wasm: 'needed', 'no-namespaces': 'refused', process: 'void' }),
  credentials: row('kept', { wasm: 'needed', 'no-namespaces': 'reported', process: 'reported' }),
  toolchains: row('void', { namespace: 'kept', 'no-namespaces': 'kept' }),
  selfInside: row('void', { namespace: 'kept', 'no-namespaces': 'kept' }),
  explain: row('needed', { namespace: 'kept' }),
}

/** The nearest row: that of the key, or of what it is a part of. */
export function rowOf(key: string): Row | undefined {
  if (Object.hasOwn(KEY_SUPPORT, key)) return KEY_SUPPORT[key]
  const above = key.replace(/(\[\])?\.[^.]*$/, '')
  return above === key ? undefined : rowOf(above)
}

/* ---- the keys that a policy sets ---- */

interface Refusal {
  readonly isAsked: (policy: Policy, name: BackendName) => boolean
  readonly why: string
  readonly fix: string
}

const WASMTIME = 'wasmtime'

/** Keys that some backend refuses. `zones[].sockets` and `sshAgent` are refused by the row of their backend. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  engine: {
    isAsked: ({ engine }) => engine !== 'auto',
    why: 'an engine builds the walls of the namespace backend only',
    fix: '--backend namespace, or leave out --engine',
  },
  hide: {
    isAsked: ({ hide }) => hide.length > 0,
    why: 'only the namespace backend puts something empty over a file',
    fix: '--backend namespace, or --hide none, which shows the files',
  },
  'resources.rwSize': {
    isAsked: ({ resources }) => resources.rwSize !== null,
    why: 'it cannot measure how much the writable zones grow while the command runs',
    fix: '--backend namespace, or --rw-size none',
  },
  devices: {
    isAsked: ({ devices }) => devices.length > 0,
    why: 'the node that was checked could be another one by the time the daemon or the module opens it',
    fix: '--backend namespace, or leave out --device',
  },
  gpu: {
    isAsked: ({ gpu }) => gpu,
    why: 'the nodes that were checked could be others by the time the daemon or the module opens them',
    fix: '--backend namespace, or leave out --gpu',
  },
  image: {
    isAsked: ({ image }) => image !== undefined,
    why: 'an image is what docker runs a command in',
    fix: '--backend docker, or leave out --image',
  },
  runtime: {
    isAsked: ({ runtime }, name) => runtime !== undefined && !(name === 'wasm' && runtime === WASMTIME),
    why: 'a runtime chooses the image of docker (wasmtime: what runs WASI modules)',
    fix: '--backend docker, or leave out --runtime',
  },
  'network.hosts': {
    isAsked: ({ network }) => Object.keys(network.hosts ?? {}).length > 0,
    why: 'names are given addresses in a network of its own only',
    fix: '--backend namespace, or leave network.hosts out',
  },
  'network.terminate': {
    isAsked: ({ network }) => isTerminated(network),
    why: 'credentials and limits of requests (network.terminate) are held for the namespace backend only',
    fix: '--backend namespace',
  },
  'network.grants': {
    isAsked: ({ network }) => network.grants !== undefined,
    why: 'hosts are added to a running sandbox of the namespace backend only',
    fix: '--backend namespace, or leave out --allow-later and --ask-hosts',
  },
  cgroupParent: {
    isAsked: ({ cgroupParent }) => cgroupParent !== undefined,
    why: 'it makes no cgroup that could be below another',
    fix: 'leave out --cgroup-parent, or --backend namespace',
  },
}

/** Why a backend cannot do what a policy asks for; undefined where it can, or where a need says so. */
export function keyRefusal(name: BackendName, policy: Policy): Lack | undefined {
  const found = Object.entries(REFUSALS).find(
    ([key, { isAsked }]) =>
      isAsked(policy, name) && (rowOf(key)?.[name] === 'refused' || (key === 'runtime' && isForeign(policy, name))),
  )
  return found === undefined ? undefined : { why: `${found[0]}: ${found[1].why}`, fix: found[1].fix }
}

/** `runtime: wasmtime` names no image, and any other one runs no WASI module. */
const isForeign = ({ runtime }: Policy, name: BackendName): boolean =>
  (name === 'docker' && runtime === WASMTIME) || (name === 'wasm' && runtime !== WASMTIME)

/** The default profile is part of every run: its keys are not a request. */
const STANDARD = /(^|\/)default\.yaml(:|$)/

function isSpoken({ origins }: Policy, key: string): boolean {
  const last = origins[key]?.at(-1)
  return last !== undefined && last.layer !== 'built-in' && !STANDARD.test(last.source)
}

/** Parts of zones without effect: another path inside, and directories in memory. */
const PARTS_OF_ZONES: Readonly<Record<string, (policy: Policy) => boolean>> = {
  'zones[].target': ({ zones }) => zones.some(({ target, hostPath }) => target !== undefined && target !== hostPath),
  'zones[].size': ({ zones }) => zones.some(({ mode }) => mode === 'tmpfs'),
}

/** One warning for all keys that the caller, a profile or a worker has set and that have no effect there. */
export function keyWarnings(name: BackendName, policy: Policy): readonly string[] {
  const keys = [...new Set([...Object.keys(policy.origins), ...Object.keys(PARTS_OF_ZONES)])].filter(
    (key) => rowOf(key)?.[name] === 'reported' && (PARTS_OF_ZONES[key]?.(policy) ?? isSpoken(policy, key)),
  )
  return keys.length === 0 ? [] : [`no effect with the backend ${name}: ${keys.sort().join(', ')}`]
}
