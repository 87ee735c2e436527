import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/error.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { Zone } from '../../src/policy/values.ts'
import { PLAIN_TREE, planIn, type Tree, type World, zone } from './world.ts'

const HOME = '/home/ann'
const CWD = `${HOME}/project`

function refusal(world: World): SandboxError {
  try {
    planIn(world)
  } catch (error) {
    if (error instanceof SandboxError) return error
    throw error
  }
  throw new Error('expected a refusal, got a plan')
}

/** Zones alone, without the workspace beside them. */
const inTree = (tree: Tree, ...zones: Zone[]): World => ({
  tree: { ...PLAIN_TREE, ...tree },
  policy: { zones, workspace: 'none' },
})
const summary = (world: World): string[] =>
  planIn(world).zones.map(({ mode, source, target }) => `${mode} ${source} ${target}`)

describe('A zone appears', () => {
  test.each<[title: string, zone: Zone, tree: Tree, expected: string]>([
    [
      'at its own path when it is outside the workspace',
      zone({ mode: 'ro', hostPath: '/srv/data' }),
      { '/srv/data': 'directory' },
      'ro /srv/data /srv/data',
    ],
    [
      'in the workspace when it is inside it',
      zone({ mode: 'rw', hostPath: `${CWD}/data` }),
      {},
      `rw ${CWD}/data /workspace/data`,
    ],
    [
      'as the workspace when it is the caller directory',
      zone({ mode: 'rw', hostPath: CWD }),
      {},
      `rw ${CWD} /workspace`,
    ],
    [
      'at the target it names',
      zone({ mode: 'ro', hostPath: '/srv/data', target: '/input' }),
      { '/srv/data': 'directory' },
      'ro /srv/data /input',
    ],
    [
      'without a slash at its end',
      zone({ mode: 'ro', hostPath: '/srv/data/', target: '/input/' }),
      { '/srv/data': 'directory' },
      'ro /srv/data /input',
    ],
    [
      'with dots resolved',
      zone({ mode: 'ro', hostPath: '/srv/x/../data', target: '/a/./../input' }),
      { '/srv/data': 'directory' },
      'ro /srv/data /input',
    ],
    [
      'canonical when its path is a link',
      zone({ mode: 'ro', hostPath: '/srv/link', target: '/input' }),
      { '/srv/link': '-> real', '/srv/real': 'directory' },
      'ro /srv/real /input',
    ],
    [
      'canonical when a parent is a link',
      zone({ mode: 'ro', hostPath: '/data/in', target: '/input' }),
      { '/data': '-> /srv', '/srv/in': 'directory' },
      'ro /srv/in /input',
    ],
    [
      'as a file',
      zone({ mode: 'ro', hostPath: `${CWD}/notes.txt`, target: '/notes' }),
      {},
      `ro ${CWD}/notes.txt /notes`,
    ],
    [
      'in place of a file of /etc',
      zone({ mode: 'ro', hostPath: `${CWD}/notes.txt`, target: '/etc/hosts' }),
      {},
      `ro ${CWD}/notes.txt /etc/hosts`,
    ],
    [
      'below /dev/shm of the host',
      zone({ mode: 'ro', hostPath: '/dev/shm/x', target: '/x' }),
      { '/dev/shm/x': 'directory' },
      'ro /dev/shm/x /x',
    ],
    [
      'under a name with a newline',
      zone({ mode: 'ro', hostPath: '/srv/a\nb', target: '/in\nput' }),
      { '/srv/a\nb': 'directory' },
      'ro /srv/a\nb /in\nput',
    ],
    [
      'under a name with commas and colons',
      zone({ mode: 'ro', hostPath: '/srv/a,b:c', target: '/a,b:c' }),
      { '/srv/a,b:c': 'directory' },
      'ro /srv/a,b:c /a,b:c',
    ],
    [
      'under a name in any script',
      zone({ mode: 'ro', hostPath: '/srv/données 数据', target: '/数据' }),
      { '/srv/données 数据': 'directory' },
      'ro /srv/données 数据 /数据',
    ],
    [
      'under a name of 255 bytes',
      zone({ mode: 'ro', hostPath: '/srv/data', target: `/${'n'.repeat(255)}` }),
      { '/srv/data': 'directory' },
      `ro /srv/data /${'n'.repeat(255)}`,
    ],
    [
      'under a name that begins with dashes',
      zone({ mode: 'ro', hostPath: '/srv/--bind', target: '/--bind' }),
      { '/srv/--bind': 'directory' },
      'ro /srv/--bind /--bind',
    ],
  ])('%s', (_title, one, tree, expected) => {
    expect(summary(inTree(tree, one))).toEqual([expected])
  })

  test('not at all when it is optional and missing', () => {
    expect(summary(inTree({}, zone({ mode: 'ro', hostPath: '/srv/none', optional: true })))).toEqual([])
  })

  test('as a directory still to be made when the policy says create', () => {
    const [made] = planIn(inTree({}, zone({ mode: 'rw', hostPath: `${CWD}/out`, create: true }))).zones
    expect(made).toMatchObject({
      source: `${CWD}/out`,
      target: '/workspace/out',
      kind: 'directory',
      create: true,
      dev: 0,
      ino: 0,
    })
  })
})

describe('A zone is refused', () => {
  const data = { '/srv/data': 'directory' }
  test.each<[title: string, zone: Zone, tree: Tree, reason: string]>([
    [
      'when its source is missing',
      zone({ mode: 'ro', hostPath: '/srv/none' }),
      {},
      '--ro: /srv/none: it does not exist',
    ],
    [
      'when its links go in a circle',
      zone({ mode: 'ro', hostPath: '/srv/a' }),
      { '/srv/a': '-> b', '/srv/b': '-> a' },
      'go round in a circle',
    ],
    [
      'when it is a link to nothing',
      zone({ mode: 'ro', hostPath: '/srv/a' }),
      { '/srv/a': '-> gone' },
      'a symbolic link to gone, which does not exist',
    ],
    [
      'when a link to nothing is to be created',
      zone({ mode: 'rw', hostPath: '/srv/a', create: true }),
      { '/srv/a': '-> gone' },
      'which does not exist',
    ],
    [
      'when it cannot be looked at',
      zone({ mode: 'ro', hostPath: '/srv/secret/x' }),
      { '/srv/secret': 'denied' },
      'permission denied',
    ],
    ['when it is a FIFO', zone({ mode: 'ro', hostPath: '/srv/f' }), { '/srv/f': 'fifo' }, 'FIFO'],
    ['when it is a device', zone({ mode: 'ro', hostPath: '/srv/d' }), { '/srv/d': 'device' }, 'device'],
    [
      'when it is a socket that was not allowed',
      zone({ mode: 'ro', hostPath: '/srv/s' }),
      { '/srv/s': 'socket' },
      'sockets: true',
    ],
    [
      'when a file stands where a directory is created',
      zone({ mode: 'rw', hostPath: '/srv/f', create: true }),
      { '/srv/f': 'file' },
      'expected a directory, got a file',
    ],
    [
      'when a file stands where a slash means a directory',
      zone({ mode: 'ro', hostPath: '/srv/f/', meansDirectory: true }),
      { '/srv/f': 'file' },
      'expected a directory, got a file',
    ],
    [
      'when it would be created below a file',
      zone({ mode: 'rw', hostPath: '/srv/f/sub', create: true }),
      { '/srv/f': 'file' },
      '/srv/f is no directory',
    ],
    ['when it names no host path', zone({ mode: 'rw', target: '/data' }), {}, 'names no host path'],
    [
      'when a tmpfs has a source',
      zone({ mode: 'tmpfs', hostPath: '/srv/data', target: '/t' }),
      data,
      'a tmpfs has no source',
    ],
    [
      'when its source is the root of the host',
      zone({ mode: 'ro', hostPath: '/', target: '/host' }),
      {},
      'is the whole host',
    ],
    [
      'when its source is a link to the root',
      zone({ mode: 'ro', hostPath: '/srv/a', target: '/host' }),
      { '/srv/a': '-> /' },
      'is the whole host',
    ],
    [
      'when its source is /proc',
      zone({ mode: 'ro', hostPath: '/proc/1', target: '/p' }),
      { '/proc/1': 'directory' },
      "host's processes",
    ],
    [
      'when its source is below /dev',
      zone({ mode: 'ro', hostPath: '/dev/dri', target: '/d' }),
      { '/dev/dri': 'directory' },
      "host's devices",
    ],
    [
      'when its path holds a NUL',
      zone({ mode: 'ro', hostPath: '/srv/a\0b', target: '/a' }),
      {},
      'expected an absolute host path, got /srv/a\\u{0}b',
    ],
    ...[
      '/',
      '/usr',
      '/usr/local/x',
      '/bin',
      '/bin/x',
      '/sbin',
      '/lib/x',
      '/lib64',
      '/etc',
      '/proc/x',
      '/sys',
      '/dev',
      '/dev/shm',
      '/boot/x',
      '/run',
      '/home',
      '/srv/../usr',
      '//usr',
    ].map((target): [string, Zone, Tree, string] => [
      `at ${target}`,
      zone({ mode: 'rw', hostPath: '/srv/data', target }),
      data,
      '--rw: target /',
    ]),
    [
      'inside a directory that is shown as the host has it',
      zone({ mode: 'ro', hostPath: '/srv/data', target: '/etc/ssl/certs/x' }),
      data,
      'is inside /etc/ssl/certs',
    ],
    [
      'at a name longer than Linux allows',
      zone({ mode: 'ro', hostPath: '/srv/data', target: `/${'é'.repeat(128)}` }),
      data,
      'longer than 255 bytes',
    ],
    [
      'at a path longer than Linux allows',
      zone({ mode: 'ro', hostPath: '/srv/data', target: '/long'.repeat(1000) }),
      data,
      'longer than 4095 bytes',
    ],
  ])('%s', (_title, one, tree, reason) => {
    const error = refusal(inTree(tree, one))
    expect(error.code).toBe('ZONE_INVALID')
    expect(error.problems.join('\n')).toContain(reason)
  })

  test('and every problem of a policy is told at once', () => {
    const error = refusal(
      inTree({}, zone({ mode: 'ro', hostPath: '/srv/a' }), zone({ mode: 'ro', hostPath: '/srv/b', target: '/usr' })),
    )
    expect(error.problems).toHaveLength(3)
    expect(error.message).toMatch(/\(and 2 more\)$/)
    expect(error.hint).not.toBe('')
  })

  test('in one line even when its path has control characters', () => {
    const error = refusal(inTree({}, zone({ mode: 'ro', hostPath: '/srv/a\nb\u001b[2J\u202e' })))
    expect(error.message).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })
})

describe('Two zones', () => {
  const tree = { '/srv/a': 'directory', '/srv/b': 'directory', '/srv/a/in': 'directory', '/srv/a/file': 'file' }
  const a = (mode: 'ro' | 'rw'): Zone => zone({ mode, name: 'outer', hostPath: '/srv/a', target: '/a' })
  const b = (target: string): Zone => zone({ mode: 'ro', name: 'inner', hostPath: '/srv/b', target })

  test.each<[title: string, zones: Zone[], tree: Tree, reason: string]>([
    ['cannot share a target', [a('ro'), b('/a')], {}, 'target /a is taken by zone outer'],
    [
      'cannot share a target that is spelt differently',
      [a('ro'), b('/x/../a/')],
      {},
      'target /a is taken by zone outer',
    ],
    [
      'cannot lie in each other when the outer one is writable',
      [a('rw'), b('/a/in')],
      {},
      'is below the writable zone outer',
    ],
    [
      'cannot lie in each other when a tmpfs is below a writable one',
      [a('rw'), zone({ mode: 'tmpfs', target: '/a/in' })],
      {},
      'is below the writable zone',
    ],
    [
      'cannot lie in each other without a mount point',
      [a('ro'), b('/a/none')],
      {},
      'has no mount point: /srv/a/none in the read-only zone outer is missing',
    ],
    [
      'cannot lie in each other when a file is in the way',
      [a('ro'), b('/a/file')],
      {},
      'is file, expected a directory',
    ],
    [
      'cannot lie in each other behind a link',
      [a('ro'), b('/a/link')],
      { '/srv/a/link': '-> in' },
      'a symbolic link is in the way',
    ],
    [
      'cannot lie in each other behind a link in the middle',
      [a('ro'), b('/a/way/in')],
      { '/srv/a/way': '-> .' },
      'a symbolic link is in the way',
    ],
  ])('%s', (_title, zones, more, reason) => {
    expect(refusal(inTree({ ...tree, ...more }, ...zones)).problems.join('\n')).toContain(reason)
  })

  test('may lie in each other when the outer one is read-only and holds the mount point', () => {
    expect(summary(inTree(tree, b('/a/in'), a('ro')))).toEqual(['ro /srv/a /a', 'ro /srv/b /a/in'])
  })

  test('may lie in each other when the mount point is the socket itself', () => {
    const socket = zone({ mode: 'ro', kind: 'socket', sockets: true, hostPath: '/srv/a/s', target: '/a/s' })
    expect(summary(inTree({ ...tree, '/srv/a/s': 'socket' }, a('ro'), socket))).toEqual([
      'ro /srv/a /a',
      'ro /srv/a/s /a/s',
    ])
  })

  test.each<[title: string, origin: Zone['origin'], target: string | undefined, way: string]>([
    [
      'a flag',
      { layer: 'flag', source: '--ro', key: 'zones' },
      undefined,
      'have it made: --ro /srv/a/none:create, or leave it out: --ro /srv/a/none:optional',
    ],
    [
      'a flag with a target',
      { layer: 'flag', source: '--ro', key: 'zones' },
      '/a/none',
      'have it made: --ro /srv/a/none:/a/none:create, or leave it out: --ro /srv/a/none:/a/none:optional',
    ],
    [
      'a flag with a mode',
      { layer: 'flag', source: '--zone', key: 'zones' },
      '/a/none',
      'end --zone with :create or :optional (after a mode: :rw,create)',
    ],
    [
      'a profile',
      { layer: 'profile', source: 'p.yaml', key: 'zones.x' },
      '/a/none',
      'set create or optional on the zone',
    ],
  ])('of which one is missing in the other are one mistake, told in the words of %s', (_title, origin, target, way) => {
    const outer = { ...a('ro'), ...(target === undefined ? { target: '/srv/a' } : {}) }
    const { target: _, ...missing } = zone({ mode: 'ro', name: 'inner', hostPath: '/srv/a/none', origin })
    const { problems } = refusal(inTree(tree, outer, target === undefined ? missing : { ...missing, target }))
    expect(problems).toEqual([expect.stringContaining(`it does not exist; make it (mkdir -p /srv/a/none), or ${way}`)])
  })

  test('may have names that only begin alike', () => {
    expect(summary(inTree(tree, a('rw'), b('/ab')))).toEqual(['rw /srv/a /a', 'ro /srv/b /ab'])
  })
})

describe('The workspace', () => {
  test('is the directory of the caller', () => {
    const plan = planIn({ policy: { workspace: 'rw' } })
    expect(plan.zones.map(({ mode, source, target }) => [mode, source, target])).toEqual([['rw', CWD, '/workspace']])
    expect(plan.workdir).toBe('/workspace')
    expect(plan.warnings).toEqual([])
  })

  test('keeps its host path when the policy says so', () => {
    const plan = planIn({ policy: { samePath: true } })
    expect(plan.zones[0]?.target).toBe(CWD)
    expect(plan.workdir).toBe(CWD)
  })

  const DATA: Tree = { '/srv/data': 'directory', '/people': '-> /home', [`${CWD}/out`]: 'directory' }
  const beside = (policy: Partial<Policy>, ...zones: Zone[]) =>
    planIn({ tree: { ...PLAIN_TREE, ...DATA }, policy: { ...policy, zones } })
  const shown = (policy: Partial<Policy>, ...zones: Zone[]) =>
    beside(policy, ...zones).zones.map(({ mode, source, target }) => `${mode} ${source} ${target}`)

  test('that is taken away is an empty read-only directory beside zones', () => {
    const plan = beside({ workspace: 'none' }, zone({ mode: 'ro', hostPath: '/srv/data' }))
    expect(plan.zones.map(({ target }) => target)).toEqual(['/srv/data'])
    expect(plan.system).toContainEqual({ op: 'directory', target: '/workspace', mode: 0o755 })
    expect(plan.workdir).toBe('/workspace')
  })

  test.each<[title: string, workspace: Policy['workspace'], zone: Zone, expected: readonly string[]]>([
    [
      'elsewhere',
      'ro',
      zone({ mode: 'rw', hostPath: '/srv/data' }),
      ['rw /srv/data /srv/data', `ro ${CWD} /workspace`],
    ],
    [
      'inside it, which is writable',
      'ro',
      zone({ mode: 'rw', hostPath: `${CWD}/data` }),
      [`ro ${CWD} /workspace`, `rw ${CWD}/data /workspace/data`],
    ],
    [
      'inside it that is made first',
      'ro',
      zone({ mode: 'rw', hostPath: `${CWD}/new`, create: true }),
      [`ro ${CWD} /workspace`, `rw ${CWD}/new /workspace/new`],
    ],
    ['of memory', 'ro', zone({ mode: 'tmpfs', target: '/t', size: 4096 }), [`ro ${CWD} /workspace`]],
  ])('is shown beside a zone %s', (_title, workspace, one, expected) => {
    expect(shown({ workspace }, one)).toEqual(expected)
    expect(beside({ workspace }, one).workdir).toBe('/workspace')
  })

  test.each<[title: string, zone: Zone, expected: string, workdir: string]>([
    ['is it', zone({ mode: 'cow', hostPath: CWD }), `cow ${CWD} /workspace`, '/workspace'],
    ['is it, at another place', zone({ mode: 'rw', hostPath: CWD, target: '/src' }), `rw ${CWD} /src`, '/src'],
    ['holds it', zone({ mode: 'ro', hostPath: HOME }), `ro ${HOME} ${HOME}`, CWD],
    ['holds it by a link', zone({ mode: 'ro', hostPath: '/people' }), 'ro /home /people', '/people/ann/project'],
    [
      'stands in its place',
      zone({ mode: 'ro', hostPath: '/srv/data', target: '/workspace' }),
      'ro /srv/data /workspace',
      '/workspace',
    ],
  ])('is shown by a zone that %s, and then only there', (_title, one, expected, workdir) => {
    expect(shown({ workspace: 'rw' }, one)).toEqual([expected])
    expect(beside({ workspace: 'rw' }, one).workdir).toBe(workdir)
  })

  test('gives its place to memory that is put there', () => {
    expect(shown({}, zone({ mode: 'tmpfs', target: '/workspace', size: 4096 }))).toEqual([])
  })

  test('that is writable keeps a part read-only by protecting it, and shows a writable part already', () => {
    const parts = [zone({ mode: 'ro', hostPath: `${CWD}/data` }), zone({ mode: 'rw', hostPath: `${CWD}/out` })]
    const { zones } = beside({ workspace: 'rw', protectNot: ['*'] }, ...parts)
    expect(zones.map(({ mode, target, protect }) => [mode, target, protect])).toEqual([['rw', '/workspace', ['data']]])
  })

  test.each<[title: string, zone: Zone]>([
    ['of another directory', zone({ mode: 'ro', hostPath: '/srv/data', target: '/workspace/data' })],
    ['that lets sockets be used', zone({ mode: 'rw', hostPath: `${CWD}/data`, sockets: true })],
    ['that is copy-on-write', zone({ mode: 'cow', hostPath: `${CWD}/data` })],
    ['that is made first', zone({ mode: 'rw', hostPath: `${CWD}/new`, create: true })],
  ])('that is writable holds no mount point for a zone %s', (_title, one) => {
    expect(() => beside({ workspace: 'rw' }, one)).toThrow('is below the writable zone workspace')
  })

  test('that no zone can show says how to run without it', () => {
    const world = { tree: { ...PLAIN_TREE, ...DATA }, request: { cwd: CWD, secretDirectory: `${CWD}/out` } }
    const zones = [zone({ mode: 'ro', hostPath: '/srv/data' })]
    expect(refusal({ ...world, policy: { zones } }).message).toContain('to run without it: --no-workspace')
    expect(planIn({ ...world, policy: { zones, workspace: 'none' } }).zones).toHaveLength(1)
  })

  test('that is withheld is not shown beside a zone either, without a word', () => {
    const zones = [zone({ mode: 'ro', hostPath: '/srv/data' })]
    const plan = planIn({ tree: { ...PLAIN_TREE, ...DATA }, request: { cwd: HOME }, policy: { zones } })
    expect(plan.zones.map(({ source }) => source)).toEqual(['/srv/data'])
    expect(plan.warnings).toEqual([])
  })

  test.each(['/', '/usr/share', '/etc', '/tmp', '/home', '/home/ann', '/var/log', '/proc', '/run/user'])(
    'is empty, with one line of warning, when the caller stands in %s',
    (cwd) => {
      const tree = {
        ...PLAIN_TREE,
        '/tmp': 'directory',
        '/var/log': 'directory',
        '/proc': 'directory',
        '/run/user': 'directory',
        '/usr/share': 'directory',
      }
      const plan = planIn({ tree, request: { cwd } })
      expect(plan.zones).toEqual([])
      expect(plan.scratch.map(({ target }) => target)).toContain('/workspace')
      expect(plan.warnings).toHaveLength(1)
      expect(plan.warnings[0]).toContain(`${cwd} `)
    },
  )

  test('may be the home directory when it is named', () => {
    const plan = planIn({ request: { cwd: HOME }, policy: { zones: [zone({ mode: 'ro', hostPath: HOME })] } })
    expect(plan.zones.map(({ source, target }) => [source, target])).toEqual([[HOME, '/workspace']])
  })

  test('is refused when the working directory is gone', () => {
    expect(refusal({ request: { cwd: '/home/ann/deleted' } }).message).toContain('/home/ann/deleted')
  })
})

describe('Scratch file systems', () => {
  const DATA: Tree = { '/srv/data': 'directory' }
  const varTmp = (...zones: Zone[]) => {
    const { scratch, system } = planIn(inTree(DATA, ...zones))
    const found = [...scratch, ...system].filter(({ target }) => target === '/var/tmp')
    return found.map((one) => ('op' in one ? `${one.op}${one.op === 'symlink' ? ` ${one.link}` : ''}` : one.size))
  }
  test.each<[title: string, zones: Zone[], expected: readonly unknown[]]>([
    ['leads to /tmp, and has its bound', [], ['symlink /tmp']],
    [
      'has a bound of its own above a zone',
      [zone({ mode: 'ro', hostPath: '/srv/data', target: '/var/tmp/in' })],
      [52_428_800],
    ],
    ['is a zone that stands there', [zone({ mode: 'ro', hostPath: '/srv/data', target: '/var/tmp' })], []],
    ['is what a zone above it has there', [zone({ mode: 'ro', hostPath: '/srv/data', target: '/var' })], []],
  ])('/var/tmp %s', (_title, zones, expected) => {
    expect(varTmp(...zones)).toEqual(expected)
  })

  test('are bounded in bytes and in inodes', () => {
    expect(planIn({}).scratch).toEqual([
      { target: '/dev/shm', size: 67_108_864, inodes: 16_384, mode: 0o1777 },
      { target: '/home/sandbox', size: 67_108_864, inodes: 16_384, mode: 0o700 },
      { target: '/run', size: 10_485_760, inodes: 2560, mode: 0o755 },
      { target: '/tmp', size: 52_428_800, inodes: 12_800, mode: 0o1777 },
    ])
  })

  test.each([
    ['a small one still holds a thousand files', 4096, 1024],
    ['a huge one holds no more than a million', 2 ** 40, 1_048_576],
  ])('%s', (_title, size, inodes) => {
    const plan = planIn({ policy: { zones: [zone({ mode: 'tmpfs', target: '/scratch', size })] } })
    expect(plan.scratch.find(({ target }) => target === '/scratch')).toEqual({
      target: '/scratch',
      size,
      inodes,
      mode: 0o755,
    })
  })

  test('give way to a zone on the same target', () => {
    const plan = planIn(
      inTree({ '/srv/data': 'directory' }, zone({ mode: 'rw', hostPath: '/srv/data', target: '/tmp' })),
    )
    expect(plan.scratch.map(({ target }) => target)).not.toContain('/tmp')
  })
})

describe('A credential', () => {
  const origin = { layer: 'profile', source: 'ci.yaml', key: 'credentials' } as const
  const credentials = [{ file: '/home/ann/.config/gh/hosts.yml', target: '/home/sandbox/.config/gh/hosts.yml', origin }]

  test('is one read-only file', () => {
    const plan = planIn({ tree: { ...PLAIN_TREE, '/home/ann/.config/gh/hosts.yml': 'file' }, policy: { credentials } })
    expect(plan.zones.find(({ name }) => name.startsWith('credential'))).toMatchObject({
      mode: 'ro',
      kind: 'file',
      from: 'ci.yaml: credentials',
    })
    expect(plan.system.map(({ target }) => target)).toContain('/home/sandbox/.config/gh')
  })

  test('is refused when it is a directory', () => {
    expect(
      refusal({ tree: { ...PLAIN_TREE, '/home/ann/.config/gh/hosts.yml': 'directory' }, policy: { credentials } })
        .message,
    ).toContain('expected a file, got a directory')
  })
})

describe('The SSH agent', () => {
  const tree = { ...PLAIN_TREE, '/run/user/1000/agent': 'socket' }
  test('is a single socket, and its variable points there', () => {
    const plan = planIn({ tree, policy: { sshAgent: true }, request: { sshAgentSocket: '/run/user/1000/agent' } })
    expect(plan.zones.find(({ name }) => name === 'ssh-agent')).toMatchObject({
      kind: 'socket',
      target: '/run/ssh-agent.sock',
      sockets: true,
    })
    expect(plan.env).toContainEqual({ name: 'SSH_AUTH_SOCK', from: 'built-in', value: '/run/ssh-agent.sock' })
  })

  test.each([
    [0, [expect.stringContaining('run llm-do as the user of the agent')]],
    [1000, []],
  ])('does not answer a command of root, and uid %i is told so', (uid, warnings) => {
    const request = { sshAgentSocket: '/run/user/1000/agent' }
    expect(planIn({ tree, policy: { sshAgent: true }, request, machine: { uid } }).warnings).toEqual(warnings)
  })

  test('is not shown unless the policy says so', () => {
    const plan = planIn({ tree, request: { sshAgentSocket: '/run/user/1000/agent' } })
    expect(JSON.stringify(plan)).not.toContain('agent')
  })

  test.each<[string, Partial<World['request']>, string]>([
    ['there is none', {}, 'SSH_AUTH_SOCK is not set'],
    ['it is no socket', { sshAgentSocket: '/etc/passwd' }, 'expected a socket, got a file'],
  ])('is refused when %s', (_title, request, reason) => {
    expect(refusal({ tree, policy: { sshAgent: true }, request: request ?? {} }).message).toContain(reason)
  })
})

describe("The runner's own directory, which holds its secret,", () => {
  const secretDirectory = '/run/user/1000/llm-do'
  const tree = { [`${secretDirectory}/key`]: 'file', '/run/user/1000/bus': 'socket', '/srv/l': '-> /run/user' }
  const showing = (mode: 'ro' | 'rw', hostPath: string): World => ({
    ...inTree(tree, zone({ mode, hostPath, target: '/z', sockets: true })),
    request: { secretDirectory },
  })

  test.each([
    ['itself', secretDirectory, 'is part of'],
    ['in part', `${secretDirectory}/key`, 'is part of'],
    ['with what is above it', '/run/user/1000', `holds the runner's own directory ${secretDirectory}`],
    ['with all of /run', '/run', 'holds'],
    ['through a link', '/srv/l', 'holds'],
  ])('is not shown %s', (_title, hostPath, message) => {
    for (const mode of ['ro', 'rw'] as const) expect(refusal(showing(mode, hostPath)).message).toContain(message)
  })

  test('closes no sibling of it', () => {
    expect(summary(showing('rw', '/run/user/1000/bus'))).toEqual(['rw /run/user/1000/bus /z'])
  })
})

describe('A source that leads through a link', () => {
  const secret = { '/srv/secret/id_rsa': 'file' }

  test.each<[title: string, tree: Tree, hostPath: string, link: string]>([
    [
      'in the caller directory',
      { [`${CWD}/output`]: '-> /srv/secret' },
      `${CWD}/output`,
      `${CWD}/output is a symbolic link to /srv/secret`,
    ],
    ['on the way', { [`${CWD}/a`]: '-> /srv' }, `${CWD}/a/secret`, `${CWD}/a is a symbolic link to /srv`],
    [
      'that was reached from outside',
      { '/srv/p': `-> ${CWD}/output`, [`${CWD}/output`]: '-> /srv/secret' },
      '/srv/p',
      `${CWD}/output is a symbolic link`,
    ],
    ['that leads to the parent', { [`${CWD}/up`]: '-> ..' }, `${CWD}/up`, `${CWD}/up is a symbolic link to ..`],
  ])('out of the caller directory is refused: %s', (_title, tree, hostPath, link) => {
    for (const mode of ['ro', 'rw'] as const) {
      const { message } = refusal(inTree({ ...secret, ...tree }, zone({ mode, hostPath, target: '/z' })))
      expect([message, message]).toEqual([expect.stringContaining(link), expect.stringMatching(/name \/\S+ itself/)])
    }
  })

  test('out of another writable zone is refused', () => {
    const tree = { ...secret, '/data/in': '-> /srv/secret' }
    const two = [
      zone({ mode: 'rw', hostPath: '/data', target: '/d' }),
      zone({ mode: 'ro', hostPath: '/data/in', target: '/z' }),
    ]
    expect(refusal(inTree(tree, ...two)).message).toContain('leads out of /data')
    expect(summary(inTree(tree, zone({ mode: 'ro', hostPath: '/data/in', target: '/z' })))).toHaveLength(1)
  })

  test('and stays in the caller directory is followed, and so is one of the host elsewhere', () => {
    const tree = { ...secret, [`${CWD}/current`]: '-> data', '/opt/link': '-> /srv/secret' }
    expect(summary(inTree(tree, zone({ mode: 'rw', hostPath: `${CWD}/current`, target: '/z' })))).toHaveLength(1)
    expect(summary(inTree(tree, zone({ mode: 'ro', hostPath: '/opt/link', target: '/z' })))).toHaveLength(1)
  })

  test('for one look and not for the next is refused', () => {
    const hostPath = `${CWD}/a/data`
    const world = inTree({ ...secret, [hostPath]: 'directory' }, zone({ mode: 'ro', hostPath, target: '/z' }))
    expect(planIn(world).zones).toHaveLength(1)
    const swapped = { ...world, otherwise: { [hostPath]: { real: '/srv/secret' } } }
    expect(refusal(swapped).message).toContain(`${hostPath} was changed while it was looked at`)
    const missing = { ...world, ...inTree(secret, zone({ mode: 'rw', hostPath, target: '/z', create: true })) }
    expect(refusal({ ...missing, otherwise: { [hostPath]: { real: '/srv/secret/data' } } }).message).toContain(
      'changed',
    )
  })

  describe('is followed by root', () => {
    const [at, machine] = ['/srv/link', { uid: 0, gid: 0 }]
    const world = {
      ...inTree({ ...secret, [at]: '-> /srv/secret' }, zone({ mode: 'ro', hostPath: at, target: '/z' })),
      machine,
    }
    const by = (uid: number) => ({ identity: `1:1:41471:${uid}:${uid}>` })

    test.each<[title: string, otherwise: NonNullable<World['otherwise']>]>([
      ["where it is root's own", { [at]: by(0) }],
      ["where it leads to what is that user's own", { [at]: { ...by(7), uid: 7 }, '/srv/secret': { uid: 7 } }],
    ])('%s', (_title, otherwise) => {
      expect(summary({ ...world, otherwise })).toEqual(['ro /srv/secret /z'])
    })

    test.each<[title: string, otherwise: NonNullable<World['otherwise']>]>([
      ["where it is another user's", { [at]: by(7) }],
      ['where the owner is unknown', { [at]: { identity: '' } }],
      ["where it led to that user's own only for one look", { [at]: { ...by(7), uid: 7 } }],
      [
        'where everybody may put links',
        { [at]: { ...by(7), uid: 7 }, '/srv/secret': { uid: 7 }, '/srv': { mode: 0o1777 } },
      ],
    ])('not %s', (_title, otherwise) => {
      expect(refusal({ ...world, otherwise }).message).toContain('root does not follow it')
    })
  })
})
