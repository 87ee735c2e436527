import { describe, expect, test } from 'vitest'
import { environmentLayers } from '../../src/policy/environment.ts'
import { KEY_ROWS } from '../../src/policy/key-table.ts'
import { EXPLAINED_OPTIONS } from '../../src/policy/option-help.ts'
import { flagLayer, type GivenOptions } from '../../src/policy/option-layer.ts'
import { OPTIONS } from '../../src/policy/options.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { checkLayer } from '../../src/policy/validate-layer.ts'
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
    ['ro', 'a:b', { mode: 'ro', hostPath: '/cwd/a:b' }],
    ['ro', '/a:b:/c', { mode: 'ro', hostPath: '/a:b', target: '/c' }],
    ['ro', 'a:optional,x', { mode: 'ro', hostPath: '/cwd/a:optional,x', optional: false }],
    ['zone', 'data=a=b', { name: 'data', mode: 'ro', hostPath: '/cwd/a=b' }],
    ['ro', '/a:/b:ro', { mode: 'ro', hostPath: '/a', target: '/b' }],
    ['zone', 'data=./d', { name: 'data', mode: 'ro', hostPath: '/cwd/d', target: '/data' }],
    ['zone', 'data=/d:/e:rw', { name: 'data', mode: 'rw', hostPath: '/d', target: '/e' }],
    ['ro', 'a:optional', { mode: 'ro', hostPath: '/cwd/a', optional: true, create: false }],
    ['rw', '/a:/b:create,secret', { mode: 'rw', hostPath: '/a', target: '/b', create: true, secret: true }],
    ['cow', 'a:cow,sockets', { mode: 'cow', hostPath: '/cwd/a', sockets: true }],
    ['zone', 'data=./d:rw,create', { name: 'data', mode: 'rw', hostPath: '/cwd/d', create: true }],
    ['ro', 'a:optional:/b', { mode: 'ro', hostPath: '/cwd/a:optional', target: '/b', optional: false }],
    ['tmpfs', '/t', { mode: 'tmpfs', target: '/t', size: 50 * MIB }],
    ['tmpfs', '/t:5m', { mode: 'tmpfs', target: '/t', size: 5 * MIB }],
  ])('--%s %s', (name, text, zone) => {
    expect(policyOf({ [name]: [text] }).zones).toMatchObject([zone])
  })

  test.each<[string, string, string]>([
    ['ro', '', '--ro: expected SRC[:TARGET], got "" (string).'],
    ['ro', ':/x', '--ro: expected SRC[:TARGET], got ":/x" (string).'],
    ['ro', ':optional', '--ro: expected SRC[:TARGET], got ":optional" (string).'],
    ['zone', '=/a', '--zone: expected NAME=SRC[:TARGET][:MODE], got "=/a" (string).'],
    [
      'ro',
      '/a:/b:craete',
      '--ro: expected ro, cow, rw, create, optional, sockets or secret behind the target, got "craete". Did you mean "create"?',
    ],
    [
      'zone',
      'n=/a:/b:z',
      '--zone: expected ro, cow, rw, create, optional, sockets or secret behind the target, got "z".',
    ],
    ['ro', '/a:/b:rw', '--ro: expected a zone that is ro, got "/a:/b:rw". Did you mean --rw?'],
    [
      'rw',
      '/a:/b/../c',
      '--rw: expected an absolute path inside the sandbox, without "..", "." or "//", got "/b/../c" (string).',
    ],
    ['zone', 'data=/a:ro,rw', '--zone: expected one mode, got ro and rw.'],
    ['zone', '/a', '--zone: expected NAME=SRC[:TARGET][:MODE], got "/a" (string).'],
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
    ...{
      memory: '1g',
      cpus: '1.5',
      timeout: 'none',
      'cpu-time': '5s',
      tmp: '8m',
      backend: 'bwrap',
      seccomp: './f.json',
    },
    ...{
      net: 'restricted',
      'allow-host': ['a.example', 'b.example:443,c.example'],
      require: ['net-none,pids-limit', 'tty'],
    },
    ...{ env: ['LANG', 'A=1=2', 'EMPTY='], tty: true, profile: 'not policy', json: true },
  })
  expect(policy).toMatchObject({
    resources: { memory: 1024 * MIB, cpus: 1.5, timeout: null, cpuTime: 5_000, tmp: 8 * MIB },
    network: { mode: 'restricted', allow: ['a.example', 'b.example:443', 'c.example'] },
    env: { inherit: ['LANG'], set: { A: '1=2', EMPTY: '' } },
    ...{ tty: true, backend: 'namespace', engine: 'bwrap', seccomp: { file: '/cwd/f.json' } },
    require: ['net-none', 'pids-limit', 'tty'],
  })
  const origin = { layer: 'flag', source: '--memory', key: 'resources.memory' }
  expect(policy.origins['resources.memory']?.at(-1)).toEqual(origin)
})

test.each<[GivenOptions, string]>([
  [{ memory: '512' }, '--memory: expected a size'],
  [
    { net: 'none', 'allow-host': ['a'] },
    'expected mode restricted together with a list of allowed hosts or ports, got mode none.',
  ],
  [{ env: ['=x'] }, '--env: expected NAME[=VALUE], got no name.'],
])('%j is refused with the name of the flag', (given, problem) => {
  expect(problemsOf([flagLayer(given, '/cwd')])).toEqual([expect.stringContaining(problem)])
})

/** A value of each flag, and more than one where a flag sets several keys. */
const EXAMPLES =
  `require net-none, best-effort true, cache npm, cache mine:shared, backend namespace, engine unshare, image i, runtime node,
  docker-reuse session, seccomp strict, pool off, ro /a:/b:optional+sockets+secret, rw /c:create, cow /d, zone n=/e, socket /f,
  tmpfs /g:1m, no-workspace true, explain true, same-path true, repository true, cow-keep 1d, cow-size 1g, cow-upper memory, hide .env*, protect a/b,
  protect-not .git, net restricted, allow-host a.example, deny-host b.example, allow-local 80, publish 81,
  add-host c.example=192.0.2.7, proxy on, add-header d.example/Authorization=Bearer {env:TOKEN}, allow-request GET e.example/*,
  allow-later true, ask-hosts true, terminate-tls true, after-secrets allow, memory 1g, swap 1m, cpus 1, pids 9, timeout 1s, cpu-time 1s, read-bps 1m,
  write-bps 1m, read-iops 9, write-iops 9, rw-size 1m, device /dev/kvm, gpu true, output 1m, tmp 1m, run 1m, shm 1m, home 1m, home ./h, home agent,
  cgroup-parent /sys/fs/cgroup/x, env A, env B=1, workdir /w, tty true, ssh-agent true, git-identity true, die-with-parent true,
  credential ~/.netrc:~/.netrc:optional, toolchains off, self-inside true`
    .split(/,\s+/)
    .map((words): readonly [flag: string, text: string] => {
      const flag = words.split(' ')[0] ?? ''
      return [flag, words.slice(flag.length + 1).replaceAll('+', ',')]
    })

/** Keys that no flag sets, each for a reason. */
const WITHOUT_FLAG: Readonly<Record<string, string>> = {
  extends: 'about a profile file; --profile chooses one',
  description: 'about a profile file',
}

describe('every key of a profile has a flag', () => {
  test('each flag has a value that is understood', () => {
    const flags = OPTIONS.filter(({ sets }) => sets !== undefined).map(({ name }) => name)
    expect(flags.filter((name) => !EXAMPLES.some(([flag]) => flag === name))).toEqual([])
    expect(EXAMPLES.flatMap(([flag, text]) => checkLayer(flagLayer({ [flag]: [text] }, '/cwd')).problems)).toEqual([])
  })

  /** As the manual calls them; entries of a mapping of names are not keys. */
  const keysIn = (value: unknown, path = ''): readonly string[] => {
    if (Array.isArray(value)) return [path, ...value.flatMap((one) => keysIn(one, `${path}[]`))]
    if (typeof value !== 'object' || value === null || path === 'env.set' || path === 'network.hosts') return [path]
    return [
      path,
      ...Object.entries(value).flatMap(([name, inner]) => keysIn(inner, path === '' ? name : `${path}.${name}`)),
    ]
  }

  test('and each key but those that are about a file is set by one', () => {
    const set = new Set(EXAMPLES.flatMap(([flag, text]) => keysIn(flagLayer({ [flag]: [text] }, '/cwd').values)))
    const unset = KEY_ROWS.map(({ key }) => key).filter((key) => !set.has(key))
    expect(unset.sort()).toEqual(Object.keys(WITHOUT_FLAG).sort())
  })
})

describe('--home', () => {
  test('is a size where it begins with a digit', () => {
    expect(policyOf({ home: '5m' }).resources.home).toBe(5 * MIB)
    expect(problemsOf([flagLayer({ home: '5x' }, '/cwd')])).toEqual([
      expect.stringContaining('--home: expected a size'),
    ])
  })
  test('is the name of one that is kept where it begins with a letter, and none with a size', () => {
    expect(policyOf({ home: 'agent-1.x_y' })).toMatchObject({ home: 'agent-1.x_y', zones: [] })
    expect([policyOf({ home: '5m' }).home, policyOf({ home: 'none' }).home]).toEqual([null, null])
    expect(problemsOf([flagLayer({ home: 'agent:create' }, '/cwd')])).toEqual([
      expect.stringContaining('(a directory has a slash: ./home)'),
    ])
  })
  test.each<[string, Partial<Zone>]>([
    ['./h', { hostPath: '/cwd/h', mode: 'rw' }],
    ['./5m', { hostPath: '/cwd/5m', mode: 'rw' }],
    ['~/h:cow,create', { hostPath: '/home/ann/h', mode: 'cow', create: true }],
  ])('%s is a directory that is shown there', (text, zone) => {
    expect(policyOf({ home: text }).zones).toMatchObject([{ target: '/home/sandbox', ...zone }])
  })
  test('has one place', () => {
    expect(problemsOf([flagLayer({ home: './h:/x' }, '/cwd')])).toEqual([
      '--home: expected NAME|SIZE|DIR[:MODE], got "./h:/x" (string).',
    ])
  })
})

describe('--add-header', () => {
  test.each([
    ['a.example/X-Key={env:KEY}', { host: 'a.example', header: 'X-Key', from: 'env:KEY' }],
    [
      'a.example:8443/A=Bearer {file:/t}.',
      { host: 'a.example:8443', header: 'A', from: 'file:/t', format: 'Bearer {}.' },
    ],
  ])('%s', (text, credential) => {
    expect(policyOf({ net: 'restricted', 'terminate-tls': true, 'add-header': [text] }).network.credentials).toEqual([
      credential,
    ])
  })
  test.each(['a.example/A=hunter2', 'a.example=hunter2', 'a.example/A={hunter2}', 'a/A={env:B}hunter2{env:C}'])(
    '%s is refused, and what may be a secret is not repeated',
    (text) => {
      const problems = problemsOf([flagLayer({ 'add-header': [text] }, '/cwd')])
      expect(problems).toEqual([expect.stringMatching(/^--add-header: expected HOST\/HEADER=TEXT with one/)])
      expect(problems.join()).not.toContain('hunter2')
    },
  )
})

test.each<[string, object]>([
  ['~/.netrc', { file: '/home/ann/.netrc', target: '/home/sandbox/.netrc' }],
  ['/etc/key:/run/key', { file: '/etc/key', target: '/run/key' }],
  ['/etc/key:/run/key:optional', { file: '/etc/key', target: '/run/key', optional: true }],
  ['./a:b:~/.key', { file: '/cwd/a:b', target: '/home/sandbox/.key' }],
])('--credential %s', (text, credential) => {
  expect(policyOf({ credential: [text] }).credentials).toMatchObject([credential])
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
    const all = { ...docker, ...twin }
    const memory = [policyIn({}), policyIn(docker), policyIn(all), policyIn(all, { memory: '512m' })]
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
    const request = {
      LLM_DO_EXEC_PROFILE: 'ci',
      LLM_DO_EXEC_JSON: '1',
      LLM_DO_EXEC_PLAN: 'no',
      LLM_DO_EXEC_AUDIT: '/log',
    }
    const env = { ...request, LLM_DO_EXEC_MEMORY: '1g', PATH: '/bin' }
    expect(environmentLayers(env, '/cwd').request).toEqual({ profile: 'ci', json: true, audit: '/log' })
    expect(environmentLayers({ LLM_DO_EXEC_JSON: 'shell' }, '/cwd').request).toEqual({ json: 'shell' })
  })

  test.each<[Readonly<Record<string, string>>, string]>([
    [
      { LLM_DO_EXEC_MEMROY: '1g' },
      '"LLM_DO_EXEC_MEMROY": expected the variable of an option, got an unknown one. Did you mean "LLM_DO_EXEC_MEMORY"?',
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
