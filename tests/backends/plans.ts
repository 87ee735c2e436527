/** Plans and run inputs for tests of backends: one sensible whole, of which a test changes what it is about. */
import type { RunInputs } from '../../src/backends/backend.ts'
import type { DockerInputs } from '../../src/backends/docker/command-environment.ts'
import type { Outcome } from '../../src/backends/outcome.ts'
import type { Plan, PlannedZone, Scratch } from '../../src/plan/plan.ts'

/** The kept bytes of a stream, as text. */
export const text = ({ head, tail }: Outcome['stdout']): string => Buffer.concat([head, tail]).toString('utf8')

export const SCRATCH: readonly Scratch[] = [
  { target: '/tmp', size: 52_428_800, inodes: 12_800, mode: 0o1777 },
  { target: '/run', size: 10_485_760, inodes: 2_560, mode: 0o755 },
  { target: '/home/sandbox', size: 52_428_800, inodes: 12_800, mode: 0o700 },
]

export function plannedZone(zone: Pick<PlannedZone, 'source' | 'target'> & Partial<PlannedZone>): PlannedZone {
  return {
    name: zone.target.slice(1),
    ...{ mode: 'ro', kind: 'directory', dev: 1, ino: 1, uid: 1000, gid: 1000 },
    ...{ create: false, sockets: false, protect: [], from: 'flag --ro' },
    ...zone,
  }
}

export function planFor(backend: Plan['backend'], changes: Partial<Plan> = {}): Plan {
  return {
    ...{ schema: 1, hash: '0123456789abcdef', profile: 'task', backend, dockerReuse: 'off' },
    ...{ needs: [], zones: [], scratch: SCRATCH, system: [], env: [], warnings: [] },
    network: { mode: 'none', allow: [], deny: [] },
    limits: { timeoutMs: 30_000 },
    seccomp: { profile: 'default', arch: 'x64', filter: '20000000' },
    ...{ landlockAbi: 0, uid: 1000, gid: 1000, identity: 'self', hostname: 'sandbox', tty: false },
    workdir: '/workspace',
    ...changes,
  }
}

/** The classic container task. */
export function dockerPlan(changes: Partial<Plan> = {}): Plan {
  return planFor('docker', {
    limits: {
      memory: { max: 536_870_912, by: 'docker' },
      swap: { max: 0, by: 'docker' },
      cpus: { max: 2, by: 'docker' },
      pids: { max: 32, by: 'docker' },
      timeoutMs: 30_000,
    },
    ...changes,
  })
}

export const DOCKER_INPUTS: DockerInputs = {
  ...{ program: 'docker', path: '/usr/bin/docker', platform: 'linux', rootless: false, remote: false },
  ...{ caller: { uid: 1000, gid: 1000 }, umask: 0o022 },
  environment: { PATH: '/usr/bin:/bin', HOME: '/home/user' },
  runner: 'boot/4026531836/4242:99',
  hardLimits: { files: 20_000, processes: 96_365 },
}

export function runInputs<Own extends object>(changes?: Own): RunInputs & Own {
  return {
    runId: 'run1',
    command: ['true'],
    commandEnv: { HOME: '/home/sandbox', LLM_DO_SANDBOX: 'docker' },
    nativeDirectory: '/opt/llm-do/helpers',
    runsDirectory: '/run/user/1000/llm-do/runs',
    stdin: 'nothing',
    ...changes,
  } as RunInputs & Own
}
