/** Everything the docker backend can enforce, according to its daemon. Pure: facts in, words out. */

import {
  type DockerFact,
  explainFailure,
  type HostFacts,
  type Lack,
  type Need,
  NO_LAYERS,
  NO_OBSERVER,
  NOT_WASI,
  nothing,
  type Offers,
  OWN_LIMITS,
  WALLS,
} from '../row-kit.ts'

const DOCKER_LIMITS: readonly { need: Need; word: DockerFact['limits'][number] }[] = [
  { need: 'memory-limit', word: 'memory' },
  { need: 'pids-limit', word: 'pids' },
  { need: 'cpus-limit', word: 'cpus' },
]

export function dockerOffers(facts: HostFacts): Offers {
  const unusable = dockerObstacle(facts)
  if (unusable !== undefined) return nothing(unusable)
  const docker = facts.docker as DockerFact
  const noRestricted = restrictedObstacle(facts)
  const held = DOCKER_LIMITS.filter(({ word }) => docker.limits.includes(word))
  const ignored = DOCKER_LIMITS.filter(({ word }) => !docker.limits.includes(word))
  return {
    engines: [],
    gives: {
      ...WALLS,
      'net-none': 'kernel',
      'net-host': 'kernel',
      ...(noRestricted === undefined && { 'net-restricted': 'kernel' as const }),
      ...OWN_LIMITS,
      tty: 'docker',
      ...Object.fromEntries(held.map(({ need }) => [need, 'docker' as const])),
    },
    lacks: {
      ...(noRestricted !== undefined && { 'net-restricted': noRestricted }),
      'wasi-command': NOT_WASI,
      'copy-on-write': NO_LAYERS,
      explain: NO_OBSERVER,
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

/** The sockets of a restricted network are handed over from inside the container to a program on the daemon's own machine. */
export function restrictedObstacle({ platform, docker }: Pick<HostFacts, 'platform' | 'docker'>): Lack | undefined {
  const fix = '--backend namespace, or --net none'
  if (platform !== 'linux' || docker?.remote)
    return {
      why: 'the sockets of a restricted network cannot be handed over by a daemon in a virtual machine or elsewhere',
      fix,
    }
  if (docker?.program !== 'docker')
    return { why: 'a network restricted to named hosts is built for docker, not for podman', fix }
  if (docker.rootless) return { why: 'a network restricted to named hosts needs a daemon that root runs', fix }
  if (docker.labelled)
    return { why: 'SELinux keeps containers from the socket on which a restricted network is handed over', fix }
  return undefined
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
  return explainFailure(docker.server, { program: docker.path, around: surroundings })
}
