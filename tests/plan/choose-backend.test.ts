import { describe, expect, test } from 'vitest'
import { offersFor } from '../../src/backends/index.ts'
import type { CgroupFact, DockerFact } from '../../src/host/facts.ts'
import { nextToObserve } from '../../src/plan/choose-backend.ts'
import { needsOf } from '../../src/policy/needs.ts'
import type { Policy, Resources } from '../../src/policy/policy.ts'
import { DOCKER, factsOf, PLAIN_POLICY, planIn, refusal, type World } from './world.ts'

const NO_CGROUP: CgroupFact = {
  rung: 'none',
  controllers: [],
  lacking: 'the cgroup is not delegated to this user',
  fix: 'systemd-run --user --scope -p Delegate=yes llm-do exec ...',
}
const WORKS = { ok: true } as const
const FAILS = {
  ok: false,
  step: 'bwrap',
  errno: '',
  message: 'bwrap: No permissions to create new namespace',
} as const
const BROKEN = { engines: { bwrap: FAILS, unshare: FAILS } }
const resources = (some: Partial<Resources>): Resources => ({ ...PLAIN_POLICY.resources, ...some })

/** A policy that names the native backend, with no cgroup to hold its limits. */
const limited = (policy: Partial<Policy>): World => ({
  policy: { backend: 'namespace', ...policy },
  machine: { cgroup: NO_CGROUP },
})
const namespace = (policy: Partial<Policy>, machine: World['machine'] = {}): World => ({
  policy: { backend: 'namespace', ...policy },
  machine,
})
const docker = (fact: Partial<DockerFact>, policy: Partial<Policy> = {}): World => ({
  policy: { backend: 'docker', ...policy },
  machine: { docker: { ...DOCKER, ...fact } },
})
const byName = (host: string): Partial<Policy> => ({ network: { mode: 'restricted', allow: [host], deny: [] } })
const EXAMPLE = byName('example.com')
const unsandboxed = { unsandboxed: true }
const bwrap = (version: string, setuid: boolean): World =>
  namespace({ engine: 'bwrap' }, { bwrap: { path: '/usr/bin/bwrap', version, setuid } })

test('sockets are closed by Landlock 9 under every other filter', () => {
  for (const seccomp of ['default', 'strict', 'off'] as const)
    expect(planIn(namespace({ require: ['sockets-closed'], seccomp }, { landlockAbi: 9 }))).toBeDefined()
})

describe('The backend is', () => {
  const required = { policy: { require: ['memory-limit'] as const }, machine: { cgroup: NO_CGROUP, docker: DOCKER } }
  test.each<[title: string, world: World, backend: string, engine?: string]>([
    ['namespace with unshare when both engines work', {}, 'namespace', 'unshare'],
    ['bwrap where unshare fails', { machine: { engines: { bwrap: WORKS, unshare: FAILS } } }, 'namespace', 'bwrap'],
    ['unshare where bwrap fails', { machine: { engines: { bwrap: FAILS, unshare: WORKS } } }, 'namespace', 'unshare'],
    ['namespace with the engine that is asked for', { policy: { engine: 'bwrap' } }, 'namespace', 'bwrap'],
    ['docker when namespaces cannot be made', { machine: { ...BROKEN, docker: DOCKER } }, 'docker'],
    ['docker for a network restricted by name, where its daemon runs here as root', docker({}, EXAMPLE), 'docker'],
    ['docker when the kernel must hold the memory limit and no cgroup can', required, 'docker'],
    ['process when it is named and allowed', { policy: { backend: 'process' }, permits: unsandboxed }, 'process'],
    ['docker by name although ENABLE_DOCKER=false', { ...docker({}), permits: { docker: false } }, 'docker'],
  ])('%s', (_title, world, backend, engine) => {
    expect(planIn(world)).toMatchObject({ backend, ...(engine === undefined ? {} : { engine }) })
  })

  test('never process by itself, whatever is allowed and missing', () => {
    const error = refusal({ machine: BROKEN, permits: unsandboxed })
    expect(error.code).toBe('NO_BACKEND')
    expect(error.message).not.toContain('process')
  })

  test('process only with a warning that nothing is isolated', () => {
    const { warnings } = planIn({ policy: { backend: 'process' }, permits: unsandboxed })
    expect(warnings[0]).toContain('no isolation')
    expect(warnings).toContain('Execution context: Host process (LEGACY MODE)')
  })
})

describe('A run is refused', () => {
  const noBwrap = namespace({ engine: 'bwrap' }, { bwrap: undefined } as never)
  const noPrograms = {
    nativePrograms: { ok: false, step: 'find', errno: 'ENOENT', message: 'no launch in bin' },
  } as const
  const noNftables = { restrictedNetwork: { ok: true, by: 'listeners', lacking: 'no nftables' } } as const
  const podman = { program: 'podman', rootless: true, limits: [] } as const
  const NAMED = '--backend namespace'
  const LESS = resources({ cpus: 0.5 })
  const READS = resources({ readBps: 1_000_000 })
  test.each<[title: string, world: World, reason: string, hint: string]>([
    ['without bwrap when bwrap is asked for', noBwrap, 'no bwrap on PATH', 'apt-get install bubblewrap'],
    ['with a setuid bwrap', bwrap('0.8.0', true), 'is setuid root', 'chmod u-s /usr/bin/bwrap'],
    ['with an old bwrap', bwrap('0.4.1', false), 'older than 0.5.0', '--engine unshare'],
    ['without native programs', namespace({}, noPrograms), 'no launch in bin', 'make'],
    ['for hosts in podman', docker({ program: 'podman' }, EXAMPLE), 'built for docker, not for podman', NAMED],
    ['for hosts in rootless docker', docker({ rootless: true }, EXAMPLE), 'a daemon that root runs', NAMED],
    ['for hosts elsewhere', docker({ remote: true }, EXAMPLE), 'a daemon in a virtual machine or elsewhere', NAMED],
    ['for hosts under SELinux', docker({ labelled: true }, EXAMPLE), 'SELinux keeps containers', NAMED],
    [
      'for every port of a host without nftables',
      namespace(byName('example.com:*'), noNftables),
      'net-restricted (a rule is for every port, which needs nftables, and this kernel has none)',
      'modprobe nf_tables',
    ],
    [
      'for process named once',
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
      limited({ require: ['memory-limit'] }),
      'only watchdog holds memory-limit here (the cgroup is not delegated to this user)',
      'systemd-run --user --scope',
    ],
    [
      'for a required limit although best effort is allowed',
      limited({ require: ['pids-limit'], bestEffort: true }),
      'only rlimit holds pids-limit',
      'systemd-run',
    ],
    [
      'for a required limit that nothing holds, at best effort',
      limited({ require: ['io-limit'], bestEffort: true, resources: READS }),
      'io-limit',
      '',
    ],
    ['for half a processor, uncontrolled', limited({ resources: LESS }), 'less than one processor', '--best-effort'],
    ['for a limit that podman ignores', docker(podman), 'podman says that it ignores a limit of memory', 'delegation'],
    [
      'for process when a wall is required by name',
      { policy: { backend: 'process', require: ['net-none'] }, permits: unsandboxed },
      'a host process has no walls',
      NAMED,
    ],
    ['for sockets that the kernel leaves open', namespace({ require: ['sockets-closed'] }), 'Landlock 9', 'Linux 7.1'],
    [
      'for sockets that the filter keeps open',
      namespace({ require: ['sockets-closed'], seccomp: 'nested' }, { landlockAbi: 9 }),
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

  test('without the advice to name a backend that cannot be used', () => {
    const { hint, problems } = refusal({ policy: { image: 'node:20' } })
    expect(problems.join()).toContain('fix: --backend docker')
    expect(hint).toContain('install Docker')
  })

  test('with what is missing of every backend, and a fix for each', () => {
    expect(refusal({ machine: BROKEN }).problems).toEqual([
      expect.stringMatching(/^namespace: .*; fix: /),
      expect.stringMatching(/^docker: no docker on PATH; fix: /),
    ])
  })
})

describe('Each limit is held by the best rung', () => {
  const limits = (world: World) => planIn(world).limits
  const NONE = { memory: null, cpus: null, pids: null, timeout: null, output: null }
  const PIDS: CgroupFact = { ...NO_CGROUP, rung: 'delegated', controllers: ['pids'] }
  const OURS = { memory: { by: 'watchdog' }, cpus: { by: 'affinity' }, pids: { by: 'rlimit' } }
  test.each<[title: string, world: World, expected: object]>([
    ['of the cgroup for swap and cpus', {}, { swap: { max: 0, by: 'cgroup2' }, cpus: { max: 2, by: 'cgroup2' } }],
    ['of the cgroup for memory and pids', {}, { memory: { by: 'cgroup2' }, pids: { max: 256, by: 'cgroup2' } }],
    ['of our own without controllers', { machine: { cgroup: NO_CGROUP } }, OURS],
    ['each by itself', { machine: { cgroup: PIDS } }, { memory: { by: 'watchdog' }, pids: { by: 'cgroup2' } }],
  ])('%s', (_title, world, expected) => {
    expect(limits(world)).toMatchObject(expected)
  })

  test('and a limit that is lifted is in no plan', () => {
    expect(limits({ policy: { resources: resources(NONE) } })).toEqual({})
  })

  test('and one that nothing holds runs without it only by best effort, which is said', () => {
    const plan = planIn(limited({ backend: 'auto', resources: resources({ cpus: 0.5 }), bestEffort: true }))
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
    ['not twice', docker({}), undefined],
    ['not when another backend is named', namespace({}, BROKEN), undefined],
    ['not when it is taken out of the choice', { machine: BROKEN, permits: { docker: false } }, undefined],
  ])('%s', (_title, world, expected) => {
    const { policy, request, facts } = factsOf(world)
    const needs = needsOf(policy, request.command)
    const offers = offersFor({ policy, facts, permits: { unsandboxed: false, docker: true, ...world.permits } })
    expect(nextToObserve({ policy, facts, needs, offers })).toBe(expected)
  })
})
