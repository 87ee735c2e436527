/**
 * The walls and limits that the namespace backend can enforce on this machine, and by what; for the rest the reason and the fix.
 * Pure: facts in, words out. The plan chooses by it and the doctor prints it, so the two cannot disagree.
 */
import { ioLack, rungsFor } from '../../cgroup/rungs.ts'
import { LANDLOCK_CLOSES_SOCKETS } from '../../contract.ts'
import { type HostFacts, type NetworkWay, NOT_TRIED, type Probe, type ProgramFact } from '../../host/facts.ts'
import { explainFailure, INSIDE_OWN_SANDBOX, OWN_SANDBOX } from '../../host/probe-failures.ts'
import { isOlder } from '../../host/version.ts'
import type { Lack, Offers } from '../../plan/offers.ts'
import type { Policy } from '../../policy/policy.ts'
import type { EngineName } from '../../policy/values.ts'
import { NOT_WASI, nothing, OWN_LIMITS, unusable, WALLS } from '../offers.ts'

/**
 * First version with all words that the namespace backend uses; --clearenv was the last of them to come.
 * Source: bubblewrap release notes of 0.5.0 (2021-08).
 */
export const OLDEST_BWRAP = '0.5.0'

export function namespaceOffers(facts: HostFacts): Offers {
  const obstacle = namespaceObstacle(facts)
  if (obstacle !== undefined) return nothing(obstacle)
  const rungs = rungsFor(facts.cgroup)
  const noNetwork = restrictedObstacle(facts)
  const socketsClosed = facts.landlockAbi >= LANDLOCK_CLOSES_SOCKETS
  return {
    engines: enginesOf(facts),
    gives: {
      ...WALLS,
      'copy-on-write': 'kernel',
      'net-none': 'kernel',
      ...(noNetwork === undefined ? { 'net-restricted': restrictedBy(facts) } : {}),
      'net-host': 'kernel',
      'memory-limit': rungs.memory,
      'pids-limit': rungs.pids,
      'cpus-limit': rungs.cpus,
      ...(rungs.io === 'none' ? {} : { 'io-limit': rungs.io }),
      ...OWN_LIMITS,
      tty: 'runner',
      explain: 'runner',
      ...(socketsClosed ? { 'sockets-closed': 'kernel' as const } : {}),
    },
    lacks: {
      ...(noNetwork === undefined ? {} : { 'net-restricted': noNetwork }),
      'wasi-command': NOT_WASI,
      ...(rungs.io === 'none' ? { 'io-limit': ioLack(facts.cgroup) } : {}),
      ...(socketsClosed ? {} : { 'sockets-closed': oldLandlock(facts) }),
    },
  }
}

/** Why the network cannot be restricted by name; undefined when it can, or was not tried. */
export function restrictedObstacle({ restrictedNetwork: probe }: HostFacts): Lack | undefined {
  if (probe === undefined || probe.ok) return undefined
  return {
    why: `it cannot be made here (${probe.message})`,
    fix: '--net none, or --net host if the command may reach everything',
  }
}

/** A policy that does not restrict the network has no facts about it. */
const restrictedBy = ({ restrictedNetwork: probe }: HostFacts): NetworkWay =>
  probe?.ok === true ? probe.by : 'nftables'

function oldLandlock({ landlockAbi, kernel }: HostFacts): Lack {
  return {
    why: `sockets in zones can be closed from Landlock ${LANDLOCK_CLOSES_SOCKETS} on; kernel ${kernel} has ${landlockAbi || 'none'}`,
    fix: 'keep sockets out of the zones, or run on Linux 7.1 or later',
  }
}

/** The obstacle to the namespace backend, or undefined when at least one engine works. */
function namespaceObstacle(facts: HostFacts): Lack | undefined {
  if (facts.platform !== 'linux') return { why: 'namespaces exist on Linux only', fix: '--backend docker' }
  const { nativePrograms, surroundings } = facts
  if (enginesOf(facts).length === 0 && surroundings?.container === OWN_SANDBOX) return INSIDE_OWN_SANDBOX
  if (!nativePrograms.ok) return unusable(nativePrograms)
  if (enginesOf(facts).length > 0) return undefined
  // A policy that names bwrap gets the reason about bwrap: nothing else was tried then.
  return isTried(facts.engines.unshare) ? engineFailure(facts, 'unshare') : engineObstacle(facts, 'bwrap')
}

/** Engines that started a real sandbox here and that we trust, fastest first; docs/reference/backends.md says why that is `unshare`. */
function enginesOf(facts: HostFacts): readonly EngineName[] {
  const bwrap = bwrapObstacle(facts) === undefined && facts.engines.bwrap.ok
  return [...(facts.engines.unshare.ok ? (['unshare'] as const) : []), ...(bwrap ? (['bwrap'] as const) : [])]
}

/** host/probe.ts tries no more than the policy may use. */
const isTried = (probe: Probe): boolean => probe.ok || probe.message !== NOT_TRIED.message

/** Why this engine cannot be had, or undefined when it can. */
export function engineObstacle(facts: HostFacts, engine: EngineName): Lack | undefined {
  if (enginesOf(facts).includes(engine)) return undefined
  return (engine === 'bwrap' ? bwrapObstacle(facts) : undefined) ?? engineFailure(facts, engine)
}

/** A bwrap that is absent or that must not be used, whatever its probe said. */
function bwrapObstacle({ bwrap }: HostFacts): Lack | undefined {
  if (bwrap === undefined) return { why: 'no bwrap on PATH', fix: 'sudo apt-get install bubblewrap' }
  if (bwrap.setuid) return setuidBwrap(bwrap)
  if (isOlder(bwrap.version, OLDEST_BWRAP)) return oldBwrap(bwrap)
  return undefined
}

function setuidBwrap({ path }: ProgramFact): Lack {
  return { why: `${path} is setuid root: a hole in it would be a hole in the host`, fix: `sudo chmod u-s ${path}` }
}

function oldBwrap({ path, version }: ProgramFact): Lack {
  return {
    why: `${path} is version ${version || 'unknown'}, older than ${OLDEST_BWRAP}`,
    fix: `install bubblewrap ${OLDEST_BWRAP} or later, or use --engine unshare`,
  }
}

function engineFailure(facts: HostFacts, engine: EngineName): Lack {
  const probe = facts.engines[engine]
  if (probe.ok) return { why: `${engine} is not there`, fix: '' }
  // The program that makes the namespaces needs the permission: our launcher where it is known, see `nativePrograms`.
  const program = (facts.nativePrograms.ok ? facts.nativePrograms.detail : undefined) ?? engine
  return explainFailure(probe, { program, around: facts.surroundings })
}

/** The engine that a policy gets: the one it names, else the best that works. */
export function engineFor({ engine }: Pick<Policy, 'engine'>, { engines }: Offers): EngineName {
  return engine === 'auto' ? (engines[0] ?? 'bwrap') : engine
}
