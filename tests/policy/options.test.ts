import { describe, expect, test } from 'vitest'
import { environmentLayers } from '../../src/policy/environment.ts'
import { EXPLAINED_OPTIONS } from '../../src/policy/option-help.ts'
import { flagLayer, type GivenOptions } from '../../src/policy/option-layer.ts'
import { OPTIONS } from '../../src/policy/options.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { Zone } from '../../src/policy/values.ts'
import { OPTIONS as MERGE, mergeLayers, problemsOf, saying } from './layers.ts'

const MIB = 1024 ** 2
const policyOf = (given: GivenOptions): Policy => mergeLayers([flagLayer(given, '/cwd')], MERGE)

test('every option has a name of its own, one line of help and a twin of its own', () => {
  expect(new Set(OPTIONS.map(({ name }) => name)).size).toBe(OPTIONS.length)
  expect(new Set(OPTIONS.map(({ environment }) => environment)).size).toBe(OPTIONS.length)
  expect(
    EXPLAINED_OPTIONS.filter(
      ({ help, environment }) => !/^\S.*\.$/.test(help) || !/^LLM_DO_EXEC_[A-Z_]+$/.test(environment),
    ),
  ).toEqual([])
})

describe('a zone flag', () => {
  test.each<[string, string, Partial<Zone>]>([
    ['ro', './data', { mode: 'ro', hostPath: '/cwd/data' }],
    ['rw', '/a:/b', { mode: 'rw', hostPath: '/a', target: '/b' }],
    ['ro', '/a:b:/c', { mode: 'ro', hostPath: '/a:b', target: '/c' }],
    ['ro', 'a:b', { mode: 'ro', hostPath: '/cwd/a:b' }],
    ['ro', '/a:/b:ro', { mode: 'ro', hostPath: '/a', target: '/b' }],
    ['rw', '~/x', { mode: 'rw', hostPath: '/home/ann/x' }],
    ['zone', 'data=./d', { name: 'data', mode: 'ro', hostPath: '/cwd/d', target: '/data' }],
    ['zone', 'data=./d:rw', { name: 'data', mode: 'rw', hostPath: '/cwd/d', target: '/data' }],
    ['zone', 'data=/d:/e:rw', { name: 'data', mode: 'rw', hostPath: '/d', target: '/e' }],
    ['zone', 'data=a=b', { name: 'data', mode: 'ro', hostPath: '/cwd/a=b' }],
    ['tmpfs', '/t', { mode: 'tmpfs', target: '/t', size: 50 * MIB }],
    ['tmpfs', '/t:5m', { mode: 'tmpfs', target: '/t', size: 5 * MIB }],
  ])('--%s %s', (name, text, zone) => {
    expect(policyOf({ [name]: [text] }).zones).toMatchObject([zone])
  })

  test.each<[string, string, string]>([
    ['ro', '', '--ro: expected SRC[:TARGET], got "" (string).'],
    ['ro', ':/x', '--ro: expected SRC[:TARGET], got ":/x" (string).'],
    ['ro', '/a:/b:rw', '--ro: expected a zone that is ro, got "/a:/b:rw". Did you mean --rw?'],
    [
      'rw',
      '/a:/b/../c',
      '--rw: expected an absolute path inside the sandbox, without "..", "." or "//", got "/b/../c" (string).',
    ],
    ['zone', '/a', '--zone: expected NAME=SRC[:TARGET][:MODE], got "/a" (string).'],
    ['zone', '=/a', '--zone: expected NAME=SRC[:TARGET][:MODE], got "=/a" (string).'],
    [
      'zone',
      'dаta=/a',
      '--zone: expected a zone name of 1 to 64 ASCII letters, digits, "-", "_" or ".", got "dаta" (string).',
    ],
    ['tmpfs', 't', '--tmpfs: expected TARGET[:SIZE] with an absolute TARGET, got "t" (string).'],
    ['tmpfs', '/t:5', '--tmpfs: expected a size such as 512m, 2G or 512MiB, got "5" (string).'],
  ])('--%s %j is refused', (name, text, problem) => {
    expect(problemsOf([flagLayer({ [name]: [text] }, '/cwd')])).toEqual([problem])
  })

  test('two flags on one target are refused', () => {
    expect(problemsOf([flagLayer({ ro: ['/a:/x'], rw: ['/b:/x'] }, '/cwd')])).toEqual([
      expect.stringMatching(/^--rw: expected a target of its own, got "\/x"/),
    ])
  })
})

test('flags say what a profile could say', () => {
  const policy = policyOf({
    memory: '1g',
    cpus: '1.5',
    pids: '40',
    timeout: 'none',
    'cpu-time': '5s',
    output: '2m',
    tmp: '8m',
    net: 'restricted',
    'allow-host': ['a.example', 'b.example:443,c.example'],
    env: ['LANG', 'A=1=2', 'EMPTY='],
    workdir: '/w',
    tty: true,
    'same-path': true,
    'best-effort': true,
    'ssh-agent': true,
    backend: 'bwrap',
    seccomp: './f.json',
    require: ['net-none,memory-limit', 'tty'],
    pool: 'off',
    'cgroup-parent': '/sys/fs/cgroup/x',
    image: 'i',
    runtime: 'node',
    profile: 'not policy',
    json: true,
  })
  expect(policy).toMatchObject({
    resources: {
      memory: 1024 * MIB,
      cpus: 1.5,
      pids: 40,
      timeout: null,
      cpuTime: 5_000,
      output: 2 * MIB,
      tmp: 8 * MIB,
    },
    network: { mode: 'restricted', allow: ['a.example', 'b.example:443', 'c.example'] },
    env: { inherit: ['LANG'], set: { A: '1=2', EMPTY: '' } },
    workdir: '/w',
    tty: true,
    samePath: true,
    bestEffort: true,
    sshAgent: true,
    backend: 'namespace',
    engine: 'bwrap',
    seccomp: { file: '/cwd/f.json' },
    require: ['net-none', 'memory-limit', 'tty'],
    pool: 'off',
    cgroupParent: '/sys/fs/cgroup/x',
    image: 'i',
    runtime: 'node',
  })
  expect(policy.origins['resources.memory']?.at(-1)).toEqual({
    layer: 'flag',
    source: '--memory',
    key: 'resources.memory',
  })
})

test.each<[GivenOptions, string]>([
  [{ memory: '512' }, '--memory: expected a size'],
  [{ timeout: '30' }, '--timeout: expected a time'],
  [{ net: 'yes' }, '--net: expected none, restricted, record or host (yes could mean'],
  [
    { net: 'none', 'allow-host': ['a'] },
    'expected mode restricted together with a list of allowed hosts or ports, got mode none.',
  ],
  [{ env: ['=x'] }, '--env: expected NAME[=VALUE], got no name.'],
  [{ require: ['memory-limt'] }, '--require: expected'],
  [{ 'cgroup-parent': 'x' }, '--cgroup-parent: expected an absolute path'],
])('%j is refused with the name of the flag', (given, problem) => {
  expect(problemsOf([flagLayer(given, '/cwd')])).toEqual([expect.stringContaining(problem)])
})

test('a secret given by --env is in no message and no origin', () => {
  const layer = flagLayer({ env: ['TOKEN=hunter2', 'BAD NAME=hunter2'] }, '/cwd')
  expect(problemsOf([layer]).join()).not.toContain('hunter2')
  const { env, ...rest } = policyOf({ env: ['TOKEN=hunter2'] })
  expect(env.set).toEqual({ TOKEN: 'hunter2' })
  expect(JSON.stringify(rest)).not.toContain('hunter2')
})

describe('the environment', () => {
  const policyIn = (env: Readonly<Record<string, string>>, given: GivenOptions = {}): Policy =>
    mergeLayers(
      [
        ...environmentLayers(env, '/cwd').layers,
        flagLayer(given, '/cwd'),
        saying({ resources: { memory: '64m', pids: 11 } }),
      ],
      MERGE,
    )

  test('is read option by option: flag > LLM_DO_EXEC_* > DOCKER_* > profile', () => {
    const docker = { DOCKER_MEMORY_LIMIT: '128m' }
    const twin = { LLM_DO_EXEC_MEMORY: '256m' }
    const memory = [
      policyIn({}),
      policyIn(docker),
      policyIn({ ...docker, ...twin }),
      policyIn({ ...docker, ...twin }, { memory: '512m' }),
    ]
    expect(memory.map(({ resources }) => (resources.memory ?? 0) / MIB)).toEqual([64, 128, 256, 512])
  })

  test('values of what repeats are separated by newlines', () => {
    const policy = policyIn({
      LLM_DO_EXEC_RO: '/a:/b\n./c\n',
      LLM_DO_EXEC_ENV: 'A=1\nB',
      LLM_DO_EXEC_ALLOW_HOST: 'x.example,y.example',
    })
    expect(policy.zones.map(({ hostPath }) => hostPath)).toEqual(['/a', '/cwd/c'])
    expect([policy.env, policy.network.allow]).toEqual([
      { inherit: ['B'], set: { A: '1' } },
      ['x.example', 'y.example'],
    ])
  })

  test.each<[string, boolean]>([
    ['1', true],
    ['true', true],
    ['on', true],
    ['0', false],
    ['No', false],
    ['', false],
  ])('a switch that is %j is %j', (text, wanted) => {
    expect(policyIn({ LLM_DO_EXEC_TTY: text }).tty).toBe(wanted)
  })

  test("Docker's variables are milliseconds, bytes and cores", () => {
    const { resources } = policyIn({
      DOCKER_TIMEOUT: '5000',
      DOCKER_MEMORY_LIMIT: '134217728',
      DOCKER_CPU_LIMIT: '1.5',
    })
    expect(resources).toMatchObject({ timeout: 5_000, memory: 128 * MIB, cpus: 1.5 })
  })

  test.each<[Readonly<Record<string, string>>, boolean]>([
    [{}, false],
    [{ ENABLE_DOCKER: 'false' }, true],
    [{ ENABLE_DOCKER: '0' }, true],
    [{ ENABLE_DOCKER: 'true' }, false],
  ])('%j takes docker out of the choice: %j', (env, withoutDocker) => {
    expect(environmentLayers(env, '/cwd').withoutDocker).toBe(withoutDocker)
  })

  test('options that are not policy are handed on', () => {
    const env = {
      LLM_DO_EXEC_PROFILE: 'ci',
      LLM_DO_EXEC_JSON: '1',
      LLM_DO_EXEC_PLAN: 'no',
      LLM_DO_EXEC_AUDIT: '/log',
      LLM_DO_EXEC_MEMORY: '1g',
      PATH: '/bin',
    }
    expect(environmentLayers(env, '/cwd').request).toEqual({ profile: 'ci', json: true, audit: '/log' })
    expect(environmentLayers({ LLM_DO_EXEC_JSON: 'shell' }, '/cwd').request).toEqual({ json: 'shell' })
  })

  test.each<[Readonly<Record<string, string>>, string]>([
    [
      { LLM_DO_EXEC_MEMROY: '1g' },
      '"LLM_DO_EXEC_MEMROY": expected the twin of an option, got an unknown variable. Did you mean "LLM_DO_EXEC_MEMORY"?',
    ],
    [{ LLM_DO_EXEC_MEMORY: '1' }, 'LLM_DO_EXEC_MEMORY: expected a size'],
    [
      { LLM_DO_EXEC_TTY: 'maybe' },
      'LLM_DO_EXEC_TTY: expected 1, true, yes or on, or 0, false, no or off, got "maybe" (string).',
    ],
    [{ LLM_DO_EXEC_JSON: 'xml' }, 'LLM_DO_EXEC_JSON: expected native, shell or task, got "xml" (string).'],
    [{ LLM_DO_EXEC_APPROVAL: 'maybe' }, 'LLM_DO_EXEC_APPROVAL: expected prompt, approve_all or reject_all'],
    [{ DOCKER_TIMEOUT: '30s' }, 'DOCKER_TIMEOUT: expected whole milliseconds such as 30000, got "30s" (string).'],
    [{ DOCKER_TIMEOUT: '0' }, 'DOCKER_TIMEOUT: expected a time from 1ms to 24d'],
    [{ DOCKER_MEMORY_LIMIT: 'lots' }, 'DOCKER_MEMORY_LIMIT: expected a size'],
    [{ DOCKER_CPU_LIMIT: '0' }, 'DOCKER_CPU_LIMIT: expected a number of cores'],
    [{ ENABLE_DOCKER: 'maybe' }, 'ENABLE_DOCKER: expected 1, true, yes or on'],
  ])('%j is refused with the name of the variable', (env, problem) => {
    expect(problemsOf(environmentLayers(env, '/cwd').layers)).toEqual([expect.stringContaining(problem)])
  })
})
