import { describe, expect, test } from 'vitest'
import { judgeLimits, type LimitInputs, refuseNetwork } from '../../../src/backends/docker/container.ts'
import { refusalOf } from '../../../src/backends/docker/daemon-errors.ts'
import { readInfo } from '../../../src/backends/docker/observe.ts'
import {
  type ContainerReport,
  concludeDocker,
  ignoredLimits,
  limitComplaints,
} from '../../../src/backends/docker/outcome.ts'
import { mayGo } from '../../../src/backends/docker/prune.ts'
import { dockerPlan } from '../plans.ts'

const HELD = {
  Memory: 536_870_912,
  MemorySwap: 536_870_912,
  NanoCpus: 2e9,
  CpuQuota: 0,
  CpuPeriod: 0,
  PidsLimit: 32,
  NetworkMode: 'none',
}
const report = (changes: Partial<typeof HELD>): ContainerReport => ({
  State: { Status: 'created', ExitCode: 0, OOMKilled: false, Error: '', StartedAt: '', FinishedAt: '' },
  HostConfig: { ...HELD, ...changes },
  Config: { Env: [], Image: 'image' },
  Mounts: [],
})

describe('the end of a container whose init had connected and reported nothing', () => {
  const bytes = { head: new Uint8Array(), tail: new Uint8Array(), bytes: 0 }
  const client = {
    cause: 'exit',
    exitCode: 0,
    signal: null,
    stdout: bytes,
    stderr: bytes,
    status: '',
    elapsedMs: 1,
  } as const
  const ended = (ExitCode: number, OOMKilled = false): ContainerReport => ({
    ...report({}),
    State: { ...report({}).State, Status: 'exited', ExitCode, OOMKilled },
  })
  const conclude = (container: ContainerReport, connected: boolean) =>
    concludeDocker({
      report: container,
      client,
      initReport: { connected, line: '' },
      isFiltered: true,
      totalMs: 1,
      warnings: [],
    }).reason

  // Any exit code: what the daemon saw end is not the command.
  test.each([0, 1, 137, 143])('is lost, whatever exit code the daemon has for it (%i)', (code) => {
    expect(conclude(ended(code), true)).toBe('lost')
  })

  test('is the memory limit where that killed it', () => {
    expect(conclude(ended(137, true), true)).toBe('memory')
  })

  test('is the command itself where no init of ours was there', () => {
    expect(conclude(ended(137), false)).toBe('exit')
  })
})

const SWAP = { need: 'swap', wanted: 536_870_912, got: -1 } as const

test.each([
  ['none', 'none', false],
  ['none', 'bridge', true],
  ['none', 'host', true],
  ['host', 'host', false],
  ['host', 'default', true],
] as const)('a container that was to have the network %s and has %s is refused: %s', (mode, NetworkMode, isRefused) => {
  const plan = dockerPlan({ network: { mode, allow: [], deny: [] } })
  const check = () => refuseNetwork({ program: 'docker' }, { plan, report: report({ NetworkMode }) })
  if (isRefused) expect(check).toThrow(`the network "${NetworkMode}" instead of "${mode}"`)
  else expect(check).not.toThrow()
})

describe('a limit that the daemon took off again', () => {
  test.each([
    [{}, []],
    [{ Memory: 0, MemorySwap: 0 }, ['memory-limit']],
    [{ MemorySwap: -1 }, ['swap']],
    [{ NanoCpus: 0 }, ['cpus-limit']],
    [{ NanoCpus: 0, CpuQuota: 200_000, CpuPeriod: 100_000 }, []],
    [{ PidsLimit: 0 }, ['pids-limit']],
  ])('is seen in the container record %o: %o', (changes, needs) => {
    expect(ignoredLimits(dockerPlan(), report(changes)).map(({ need }) => need)).toEqual(needs)
  })

  test('is seen in what the client says', () => {
    const printed = 'WARNING: Your kernel does not support memory limit capabilities. Limitation discarded.\nabc123'
    expect(limitComplaints(printed)).toHaveLength(1)
    expect(
      limitComplaints('Resource limits are not supported and ignored on cgroups V1 rootless systems'),
    ).toHaveLength(1)
    expect(limitComplaints('abc123')).toEqual([])
  })

  test.each<readonly [string, Partial<LimitInputs>, 'refused' | 'warned' | 'held']>([
    ['a limit', { ignored: [SWAP] }, 'refused'],
    ['a complaint of the client', { complaints: ['Limitation discarded.'] }, 'refused'],
    ['a limit with best effort', { ignored: [SWAP], bestEffort: true }, 'warned'],
    ['a complaint with best effort', { complaints: ['Limitation discarded.'], bestEffort: true }, 'warned'],
    ['a required limit', { ignored: [SWAP], bestEffort: true, required: ['memory-limit'] }, 'refused'],
    ['a complaint and a required limit', { complaints: ['x'], bestEffort: true, required: ['pids-limit'] }, 'refused'],
    ['a limit next to a required one', { ignored: [SWAP], bestEffort: true, required: ['pids-limit'] }, 'warned'],
    ['nothing', {}, 'held'],
  ])('%s that is not held: %j is %s', (_what, changes, expected) => {
    const docker = { program: 'docker', rootless: false } as const
    const all = { ignored: [], complaints: [], required: [], bestEffort: false, docker, ...changes }
    const { warnings, refusal } = judgeLimits(all)
    expect(refusal === undefined ? (warnings.length === 0 ? 'held' : 'warned') : 'refused').toBe(expected)
    expect(refusal?.message ?? warnings[0] ?? 'does not hold what was asked for').toContain(
      'does not hold what was asked for',
    )
  })

  test('is not offered in the first place by a rootless podman on cgroup v1, whatever controllers it lists', () => {
    const host = { cgroupVersion: 'v1', cgroupControllers: ['memory', 'pids', 'cpu'], security: { rootless: true } }
    const printed = { stdout: JSON.stringify({ host, version: { Version: '4.3.1' } }), stderr: '', timedOut: false }
    expect(readInfo({ ...printed, program: 'podman', env: {} })).toMatchObject({ rootless: true, limits: [] })
    const asRoot = JSON.stringify({ host: { ...host, security: { rootless: false } } })
    expect(readInfo({ ...printed, stdout: asRoot, program: 'podman', env: {} }).limits).toEqual([
      'memory',
      'swap',
      'cpus',
      'pids',
    ])
  })
})

test.each([
  ['docker', { ServerVersion: '27.0', SecurityOptions: ['name=seccomp,profile=default', 'name=selinux'] }],
  ['podman', { host: { security: { selinuxEnabled: true } }, version: { Version: '5.0' } }],
] as const)('a %s with SELinux is known by what it says of itself', (program, info) => {
  const printed = { stderr: '', timedOut: false, program, env: {} }
  expect(readInfo({ ...printed, stdout: JSON.stringify(info) })).toMatchObject({ labelled: true })
  const without = { ...info, SecurityOptions: [], host: {} }
  expect(readInfo({ ...printed, stdout: JSON.stringify(without) })).not.toHaveProperty('labelled')
})

describe('what the client said', () => {
  const words = { program: 'docker', image: 'node:22' }
  test.each([
    ['Error response from daemon: No such image: node:22', 'SETUP_FAILED', /docker pull node:22/],
    ['permission denied while trying to connect to the Docker daemon socket', 'NO_BACKEND', /rootless/],
    ['Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?', 'NO_BACKEND', /DOCKER_HOST/],
    ['Error response from daemon: Mounts denied: the path /x is not shared from the', 'ZONE_INVALID', /File sharing/],
    ['Error: container-init binary not found on the host', 'SETUP_FAILED', /catatonit/],
    ['Error response from daemon: something new', 'SETUP_FAILED', /docker info/],
  ])('%s becomes %s with a fix', (printed, code, hint) => {
    expect(refusalOf(printed, words)).toMatchObject({ code, hint: expect.stringMatching(hint) })
  })
})

describe('a container of ours is swept away', () => {
  const fresh = { kind: 'run', running: true, runnerIsGone: false, ageMs: 0 }
  test.each([
    ['never while its runner lives', fresh, false],
    ['when its runner is gone', { ...fresh, runnerIsGone: true }, true],
    ['not as a running session, which outlives its runner', { ...fresh, kind: 'session', runnerIsGone: true }, false],
    ['as a session that has ended', { kind: 'session', running: false, runnerIsGone: true, ageMs: 0 }, true],
    ['when it ended long ago on another machine', { ...fresh, running: false, ageMs: 7_200_000 }, true],
  ])('%s', (_when, candidate, gone) => {
    expect(mayGo(candidate)).toBe(gone)
  })
})
