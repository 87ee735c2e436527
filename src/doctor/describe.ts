/** Facts and offers as lines that a person can act on: each part of the machine, and what each backend can hold. Pure. */
import { WANTED_BY_ALL } from '../cgroup/rungs.ts'
import { LANDLOCK_CLOSES_SOCKETS, LANDLOCK_RENAMES } from '../contract.ts'
import type { HostFacts, Probe } from '../host/facts.ts'
import { engineObstacle, type Offers, offersOf } from '../host/offers.ts'
import { type BackendName, type EngineName, NEEDS, type Need } from '../policy/values.ts'

export type PartState = 'ok' | 'limited' | 'missing'

/** One thing that runs depend on. */
export interface Part {
  readonly name: string
  readonly state: PartState
  readonly detail: string
  /** A command where it can be one; empty when nothing is to be done. */
  readonly fix: string
}

export interface LackingNeed {
  readonly need: Need
  readonly why: string
  readonly fix: string
}

export interface BackendReport {
  readonly name: BackendName
  readonly usable: boolean
  readonly why: string
  readonly fix: string
  readonly engines: readonly EngineName[]
  /** Need -> who holds it here. */
  readonly holds: Readonly<Partial<Record<Need, string>>>
  readonly lacks: readonly LackingNeed[]
}

export function describeBackends(facts: HostFacts): readonly BackendReport[] {
  const offers = offersOf(facts)
  const names: readonly BackendName[] = ['namespace', 'docker', 'wasm', 'process']
  return names.map((name) => describeBackend(name, offers[name]))
}

function describeBackend(name: BackendName, { gives, lacks, unusable, engines }: Offers): BackendReport {
  return {
    name,
    usable: unusable === undefined,
    why: unusable?.why ?? '',
    fix: unusable?.fix ?? '',
    engines,
    holds: gives,
    lacks: NEEDS.flatMap((need) => {
      const lack = lacks[need]
      return lack === undefined ? [] : [{ need, ...lack }]
    }),
  }
}

/** Every part of the machine, in the order in which a run needs them. */
export function describeParts(facts: HostFacts): readonly Part[] {
  return [
    helpersPart(facts.helpers),
    enginePart(facts, 'unshare'),
    enginePart(facts, 'bwrap'),
    namespacesPart(facts),
    landlockPart(facts),
    cgroupPart(facts),
    dockerPart(facts),
    wasmPart(facts),
  ]
}

/** What the front-end needs to believe a plan that lies on disk. */
export interface KeyFact {
  readonly uid: number
  /** undefined where this user has no directory that no zone may show. */
  readonly directory: string | undefined
  /** The key is there, and this user's alone. */
  readonly isUsable: boolean
}

const NO_CACHE = 'every run plans again and starts node, and llm-do pool keeps nothing ready'

export function keyPart({ uid, directory, isUsable }: KeyFact): Part {
  const name = 'launch cache'
  if (directory === undefined)
    return {
      name,
      state: 'limited',
      detail: `no runtime directory of uid ${uid} for its key: ${NO_CACHE}`,
      fix: `loginctl enable-linger ${uid}   (or, as root: install -d -m 700 -o ${uid} /run/user/${uid})`,
    }
  if (!isUsable)
    return {
      name,
      state: 'limited',
      detail: `no usable key in ${directory}: ${NO_CACHE}`,
      fix: `ls -la ${directory}   (it must be writable, yours alone, and key a file of mode 0600)`,
    }
  return { name, state: 'ok', detail: `sealed by the key in ${directory}`, fix: '' }
}

const HELPERS = 'native helpers'

function helpersPart(helpers: Probe): Part {
  return helpers.ok
    ? { name: HELPERS, state: 'ok', detail: 'built for this machine, writable by nobody else', fix: '' }
    : { name: HELPERS, state: 'missing', detail: helpers.message, fix: 'make native' }
}

/** unshare is the default and bwrap its substitute: one of them is enough. */
function enginePart(facts: HostFacts, engine: EngineName): Part {
  const version = engine === 'bwrap' ? `${facts.bwrap?.path ?? ''} ${facts.bwrap?.version ?? ''}`.trim() : 'our own'
  const obstacle = engineObstacle(facts, engine)
  if (obstacle === undefined)
    return { name: engine, state: 'ok', detail: `${version}: started an empty sandbox`, fix: '' }
  const isNeeded = engine === 'unshare' || engineObstacle(facts, 'unshare') !== undefined
  return {
    name: engine,
    state: isNeeded ? 'missing' : 'limited',
    detail: version === '' ? obstacle.why : `${version}: ${obstacle.why}`,
    fix: obstacle.fix,
  }
}

/** Both are proved by the empty sandbox; where none starts, its message says which of them is the matter. */
function namespacesPart(facts: HostFacts): Part {
  const name = 'user namespaces'
  if (facts.platform !== 'linux') return { name, state: 'missing', detail: `this is ${facts.platform}`, fix: '' }
  const works = engineObstacle(facts, 'bwrap') === undefined || engineObstacle(facts, 'unshare') === undefined
  const who = facts.uid === 0 ? 'root, whose sandboxes are never root' : `uid ${facts.uid}`
  return works
    ? { name, state: 'ok', detail: `with a fresh /proc, for ${who}`, fix: '' }
    : { name, state: 'missing', detail: 'no engine could make them, see above', fix: '' }
}

function landlockPart({ landlockAbi, kernel }: HostFacts): Part {
  const name = 'Landlock'
  if (landlockAbi >= LANDLOCK_CLOSES_SOCKETS) return { name, state: 'ok', detail: `version ${landlockAbi}`, fix: '' }
  const held =
    landlockAbi < LANDLOCK_RENAMES
      ? 'sockets in zones can be made and reached'
      : 'sockets that lie in a zone can be reached'
  return {
    name,
    state: 'limited',
    detail: `version ${landlockAbi || 'none'} (kernel ${kernel}): ${held}`,
    fix: `Linux 7.1 has version ${LANDLOCK_CLOSES_SOCKETS}; until then keep sockets out of the zones`,
  }
}

/** What the ladder says about the better rung ends with its fix in brackets. */
function cgroupPart({ cgroup }: HostFacts): Part {
  const name = 'cgroup'
  const place = cgroup.parent === undefined ? '' : ` at ${cgroup.parent}`
  const has = cgroup.controllers.length === 0 ? 'no controllers' : cgroup.controllers.join(', ')
  const isComplete = WANTED_BY_ALL.every((controller) => cgroup.controllers.includes(controller))
  return {
    name,
    state: isComplete ? 'ok' : 'limited',
    detail: `${cgroup.rung}${place}: ${has}`,
    fix: isComplete ? '' : cgroup.lacking,
  }
}

function dockerPart({ docker }: HostFacts): Part {
  const name = 'docker'
  if (docker === undefined)
    return { name, state: 'limited', detail: 'no docker on PATH', fix: 'only needed for --backend docker' }
  const who = `${docker.path} ${docker.clientVersion}`
  if (!docker.server.ok)
    return { name, state: 'limited', detail: `${who}: ${firstLine(docker.server.message)}`, fix: '' }
  const kind = docker.rootless ? ', rootless' : ''
  return {
    name,
    state: 'ok',
    detail: `${who}, daemon ${docker.serverVersion ?? ''}${kind}; holds ${docker.limits.join(', ')}`,
    fix: '',
  }
}

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? ''

function wasmPart({ engines, wasmtime }: HostFacts): Part {
  const inside = engines.bwrap.ok || engines.unshare.ok
  const other = wasmtime === undefined ? '' : `; ${wasmtime.path} ${wasmtime.version} with --runtime wasmtime`
  const detail = `node's own WASI${inside ? ', inside the namespace sandbox' : ''}${other}`
  return { name: 'wasm', state: 'ok', detail, fix: '' }
}
