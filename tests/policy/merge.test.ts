import { describe, expect, test } from 'vitest'
import { LAYER_ORDER } from '../../src/policy/layer.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { merged, mergeLayers, OPTIONS, problemsOf, saying } from './layers.ts'

const MIB = 1024 ** 2

test('without any layer the built-in defaults hold', () => {
  expect(mergeLayers([], OPTIONS)).toMatchObject({
    ...{ backend: 'auto', engine: 'auto', workspace: 'ro', seccomp: 'default', toolchains: 'auto', pool: 'auto' },
    network: { mode: 'none', allow: [], deny: [] },
    resources: {
      ...{ memory: 512 * MIB, swap: 0, cpus: 2, pids: 256, timeout: 30_000, cpuTime: null, output: MIB },
      ...{ readBps: null, writeBps: null, readIops: null, writeIops: null, rwSize: null },
      ...{ tmp: 50 * MIB, run: 10 * MIB, shm: 64 * MIB, home: 50 * MIB },
    },
    ...{ caches: [], protect: [], protectNot: [], zones: [], require: [], env: { inherit: [], set: {} } },
    ...{ bestEffort: false, tty: false, sshAgent: false },
  })
})

describe('a word replaces the one below it', () => {
  const cases: readonly (readonly [unknown, unknown, (policy: Policy) => unknown, unknown])[] = [
    [{ resources: { memory: '1g' } }, { resources: { memory: '2g' } }, (p) => p.resources.memory, 2048 * MIB],
    [{ resources: { memory: '1g' } }, { resources: { memory: 'none' } }, (p) => p.resources.memory, null],
    [{ resources: { memory: '1g' } }, { resources: { pids: 9 } }, (p) => p.resources.memory, 1024 * MIB],
    [{ resources: { cpus: 'all' } }, {}, (p) => p.resources.cpus, null],
    [{ resources: { timeout: '5m' } }, { resources: { timeout: '500ms' } }, (p) => p.resources.timeout, 500],
    [{ backend: 'bwrap' }, {}, (p) => [p.backend, p.engine], ['namespace', 'bwrap']],
    [{ backend: 'bubblewrap' }, {}, (p) => [p.backend, p.engine], ['namespace', 'bwrap']],
    [{ backend: 'unshare' }, {}, (p) => [p.backend, p.engine], ['namespace', 'unshare']],
    [{ backend: 'unshare' }, { backend: 'docker' }, (p) => p.backend, 'docker'],
    [{ workspace: 'rw' }, { workspace: 'none' }, (p) => p.workspace, 'none'],
    [{ seccomp: 'strict' }, { seccomp: './f.json' }, (p) => p.seccomp, { file: '/project/f.json' }],
    [{ tty: true }, { tty: false }, (p) => p.tty, false],
    [{ docker: { reuse: 'session' } }, {}, (p) => p.docker.reuse, 'session'],
    [{ workdir: '/a' }, { workdir: '/b/' }, (p) => p.workdir, '/b'],
    [{ image: 'a' }, { image: 'b:1' }, (p) => p.image, 'b:1'],
  ]
  test.each(cases)('%j, then %j', (below, above, select, wanted) => {
    expect(select(merged(below, above))).toEqual(wanted)
  })
})

describe('the network', () => {
  test.each<[unknown, string]>([
    ...['none', 'no', 'off', false].map((network): [unknown, string] => [network, 'none']),
    ['restricted', 'restricted'],
    ['host', 'host'],
    [true, 'host'],
    [{ mode: 'host' }, 'host'],
    [{ allow: ['a'] }, 'restricted'],
    [{ allow: [] }, 'restricted'],
    [{ deny: ['a'] }, 'none'],
  ])('%j means %s', (network, mode) => {
    expect(merged({ network }).network.mode).toBe(mode)
  })

  test.each(['on', 'yes'])('%s is ambiguous', (network) => {
    expect(problemsOf([saying({ network })])).toEqual([
      `a.yaml: network: expected none, restricted, record or host (${network} could mean any but the first), got "${network}" (string).`,
    ])
  })

  test('naming a host means restricted, whatever was said below', () => {
    expect(merged({ network: 'host' }, { network: { allow: ['a.example'] } }).network).toEqual({
      mode: 'restricted',
      allow: ['a.example'],
      deny: [],
    })
  })

  test('what anybody denies is not allowed, in either order', () => {
    const deny = { network: { deny: ['Bad.example'] } }
    const allow = { network: { allow: ['good.example', 'bad.example.'] } }
    const wanted = { mode: 'restricted', allow: ['good.example'], deny: ['bad.example'] }
    expect([merged(deny, allow).network, merged(allow, deny).network]).toEqual([wanted, wanted])
  })

  test('a list of denied hosts is not given up for an open network', () => {
    expect(problemsOf([saying({ network: { deny: ['a'] } }), saying({ network: 'host' }, 'flag', '--net')])).toEqual([
      '--net: expected restricted, because hosts are denied (a), got host.',
    ])
  })

  test.each(['none', 'host'])('%s and a list of hosts in one layer contradict each other', (mode) => {
    expect(problemsOf([saying({ network: { mode, allow: ['a'] } })])).toHaveLength(1)
  })
})

describe('zones', () => {
  test('are read-only, at /NAME, relative to the file that says them', () => {
    const closed = { create: false, optional: false, sockets: false }
    expect(merged({ zones: [{ name: 'data', hostPath: './d' }] }).zones).toMatchObject([
      { name: 'data', mode: 'ro', hostPath: '/project/d', target: '/data', ...closed },
    ])
  })

  test('of one name are laid over each other field by field', () => {
    const [below, above] = [
      { hostPath: './d', create: true },
      { mode: 'rw', target: '/x' },
    ].map((zone) => ({ name: 'data', ...zone }))
    const { zones } = merged({ zones: [below] }, { zones: [above] })
    expect(zones).toMatchObject([{ name: 'data', mode: 'rw', hostPath: '/project/d', target: '/x', create: true }])
  })

  test.each<[unknown, unknown, unknown]>([
    [{ mode: 'tmpfs', size: '5m' }, { hostPath: '/h' }, { mode: 'ro', hostPath: '/h' }],
    [{ hostPath: '/h', create: true }, { mode: 'tmpfs' }, { mode: 'tmpfs', size: 50 * MIB, create: false }],
    [{ mode: 'tmpfs' }, { size: '5m' }, { mode: 'tmpfs', size: 5 * MIB }],
  ])('%j under %j starts anew where the kind changes', (below, above, wanted) => {
    const named = (zone: unknown) => ({ zones: [{ name: 'a', ...(zone as object) }] })
    const [zone] = merged(named(below), named(above)).zones
    expect(zone).toMatchObject(wanted as object)
    expect(zone?.hostPath === undefined).toBe(zone?.mode === 'tmpfs')
  })

  test('without a name are all kept, and have no target unless they say one', () => {
    const zone = { hostPath: '/h' }
    const zones = merged({ zones: [zone, zone] }, { zones: [zone] }).zones
    expect(new Set(zones.map(({ name }) => name)).size).toBe(3)
    expect(zones.map(({ target }) => target)).toEqual([undefined, undefined, undefined])
  })

  test('keep the order in which they were first named', () => {
    const zones = ['c', 'a', 'b'].map((name) => ({ name, hostPath: '/h' }))
    const names = merged({ zones }, { zones: [{ name: 'a', mode: 'rw' }] }).zones.map(({ name }) => name)
    expect(names).toEqual(['c', 'a', 'b'])
  })

  test.each<[string, string]>([
    ['~/d', '/home/ann/d'],
    ['~', '/home/ann'],
    ['../d', '/d'],
    ['/x/../y', '/y'],
    ['a:b', '/project/a:b'],
  ])('%s is %s on the host', (hostPath, wanted) => {
    expect(merged({ zones: [{ name: 'a', hostPath }] }).zones[0]?.hostPath).toBe(wanted)
  })
})

describe('lists add up', () => {
  test('and nothing is there twice', () => {
    const below = { require: ['net-none'], env: { inherit: ['A'] } }
    const above = { require: ['memory-limit', 'net-none'], env: { inherit: ['B', 'A'] } }
    expect(merged(below, above)).toMatchObject({ require: ['net-none', 'memory-limit'], env: { inherit: ['A', 'B'] } })
  })

  test('patterns of hidden files add up, and none takes away those of lower layers', () => {
    expect(merged({ hide: ['.env*'] }, { hide: ['./keys/'] }).hide).toEqual(['.env*', 'keys/'])
    expect(merged({ hide: ['.env*'] }, { hide: ['none'] }).hide).toEqual([])
    expect(merged({ hide: ['.env*'] }, { hide: ['none', 'keys/'] }, { hide: ['x'] }).hide).toEqual(['keys/', 'x'])
  })

  test('protected paths, and names that are opened', () => {
    const policy = merged({ protect: ['a'], protectNot: ['.vscode/'] }, { protect: ['b'], protectNot: ['.git/config'] })
    expect(policy).toMatchObject({ protect: ['a', 'b'], protectNot: ['.vscode', '.git/config'] })
  })

  test('credentials by their target', () => {
    const policy = merged(
      { credentials: [{ file: '~/.netrc' }, { file: '/a', target: '/x' }] },
      { credentials: [{ file: '/b', target: '/x' }] },
    )
    expect(policy.credentials.map(({ file, target }) => [file, target])).toEqual([
      ['/home/ann/.netrc', '/home/sandbox/.netrc'],
      ['/b', '/x'],
    ])
  })
})

test.each<[unknown, unknown, unknown]>([
  [{ set: { A: '1' } }, { inherit: ['A'] }, { inherit: ['A'], set: {} }],
  [{ inherit: ['A'] }, { set: { A: '1' } }, { inherit: [], set: { A: '1' } }],
  [{ set: { A: '1', B: '2' } }, { set: { A: '3' } }, { inherit: [], set: { A: '3', B: '2' } }],
])('for one variable the last layer decides: %j, then %j', (below, above, wanted) => {
  expect(merged({ env: below }, { env: above }).env).toEqual(wanted)
})

describe('authority', () => {
  const layers = LAYER_ORDER.filter((layer) => layer !== 'built-in')
  const pids = (index: number) => ({ resources: { pids: 100 + index } })

  test.each(layers.map((layer, index) => [layer, index] as const))('%s is above all before it', (_layer, index) => {
    const speaking = layers.slice(0, index + 1).map((name, at) => saying(pids(at), name))
    expect(mergeLayers(speaking.toReversed(), OPTIONS).resources.pids).toBe(100 + index)
  })

  test('does not depend on the order in which layers of different rank are given', () => {
    const speaking = layers.map((layer, index) =>
      saying({ ...pids(index), zones: [{ name: `z${index}`, hostPath: '/h' }], protect: [`p${index}`] }, layer),
    )
    const shuffles = [speaking, speaking.toReversed(), [...speaking.slice(3), ...speaking.slice(0, 3)]]
    const [first, ...others] = shuffles.map((order) => JSON.stringify(mergeLayers(order, OPTIONS)))
    expect(others).toEqual([first, first])
  })

  test('merging twice gives the same bytes, and changes nothing that was given', () => {
    const layer = saying({ zones: [{ name: 'a', hostPath: 'x' }], env: { set: { A: '1' } } })
    const before = JSON.stringify(layer)
    expect(JSON.stringify(mergeLayers([layer], OPTIONS))).toBe(JSON.stringify(mergeLayers([layer], OPTIONS)))
    expect(JSON.stringify(layer)).toBe(before)
  })
})

test('origins name every layer that spoke, with the exact place', () => {
  const profile = {
    ...saying({ resources: { memory: '1g' }, zones: [{ name: 'a', hostPath: 'x' }] }),
    locations: { 'resources.memory': 'a.yaml:3', 'zones.0': 'a.yaml:5' },
  }
  const flag = {
    ...saying({ resources: { memory: '2g' } }, 'flag', 'command line'),
    locations: { 'resources.memory': '--memory' },
  }
  const { origins } = mergeLayers([profile, flag], OPTIONS)
  expect(origins['resources.memory']?.map(({ layer, source }) => [layer, source])).toEqual([
    ['built-in', 'built-in'],
    ['profile', 'a.yaml:3'],
    ['flag', '--memory'],
  ])
  expect(origins['zones.a']).toEqual([{ layer: 'profile', source: 'a.yaml:5', key: 'zones.0' }])
})

describe('what is wrong', () => {
  const A = { name: 'a', hostPath: '/h' }
  const zones = (...some: object[]) => ({ zones: some })
  test.each<[unknown, string]>([
    [{ memry: '1g' }, 'a.yaml: memry: expected one of extends, '],
    [{ memory: '1g' }, 'got the unknown key "memory". Did you mean "resources.memory"?'],
    [{ resources: { memry: 1 } }, 'got the unknown key "memry". Did you mean "memory"?'],
    [
      { resources: { memory: '512' } },
      'a.yaml: resources.memory: expected a size such as 512m, 2G or 512MiB, or none, got "512" (string).',
    ],
    [
      { resources: { memory: '4095k' } },
      'a.yaml: resources.memory: expected a size of at least 4m, such as 512m, or none, got "4095k" (string).',
    ],
    [{ resources: { memory: null } }, 'got nothing.'],
    [{ resources: { pids: 1.5 } }, 'got 1.5 (number).'],
    [{ resources: { timeout: 30 } }, 'a time such as 30s, 500ms or 5m, or none, got 30 (number).'],
    [{ resources: { timeout: '0s' } }, 'from 1ms to 24d'],
    [{ resources: { tmp: 0 } }, 'at least 4k'],
    [{ resources: { memory: 5_000_000.5 } }, 'a whole number of bytes'],
    [{ resources: { pids: 4_194_305 } }, 'from 3 to 4194304'],
    [{ resources: { cpus: 0.009 } }, 'a number of cores from 0.01 to 1024'],
    [{ resources: { writeBps: '1k' } }, 'a size of at least 4k, such as 20m, or none, got "1k" (string).'],
    [{ resources: { readIops: 0 } }, 'a number of operations from 1 to 4294967294, or none, got 0 (number).'],
    [{ resources: { writeIops: 2 ** 32 - 1 } }, 'from 1 to 4294967294'],
    [{ resources: 3 }, 'a.yaml: resources: expected a mapping, got 3 (number).'],
    [{ zones: {} }, 'a.yaml: zones: expected a list, got a mapping.'],
    [{ zones: [3] }, 'a.yaml: zones.0: expected a mapping, got 3 (number).'],
    [zones({ ...A, mode: 'wr' }), 'expected ro, cow, rw or tmpfs, got "wr" (string). Did you mean "rw"?'],
    [zones({ name: 'a' }), 'expected a hostPath'],
    [zones({ ...A, mode: 'tmpfs' }), 'expected no hostPath together with mode tmpfs, got "/h".'],
    [zones({ ...A, size: '5m' }), 'expected size only together with mode tmpfs, got mode ro.'],
    [zones({ mode: 'tmpfs' }), 'expected a name or a target together with mode tmpfs'],
    [zones(A, { ...A, name: 'b', target: '/a' }), 'expected a target of its own, got "/a", which zone "a" has.'],
    [zones(A, { ...A, hostPath: '/i' }), 'expected one zone of a name, got two named "a".'],
    [zones({ ...A, target: '/x/../etc' }), 'a.yaml: zones.0.target: expected an absolute path inside the sandbox'],
    [{ backend: 'dokcer' }, 'got "dokcer" (string). Did you mean "docker"?'],
    [{ backend: 'bwrap', engine: 'unshare' }, 'expected bwrap, which the backend names, got unshare.'],
    [{ env: { set: { CI: 1 } } }, 'a.yaml: env.set: expected text in quotes for CI, got a number.'],
    [{ env: { inherit: ['A'], set: { A: '' } } }, 'expected A either inherited or set, got both.'],
    [{ env: { inherit: 'A' } }, 'a.yaml: env.inherit: expected a list, got "A" (string).'],
    [{ require: ['memory-limt'] }, 'got "memory-limt" (string). Did you mean "memory-limit"?'],
    [{ credentials: [{ target: '/x' }] }, 'a.yaml: credentials.0.file: expected a path, got nothing.'],
    [{ credentials: [{ file: '/etc/x' }] }, 'expected a target for a file outside the home directory'],
    [{ protect: ['/etc'] }, 'a.yaml: protect.0: expected a path relative to the zone'],
    [
      { protect: [] },
      'a.yaml: protect: expected at least one path (protectNot opens built-in names), got an empty list.',
    ],
    [{ protectNot: ['.vscod'] }, 'a.yaml: protectNot.0: expected a name of the built-in list of protected names'],
    [{ protectNot: ['.git/confg'] }, 'got ".git/confg" (string). Did you mean ".git/config"?'],
    [{ tty: 'yes' }, 'a.yaml: tty: expected true, false or auto, got "yes" (string).'],
    [
      { network: { mode: 'none', alow: [] } },
      'a.yaml: network.alow: expected one of mode, allow, deny, local, publish, hosts, afterSecrets, terminate, credentials, requests, proxy, grants, got the unknown key "alow". Did you mean "allow"?',
    ],
    [JSON.parse('{"__proto__": {"tty": true}}'), 'got the unknown key "__proto__".'],
    [JSON.parse('{"constructor": 1}'), 'got the unknown key "constructor".'],
  ])('%j is told with place, key, expected and got', (values, wanted) => {
    const problems = problemsOf([saying(values)])
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(wanted)
  })

  test('all of it is told at once, of every layer', () => {
    const profile = { memry: 1, ...zones(A, { ...A, name: 'b', target: '/a' }) }
    const problems = problemsOf([
      saying(profile, 'profile', 'one.yaml'),
      saying({ resources: { pids: -1, cpus: 'lots' } }, 'workshop', 'two.yaml'),
      saying({ network: 'maybe' }, 'flag', '--net'),
    ])
    const files = problems.map((problem) => problem.split(':')[0])
    expect(files).toEqual(['one.yaml', 'two.yaml', 'two.yaml', '--net', 'one.yaml'])
  })

  test('one mistake is told once: what depends on it is not', () => {
    expect(
      problemsOf([saying({ zones: [{ name: 'a', hostPath: 3 }] }), saying({ zones: [{ name: 'a', mode: 'rw' }] })]),
    ).toHaveLength(1)
  })

  test('a secret is not repeated', () => {
    const problems = problemsOf([saying({ env: { set: { TOKEN: 'hunter2\0' } }, sshAgent: 1 })])
    expect(problems.join()).not.toContain('hunter2')
    expect(problems).toHaveLength(2)
  })

  test('~/ without a home directory is refused, not taken for /', () => {
    const layer = saying({ zones: [{ name: 'a', hostPath: '~/x' }] })
    expect(problemsOf([layer], { profile: 'x', home: '' })).toEqual([
      expect.stringContaining('no home directory is known'),
    ])
  })

  test('a file full of mistakes is told in a bounded message', () => {
    const values = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`key${index}`, 1]))
    expect(problemsOf([saying(values)]).length).toBeLessThan(30)
    expect(problemsOf([saying({ zones: Array.from({ length: 5_000 }, () => 3) })]).length).toBeLessThan(110)
    expect(problemsOf([saying({ protect: Array.from({ length: 5_000 }, (_, index) => `p${index}`) })])).toEqual([
      expect.stringContaining('at most 1000 elements'),
    ])
  })
})
