/** Lines of the doctor about what the namespace backend is made of: native programs, engines, namespaces, Landlock, cgroup. Pure. */
import { WANTED_BY_ALL } from '../../cgroup/rungs.ts'
import { LANDLOCK_CLOSES_SOCKETS, LANDLOCK_SCOPES } from '../../contract.ts'
import type { HostFacts, Probe } from '../../host/facts.ts'
import { NFTABLES_FIX } from '../../plan/offers.ts'
import type { EngineName } from '../../policy/values.ts'
import type { Part } from '../backend.ts'
import { engineObstacle, restrictedObstacle } from './offers.ts'

/** In the order in which a run needs them. */
export function describeNamespace(facts: HostFacts): readonly Part[] {
  return [
    nativeProgramsPart(facts.nativePrograms),
    enginePart(facts, 'unshare'),
    enginePart(facts, 'bwrap'),
    namespacesPart(facts),
    landlockPart(facts),
    ...networkPart(facts),
    cgroupPart(facts),
  ]
}

const NATIVE_PROGRAMS = 'native programs'

function nativeProgramsPart(probe: Probe): Part {
  return probe.ok
    ? { name: NATIVE_PROGRAMS, state: 'ok', detail: 'built for this machine, writable by no other user', fix: '' }
    : { name: NATIVE_PROGRAMS, state: 'missing', detail: probe.message, fix: probe.fix ?? 'make native' }
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
    : { name, state: 'missing', detail: 'no engine could make them, see above', fix: fewerWalls(facts.landlockAbi) }
}

function fewerWalls(landlockAbi: number): string {
  return landlockAbi >= LANDLOCK_SCOPES
    ? 'where that cannot be changed, what Landlock and seccomp alone hold: --backend no-namespaces, see docs/reference/backends.md'
    : ''
}

function landlockPart({ landlockAbi, kernel }: HostFacts): Part {
  const name = 'Landlock'
  if (landlockAbi >= LANDLOCK_CLOSES_SOCKETS) return { name, state: 'ok', detail: `version ${landlockAbi}`, fix: '' }
  const held =
    landlockAbi < 2 ? 'sockets in zones can be made and reached' : 'sockets that lie in a zone can be reached'
  return {
    name,
    state: 'limited',
    detail: `version ${landlockAbi || 'none'} (kernel ${kernel}): ${held}`,
    fix: `Linux 7.1 has version ${LANDLOCK_CLOSES_SOCKETS}; until then keep sockets out of the zones`,
  }
}

const WITHOUT_NFTABLES = 'listeners, a helper on the host: no rules for every port, and refused ports are not on record'

function networkPart(facts: HostFacts): readonly Part[] {
  const [name, obstacle] = ['network by name', restrictedObstacle(facts)]
  const probe = facts.restrictedNetwork
  if (probe === undefined) return []
  if (obstacle !== undefined) return [{ name, state: 'limited', detail: obstacle.why, fix: obstacle.fix }]
  if (probe.ok && probe.by === 'listeners')
    return [{ name, state: 'limited', detail: `${WITHOUT_NFTABLES} (${probe.lacking})`, fix: NFTABLES_FIX }]
  return [{ name, state: 'ok', detail: 'nftables (TPROXY, nflog), a helper on the host', fix: '' }]
}

/** The reason why a better rung is missing ends with its fix in brackets. */
function cgroupPart({ cgroup }: HostFacts): Part {
  const name = 'cgroup'
  const location = cgroup.parent === undefined ? '' : ` at ${cgroup.parent}`
  const has = cgroup.controllers.length === 0 ? 'no controllers' : cgroup.controllers.join(', ')
  const isComplete = WANTED_BY_ALL.every((controller) => cgroup.controllers.includes(controller))
  return {
    name,
    state: isComplete ? 'ok' : 'limited',
    detail: `${cgroup.rung}${location}: ${has}`,
    fix: isComplete ? '' : cgroup.lacking,
  }
}
