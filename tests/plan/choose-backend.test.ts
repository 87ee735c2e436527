import { describe, expect, test } from 'vitest'
import { offersFor } from '../../src/backends/index.ts'
import { SandboxError } from '../../src/error.ts'
import type { CgroupFact, DockerFact } from '../../src/host/facts.ts'
import { nextToObserve } from '../../src/plan/choose-backend.ts'
import { needsOf } from '../../src/policy/needs.ts'
import type { Resources } from '../../src/policy/policy.ts'
import { factsOf, PLAIN_POLICY, planIn, type World } from './world.ts'

const DOCKER: DockerFact = {
  program: 'docker',
  path: '/usr/bin/docker',
  clientVersion: '27.0',
  server: { ok: true },
  serverVersion: '27.0',
  rootless: false,
  limits: ['memory', 'swap', 'cpus', 'pids'],
  remote: false,
}
const NO_CGROUP: CgroupFact = {
  rung: 'none',
  controllers: [],
  lacking: 'the cgroup is not delegated to this user',
  fix: 'systemd-run --user --scope -p Delegate=yes llm-do exec ...',
}
const NO_NAMESPACE = {
  ok: false,
  step: 'bwrap',
  errno: '',
  message: 'bwrap: No permissions to create new namespace',
} as const
const BROKEN = { engines: { bwrap: NO_NAMESPACE, unshare: NO_NAMESPACE } }
const resources = (some: Partial<Resources>): Resources => ({ ...PLAIN_POLICY.resources, ...some })

function refusal(world: World): SandboxError {
  try {
    planIn(world)
  } catch (error) {
    if (error instanceof SandboxError) return error
    throw error
  }
  throw new Error('expected a refusal, got a plan')
}

test('sockets are closed by Landlock 9 under every other filter', () => {
  const machine = { landlockAbi: 9 }
  for (const seccomp of ['default', 'strict', 'off'] as const)
    expect(planIn({ policy: { backend: 'namespace', require: ['sockets-closed'], seccomp }, machine })).toBeDefined()
})

describe('The backend is', () => {
  test.each<[title: string, world: World, backend: string, engine: string | undefined]>([
    ['namespace with unshare when both engines work', {}, 'namespace', 'unshare'],
    [
      'namespace with bwrap when unshare does not work',
      { machine: { engines: { bwrap: { ok: true }, unshare: NO_NAMESPACE } } },
      'namespace',
      'bwrap',
    ],
    [
      'namespace with unshare when there is no bwrap',
      { machine: { engines: { bwrap: NO_NAMESPACE, unshare: { ok: true } } } },
      'namespace',
      'unshare',
    ],
    ['namespace with the engine that is asked for', { policy: { engine: 'bwrap' } }, 'namespace', 'bwrap'],
    ['docker when namespaces cannot be made', { machine: { ...BROKEN, docker: DOCKER } }, 'docker', undefined],
    [
      'docker for a network restricted by name, where its daemon runs here as root',
      {
        policy: { backend: 'docker', network: { mode: 'restricted', allow: ['example.com'], deny: [] } },
        machine: { docker: DOCKER },
      },
      'docker',
      undefined,
    ],
    ['docker when it is named', { policy: { backend: 'docker' }, machine: { docker: DOCKER } }, 'docker', undefined],
    [
      'docker when the kernel must hold the memory limit and no cgroup can',
      { policy: { require: ['memory-limit'] }, machine: { cgroup: NO_CGROUP, docker: DOCKER } },
      'docker',
      undefined,
    ],
    [
      'process when it is named and allowed',
      { policy: { backend: 'process' }, permits: { unsandboxed: true } },
      'process',
      undefined,
    ],
    [
      'docker by name although ENABLE_DOCKER=false',
      { policy: { backend: 'docker' }, machine: { docker: DOCKER }, permits: { docker: false } },
      'docker',
      undefined,
    ],
  ])('%s', (_title, world, backend, engine) => {
    expect(planIn(world)).toMatchObject({ backend, ...(engine === undefined ? {} : { engine }) })
  })

  test('never process by itself, whatever is allowed and missing', () => {
    const error = refusal({ machine: BROKEN, permits: { unsandboxed: true } })
    expect(error.code).toBe('NO_BACKEND')
    expect(error.message).not.toContain('process')
  })

  test('process only with a warning that nothing is isolated', () => {
    const { warnings } = planIn({ policy: { backend: 'process' }, permits: { unsandboxed: true } })
    expect(warnings[0]).toContain('no isolation')
    expect(warnings).toContain('Execution context: Host process (LEGACY MODE)')
  })
})

describe('A run is refused', () => {
  test.each<[title: string, world: World, reason: string, hint: string]>([
    [
      'without bwrap when bwrap is asked for',
      { policy: { engine: 'bwrap', backend: 'namespace' }, machine: { bwrap: undefined } as never },
      'no bwrap on PATH',
      'apt-get install bubblewrap',
    ],
    [
      'with a setuid bwrap when bwrap is asked for',
      {
        policy: { engine: 'bwrap', backend: 'namespace' },
        machine: { bwrap: { path: '/usr/bin/bwrap', version: '0.8.0', setuid: true } },
      },
      'is setuid root',
      'chmod u-s /usr/bin/bwrap',
    ],
    [
      'with an old bwrap when bwrap is asked for',
      {
        policy: { engine: 'bwrap', backend: 'namespace' },
        machine: { bwrap: { path: '/usr/bin/bwrap', version: '0.4.1', setuid: false } },
      },
      'older than 0.5.0',
      '--engine unshare',
    ],
    [
      'without native programs',
      {
        policy: { backend: 'namespace' },
        machine: { nativePrograms: { ok: false, step: 'find', errno: 'ENOENT', message: 'no launch in bin' } },
      },
      'no launch in bin',
      'make',
    ],
    [
      'for a network restricted to hosts in a container of podman',
      {
        policy: { backend: 'docker', network: { mode: 'restricted', allow: ['example.com'], deny: [] } },
        machine: { docker: { ...DOCKER, program: 'podman' } },
      },
      'built for docker, not for podman',
      '--backend namespace',
    ],
    [
      'for a network restricted to hosts in a container of a rootless daemon',
      {
        policy: { backend: 'docker', network: { mode: 'restricted', allow: ['example.com'], deny: [] } },
        machine: { docker: { ...DOCKER, rootless: true } },
      },
      'needs a daemon that root runs',
      '--backend namespace',
    ],
    [
      'for a network restricted to hosts in a container in a virtual machine',
      {
        policy: { backend: 'docker', network: { mode: 'restricted', allow: ['example.com'], deny: [] } },
        machine: { docker: { ...DOCKER, remote: true } },
      },
      'a daemon in a virtual machine or elsewhere',
      '--backend namespace',
    ],
    [
      'for a network restricted to hosts in a container that SELinux labels',
      {
        policy: { backend: 'docker', network: { mode: 'restricted', allow: ['example.com'], deny: [] } },
        machine: { docker: { ...DOCKER, labelled: true } },
      },
      'SELinux keeps containers',
      '--backend namespace',
    ],
    [
      'for every port of a host without nftables',
      {
        policy: { backend: 'namespace', network: { mode: 'restricted', allow: ['example.com:*'], deny: [] } },
        machine: { restrictedNetwork: { ok: true, by: 'listeners', lacking: 'no nftables' } },
      },
      'net-restricted (a rule is for every port, which needs nftables, and this kernel has none)',
      'modprobe nf_tables',
    ],
    [
      'for process without the second opt-in',
      { policy: { backend: 'process' } },
      'must be allowed twice',
      'LLM_DO_ALLOW_UNSANDBOXED=1',
    ],
    ['for docker when there is none', { policy: { backend: 'docker' } }, 'no docker on PATH', 'install Docker'],
    [
      'for docker in auto when it is taken out',
      { machine: { ...BROKEN, docker: DOCKER }, permits: { docker: false } },
      'ENABLE_DOCKER=false',
      'sysctl',
    ],
    [
      'for a required memory limit that only a watchdog holds',
      { policy: { require: ['memory-limit'], backend: 'namespace' }, machine: { cgroup: NO_CGROUP } },
      'only watchdog holds memory-limit here (the cgroup is not delegated to this user)',
      'systemd-run --user --scope',
    ],
    [
      'for a required pids limit although best effort is allowed',
      { policy: { require: ['pids-limit'], bestEffort: true, backend: 'namespace' }, machine: { cgroup: NO_CGROUP } },
      'only rlimit holds pids-limit',
      'systemd-run',
    ],
    [
      'for a required limit that nothing holds although best effort is allowed',
      {
        policy: {
          require: ['io-limit'],
          bestEffort: true,
          backend: 'namespace',
          resources: resources({ readBps: 1_000_000 }),
        },
        machine: { cgroup: NO_CGROUP },
      },
      'io-limit',
      '',
    ],
    [
      'for half a processor without a cpu controller',
      { policy: { resources: resources({ cpus: 0.5 }), backend: 'namespace' }, machine: { cgroup: NO_CGROUP } },
      'less than one processor',
      '--best-effort',
    ],
    [
      'for a limit that the container engine ignores',
      {
        policy: { backend: 'docker' },
        machine: { docker: { ...DOCKER, program: 'podman', rootless: true, limits: [] } },
      },
      'rootless podman says that it ignores a limit of memory',
      'delegation',
    ],
    [
      'for process when a wall is required by name',
      { policy: { backend: 'process', require: ['net-none'] }, permits: { unsandboxed: true } },
      'a host process has no walls',
      '--backend namespace',
    ],
    [
      'for sockets that this kernel cannot close',
      { policy: { backend: 'namespace', require: ['sockets-closed'] } },
      'Landlock 9',
      'Linux 7.1',
    ],
    [
      'for sockets that the kernel could close, and the filter keeps open',
      {
        policy: { backend: 'namespace', require: ['sockets-closed'], seccomp: 'nested' },
        machine: { landlockAbi: 9 },
      },
      'seccomp nested lets the command make mounts',
      '--seccomp default',
    ],
    [
      'for a host network in WASI',
      { policy: { backend: 'wasm', network: { mode: 'host', allow: [], deny: [] } } },
      'WASI has no sockets',
      '--net none',
    ],
  ])('%s', (_title, world, reason, hint) => {
    const error = refusal(world)
    expect(error.code).toBe('NO_BACKEND')
    expect(error.message).toContain(reason)
    expect([error.hint, ...error.problems].join('\n')).toContain(hint)
  })

  test('with what is missing of every backend, and a fix for each', () => {
    const { problems } = refusal({ machine: BROKEN })
    expect(problems).toHaveLength(2)
    expect(problems[0]).toMatch(/^namespace: .*; fix: /)
    expect(problems[1]).toMatch(/^docker: no docker on PATH; fix: /)
  })
})

describe('Each limit is held by the best rung', () => {
  const limits = (world: World) => planIn(world).limits
  test('of the cgroup when its controllers are there', () => {
    expect(limits({})).toMatchObject({
      memory: { by: 'cgroup2' },
      swap: { max: 0, by: 'cgroup2' },
      cpus: { max: 2, by: 'cgroup2' },
      pids: { max: 256, by: 'cgroup2' },
    })
  })

  test('of our own when they are not', () => {
    expect(limits({ machine: { cgroup: NO_CGROUP } })).toMatchObject({
      memory: { by: 'watchdog' },
      cpus: { by: 'affinity' },
      pids: { by: 'rlimit' },
    })
  })

  test('each by itself', () => {
    expect(limits({ machine: { cgroup: { ...NO_CGROUP, rung: 'delegated', controllers: ['pids'] } } })).toMatchObject({
      memory: { by: 'watchdog' },
      pids: { by: 'cgroup2' },
    })
  })

  test('and a limit that is lifted is in no plan', () => {
    expect(
      limits({
        policy: { resources: resources({ memory: null, cpus: null, pids: null, timeout: null, output: null }) },
      }),
    ).toEqual({})
  })

  test('and one that nothing holds runs without it only by best effort, which is said', () => {
    const plan = planIn({
      policy: { resources: resources({ cpus: 0.5 }), bestEffort: true },
      machine: { cgroup: NO_CGROUP },
    })
    expect(plan.limits.cpus).toEqual({ max: 0.5, by: 'none' })
    expect(plan.warnings.join()).toContain('cpus')
  })

  test.each([
    [1.5, 4, { max: 1, by: 'affinity' }, 1],
    [2, 4, { max: 2, by: 'affinity' }, 0],
    [8, 4, { max: 8, by: 'affinity' }, 0],
  ])('and %d processors of %d are counted whole, never looser', (cpus, there, expected, warnings) => {
    const plan = planIn({ policy: { resources: resources({ cpus }) }, machine: { cgroup: NO_CGROUP, cpus: there } })
    expect(plan.limits.cpus).toEqual(expected)
    expect(plan.warnings).toHaveLength(warnings)
  })
})

describe('A container daemon is asked', () => {
  test.each<[title: string, world: World, expected: 'docker' | undefined]>([
    ['not when namespaces cover the needs', {}, undefined],
    ['when they do not', { machine: BROKEN }, 'docker'],
    ['when it is named', { policy: { backend: 'docker' } }, 'docker'],
    ['not twice', { policy: { backend: 'docker' }, machine: { docker: DOCKER } }, undefined],
    ['not when another backend is named', { policy: { backend: 'namespace' }, machine: BROKEN }, undefined],
    ['not when it is taken out of the choice', { machine: BROKEN, permits: { docker: false } }, undefined],
  ])('%s', (_title, world, expected) => {
    const { policy, request, facts } = factsOf(world)
    expect(
      nextToObserve({
        policy,
        facts,
        needs: needsOf(policy, request.command),
        offers: offersFor({ policy, facts, permits: { unsandboxed: false, docker: true, ...world.permits } }),
      }),
    ).toBe(expected)
  })
})
