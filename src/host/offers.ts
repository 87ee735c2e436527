/**
 * Which needs each backend can meet on this machine, by what, and for the others: why not and the fix.
 * Pure: facts in, words out. The plan chooses by it and the doctor prints it, so the two cannot disagree.
 */

import { ioLack, rungsFor } from '../cgroup/rungs.ts'
import { LANDLOCK_CLOSES_SOCKETS } from '../contract.ts'
import type { BackendName, EngineName, Need } from '../policy/values.ts'
import { explainFailure } from './explain.ts'
import { type DockerFact, type HeldBy, type HostFacts, NOT_TRIED, type Probe, type ProgramFact } from './facts.ts'

/** `kernel`: a wall made of namespaces, mounts or filters; `runner`: our own process does it. */
export type Holder = HeldBy | 'kernel' | 'runner'

export interface Lack {
  /** One clause, without a full stop. */
  readonly why: string
  /** A command where it can be one; empty when nothing helps. */
  readonly fix: string
}

export interface Offers {
  readonly gives: Readonly<Partial<Record<Need, Holder>>>
  readonly lacks: Readonly<Partial<Record<Need, Lack>>>
  /** Set when the backend cannot be used here at all; `gives` is then empty. */
  readonly unusable?: Lack
  /** Engines of the namespace backend that work, best first. */
  readonly engines: readonly EngineName[]
}

/** Holders that `require` accepts: the kernel itself says no, whatever our processes do. */
export const KERNEL_HOLDERS: readonly Holder[] = ['kernel', 'cgroup2', 'docker']

/**
 * First version with all words that the namespace backend uses; --clearenv was the last of them to come.
 * Source: bubblewrap release notes of 0.5.0 (2021-08).
 */
export const OLDEST_BWRAP = '0.5.0'

const NO_RESTRICTED_NETWORK: Lack = {
  why: 'a network restricted to named hosts is not built yet',
  fix: '--net none, or --net host if the command may reach everything',
}
const NOT_WASI: Lack = { why: 'only the wasm backend runs WASI commands', fix: '--backend wasm' }

/** Every backend's offers on this machine. */
export function offersOf(facts: HostFacts): Readonly<Record<BackendName, Offers>> {
  return {
    namespace: namespaceOffers(facts),
    docker: dockerOffers(facts),
    wasm: wasmOffers(facts),
    process: processOffers(facts),
  }
}

function namespaceOffers(facts: HostFacts): Offers {
  const unusable = namespaceObstacle(facts)
  if (unusable !== undefined) return nothing(unusable)
  const rungs = rungsFor(facts.cgroup)
  const socketsClosed = facts.landlockAbi >= LANDLOCK_CLOSES_SOCKETS
  return {
    engines: enginesOf(facts),
    gives: {
      ...WALLS,
      'net-none': 'kernel',
      'net-host': 'kernel',
      'memory-limit': rungs.memory,
      'pids-limit': rungs.pids,
      'cpus-limit': rungs.cpus,
      ...(rungs.io === 'none' ? {} : { 'io-limit': rungs.io }),
      ...OWN_LIMITS,
      tty: 'runner',
      ...(socketsClosed ? { 'sockets-closed': 'kernel' as const } : {}),
    },
    lacks: {
      'net-restricted': NO_RESTRICTED_NETWORK,
      'wasi-command': NOT_WASI,
      ...(rungs.io === 'none' ? { 'io-limit': ioLack(facts.cgroup) } : {}),
      ...(socketsClosed ? {} : { 'sockets-closed': oldLandlock(facts) }),
    },
  }
}

const WALLS = {
  'empty-root': 'kernel',
  zones: 'kernel',
  'pid-namespace': 'kernel',
  'ipc-namespace': 'kernel',
  'user-namespace': 'kernel',
  seccomp: 'kernel',
} as const

const OWN_LIMITS = { deadline: 'timer', 'output-limit': 'runner' } as const

function oldLandlock({ landlockAbi, kernel }: HostFacts): Lack {
  return {
    why: `sockets in zones can be closed from Landlock ${LANDLOCK_CLOSES_SOCKETS} on; kernel ${kernel} has ${landlockAbi || 'none'}`,
    fix: 'keep sockets out of the zones, or run on Linux 7.1 or later',
  }
}

/** What stands in the way of the namespace backend, or undefined when at least one engine works. */
function namespaceObstacle(facts: HostFacts): Lack | undefined {
  if (facts.platform !== 'linux') return { why: 'namespaces exist on Linux only', fix: '--backend docker' }
  if (!facts.helpers.ok) return { why: `the native helpers are not usable: ${facts.helpers.message}`, fix: 'make' }
  if (enginesOf(facts).length > 0) return undefined
  // Whoever asks for bwrap by name gets its trouble told: nothing else was tried then.
  return isTried(facts.engines.unshare) ? engineFailure(facts, 'unshare') : engineObstacle(facts, 'bwrap')
}

/** Engines that started a real sandbox here and that we trust, fastest first; docs/backends.md says why that is `unshare`. */
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
  // Whoever makes the namespaces needs the permission: our launcher where it is known, see `helpers`.
  const program = (facts.helpers.ok ? facts.helpers.detail : undefined) ?? engine
  const { cause, fix } = explainFailure(probe, { program, around: facts.surroundings })
  return { why: cause, fix }
}

/** Compares dotted versions number by number; what is not a version counts as older than everything. */
export function isOlder(version: string, than: string): boolean {
  const parts = (text: string): number[] => text.split('.').map((part) => Number.parseInt(part, 10) || 0)
  const [own, other] = [parts(version), parts(than)]
  const at = other.findIndex((part, index) => (own[index] ?? 0) !== part)
  return at !== -1 && (own[at] ?? 0) < (other[at] ?? 0)
}

const DOCKER_LIMITS: readonly { need: Need; word: DockerFact['limits'][number] }[] = [
  { need: 'memory-limit', word: 'memory' },
  { need: 'pids-limit', word: 'pids' },
  { need: 'cpus-limit', word: 'cpus' },
]

function dockerOffers(facts: HostFacts): Offers {
  const unusable = dockerObstacle(facts)
  if (unusable !== undefined) return nothing(unusable)
  const docker = facts.docker as DockerFact
  const held = DOCKER_LIMITS.filter(({ word }) => docker.limits.includes(word))
  const ignored = DOCKER_LIMITS.filter(({ word }) => !docker.limits.includes(word))
  return {
    engines: [],
    gives: {
      ...WALLS,
      'net-none': 'kernel',
      'net-host': 'kernel',
      ...OWN_LIMITS,
      tty: 'docker',
      ...Object.fromEntries(held.map(({ need }) => [need, 'docker' as const])),
    },
    lacks: {
      'net-restricted': NO_RESTRICTED_NETWORK,
      'wasi-command': NOT_WASI,
      'io-limit': {
        why: 'which disks the files of a container lie on is known to its daemon only',
        fix: '--backend namespace, or --best-effort',
      },
      'sockets-closed': {
        why: 'a container does not close sockets in its mounts',
        fix: 'keep sockets out of the zones',
      },
      ...Object.fromEntries(ignored.map(({ need, word }) => [need, ignoredByDocker(docker, word)])),
    },
  }
}

function ignoredByDocker({ program, rootless }: DockerFact, word: string): Lack {
  const where = rootless ? `rootless ${program}` : program
  return {
    why: `${where} says that it ignores a limit of ${word} here`,
    fix: rootless
      ? 'enable cgroup delegation for this user (systemd: Delegate=cpu memory pids on user@.service)'
      : '--best-effort',
  }
}

/** Why containers cannot be had, or undefined when they can. */
export function dockerObstacle({ docker, surroundings }: Pick<HostFacts, 'docker' | 'surroundings'>): Lack | undefined {
  if (docker === undefined)
    return { why: 'no docker on PATH', fix: 'install Docker, or podman with LLM_DO_DOCKER=podman' }
  if (docker.server.ok) return undefined
  const { cause, fix } = explainFailure(docker.server, { program: docker.path, around: surroundings })
  return { why: cause, fix }
}

const NO_RATES: Lack = {
  why: 'rates of disks are held by the cgroup of a namespace sandbox only',
  fix: '--backend namespace, or --best-effort',
}

/** WASI programs see what is preopened and nothing else; there are no processes, sockets or system calls to wall in. */
function wasmOffers(_facts: HostFacts): Offers {
  return {
    engines: [],
    gives: {
      'empty-root': 'wasm',
      zones: 'wasm',
      'pid-namespace': 'wasm',
      'ipc-namespace': 'wasm',
      'user-namespace': 'wasm',
      seccomp: 'wasm',
      'net-none': 'wasm',
      'memory-limit': 'wasm',
      'pids-limit': 'wasm',
      // One thread is one processor; plan/limits.ts takes it away again for less.
      'cpus-limit': 'wasm',
      ...OWN_LIMITS,
      'wasi-command': 'wasm',
      'sockets-closed': 'wasm',
    },
    lacks: {
      'net-restricted': { why: 'WASI has no sockets', fix: '--net none' },
      'net-host': { why: 'WASI has no sockets', fix: '--net none' },
      'io-limit': NO_RATES,
      tty: { why: 'WASI has no terminals', fix: 'leave out --tty' },
    },
  }
}

const NO_WALL: Lack = { why: 'a host process has no walls', fix: '--backend namespace or --backend docker' }

const NO_RLIMIT: Lack = { why: 'the limits of a host process are held on Linux only', fix: '--best-effort' }

function processOffers({ platform }: HostFacts): Offers {
  const walls: readonly Need[] = [
    'empty-root',
    'zones',
    'pid-namespace',
    'ipc-namespace',
    'user-namespace',
    'seccomp',
    'net-none',
    'net-restricted',
    'sockets-closed',
    'wasi-command',
  ]
  const limits = ['memory-limit', 'pids-limit', 'cpus-limit'] as const
  const held = { 'memory-limit': 'watchdog', 'pids-limit': 'watchdog', 'cpus-limit': 'affinity' } as const
  const onLinux = platform === 'linux'
  return {
    engines: [],
    gives: { 'net-host': 'runner', ...OWN_LIMITS, tty: 'runner', ...(onLinux ? held : {}) },
    lacks: Object.fromEntries([
      ...walls.map((need) => [need, NO_WALL]),
      ['io-limit', NO_RATES],
      ...(onLinux ? [] : limits.map((need) => [need, NO_RLIMIT])),
    ]),
  }
}

function nothing(unusable: Lack): Offers {
  return { gives: {}, lacks: {}, unusable, engines: [] }
}
