import { describe, expect, test } from 'vitest'
import type { Policy } from '../../src/policy/policy.ts'
import type { Zone } from '../../src/policy/values.ts'
import { cow, PLAIN_TREE, planIn, refusal, ro, rw, type Tree, tmpfs, type World, zone } from './world.ts'

const HOME = '/home/ann'
const CWD = `${HOME}/project`
const DATA: Tree = { '/srv/data': 'directory' }

/** Zones alone, without the workspace. */
const inTree = (tree: Tree, ...zones: Zone[]): World => ({
  tree: { ...PLAIN_TREE, ...DATA, ...tree },
  policy: { zones, workspace: 'none' },
})
const shownIn = (world: World): string[] =>
  planIn(world).zones.map(({ mode, source, target }) => `${mode} ${source} ${target}`)

describe('A zone appears', () => {
  const odd = '/srv/a\nb,c:d données 数据'
  test.each<[title: string, zone: Zone, expected: string, tree?: Tree]>([
    ['at its own path when it is outside the workspace', ro('/srv/data'), 'ro /srv/data /srv/data'],
    ['in the workspace when it is inside it', rw(`${CWD}/data`), `rw ${CWD}/data /workspace/data`],
    ['as the workspace when it is the caller directory', rw(CWD), `rw ${CWD} /workspace`],
    ['with dots and slashes resolved', ro('/srv/x/../data/', '/a/./../input/'), 'ro /srv/data /input'],
    ['canonical behind a link', ro('/data/data', '/input'), 'ro /srv/data /input', { '/data': '-> /srv' }],
    ['in place of a file of /etc', ro(`${CWD}/notes.txt`, '/etc/hosts'), `ro ${CWD}/notes.txt /etc/hosts`],
    ['below /dev/shm of the host', ro('/dev/shm/x', '/x'), 'ro /dev/shm/x /x', { '/dev/shm/x': 'directory' }],
    ['under any name', ro(odd, '/in\nput,数据'), `ro ${odd} /in\nput,数据`, { [odd]: 'directory' }],
    ['under a name of 255 bytes', ro('/srv/data', `/${'n'.repeat(255)}`), `ro /srv/data /${'n'.repeat(255)}`],
    ['under a name that begins with dashes', ro('/srv/data', '/--bind'), 'ro /srv/data /--bind'],
  ])('%s', (_title, one, expected, tree = {}) => {
    expect(shownIn(inTree(tree, one))).toEqual([expected])
  })

  test('not at all when it is optional and missing', () => {
    expect(shownIn(inTree({}, ro('/srv/none', undefined, { optional: true })))).toEqual([])
  })
})

describe('A zone is refused', () => {
  const create = { create: true }
  const OWN = '/ /usr /usr/local/x /bin /bin/x /sbin /lib/x /lib64 /etc /proc/x /sys /dev /dev/shm /boot/x /run /home'
  test.each<[title: string, zone: Zone, reason: string, tree?: Tree]>([
    ['when its source is missing', ro('/srv/none'), '--ro: /srv/none: it does not exist'],
    ['when its links go in a circle', ro('/a'), 'go round in a circle', { '/a': '-> b', '/b': '-> a' }],
    ['when it is a link to nothing', ro('/a'), 'a symbolic link to gone, which does not exist', { '/a': '-> gone' }],
    ['when a link to nothing is to be created', rw('/a', '/a', create), 'does not exist', { '/a': '-> gone' }],
    ['when it cannot be looked at', ro('/secret/x'), 'permission denied', { '/secret': 'denied' }],
    ['when it is a FIFO', ro('/srv/f'), 'FIFO', { '/srv/f': 'fifo' }],
    ['when it is a device', ro('/srv/d'), 'device', { '/srv/d': 'device' }],
    ['when it is a socket that was not allowed', ro('/srv/s'), 'sockets: true', { '/srv/s': 'socket' }],
    ['when a file stands where a directory is created', rw('/f', '/f', create), 'expected a dir', { '/f': 'file' }],
    ['when a slash means it', ro('/f/', '/f', { meansDirectory: true }), 'a directory, got a file', { '/f': 'file' }],
    ['when it would be created below a file', rw('/f/sub', '/s', create), '/f is no directory', { '/f': 'file' }],
    ['when it names no host path', zone({ mode: 'rw', target: '/data' }), 'names no host path'],
    ['when a tmpfs has a source', { ...tmpfs('/t'), hostPath: '/srv/data' }, 'a tmpfs has no source'],
    ['when its source is the root of the host', ro('/', '/host'), 'is the whole host'],
    ['when its source is a link to the root', ro('/a', '/host'), 'is the whole host', { '/a': '-> /' }],
    ['when its source is /proc', ro('/proc/1', '/p'), "host's processes", { '/proc/1': 'directory' }],
    ['when its source is below /dev', ro('/dev/dri', '/d'), "host's devices", { '/dev/dri': 'directory' }],
    ['when its path holds a NUL', ro('/srv/a\0b', '/a'), 'expected an absolute host path, got /srv/a\\u{0}b'],
    ['inside a directory of the host', ro('/srv/data', '/etc/ssl/certs/x'), 'is inside /etc/ssl/certs'],
    ['at a name longer than Linux allows', ro('/srv/data', `/${'é'.repeat(128)}`), 'longer than 255 bytes'],
    ['at a path longer than Linux allows', ro('/srv/data', '/long'.repeat(1000)), 'longer than 4095 bytes'],
    ...`${OWN} /srv/../usr //usr`
      .split(' ')
      .map((target): [string, Zone, string] => [`at ${target}`, rw('/srv/data', target), '--rw: target /']),
  ])('%s', (_title, one, reason, tree = {}) => {
    const error = refusal(inTree(tree, one))
    expect(error.code).toBe('ZONE_INVALID')
    expect(error.problems.join('\n')).toContain(reason)
  })

  test('and every problem of a policy is told at once, each in one line without control characters', () => {
    const error = refusal(inTree({}, ro('/srv/a\nb\u001b[2J\u202e'), ro('/srv/b', '/usr')))
    expect(error.problems).toHaveLength(3)
    expect(error.message).toMatch(/\(and 2 more\)$/)
    expect(error.message).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(error.hint).not.toBe('')
  })
})

describe('Two zones', () => {
  const tree = { '/srv/a': 'directory', '/srv/b': 'directory', '/srv/a/in': 'directory', '/srv/a/file': 'file' }
  const a = (mode: 'ro' | 'rw'): Zone => zone({ mode, name: 'outer', hostPath: '/srv/a', target: '/a' })
  const b = (target: string): Zone => ro('/srv/b', target, { name: 'inner' })

  test.each<[title: string, zones: Zone[], reason: string, tree?: Tree]>([
    ['cannot share a target', [a('ro'), b('/x/../a/')], 'target /a is taken by zone outer'],
    ['cannot lie in each other when the outer is writable', [a('rw'), b('/a/in')], 'below the writable zone outer'],
    ['cannot lie in each other when memory is below', [a('rw'), tmpfs('/a/in')], 'is below the writable zone'],
    ['cannot lie in each other without a mount point', [a('ro'), b('/a/no')], 'has no mount point: /srv/a/no in the r'],
    ['cannot lie in each other when a file is in the way', [a('ro'), b('/a/file')], 'is file, expected a directory'],
    ['cannot lie behind a link', [a('ro'), b('/a/l')], 'a symbolic link is in the way', { '/srv/a/l': '-> in' }],
    ['cannot lie behind a link on the way', [a('ro'), b('/a/w/in')], 'symbolic link is in', { '/srv/a/w': '-> .' }],
  ])('%s', (_title, zones, reason, more = {}) => {
    expect(refusal(inTree({ ...tree, ...more }, ...zones)).problems.join('\n')).toContain(reason)
  })

  const socket = ro('/srv/a/s', '/a/s', { kind: 'socket', sockets: true })
  test.each<[title: string, zones: Zone[], expected: string[]]>([
    ['may lie in each other when the outer one holds the mount point', [b('/a/in'), a('ro')], ['ro /srv/b /a/in']],
    ['may lie in each other when the mount point is the socket itself', [a('ro'), socket], ['ro /srv/a/s /a/s']],
    ['may have names that only begin alike', [a('ro'), b('/ab')], ['ro /srv/b /ab']],
  ])('%s', (_title, zones, expected) => {
    expect(shownIn(inTree({ ...tree, '/srv/a/s': 'socket' }, ...zones))).toEqual(['ro /srv/a /a', ...expected])
  })

  const flag = { layer: 'flag', source: '--ro', key: 'zones' } as const
  test.each<[title: string, origin: Zone['origin'], target: string | undefined, way: string]>([
    ['a flag', flag, undefined, 'have it made: --ro /srv/a/none:create, or leave it out: --ro /srv/a/none:optional'],
    [
      'a flag with a target',
      flag,
      '/a/none',
      'have it made: --ro /srv/a/none:/a/none:create, or leave it out: --ro /s',
    ],
    ['a flag with a mode', { ...flag, source: '--zone' }, '/a/none', 'end --zone with :create or :optional (after a'],
    ['a profile', { layer: 'profile', source: 'p', key: 'zones.x' }, '/a/none', 'set create or optional on the zone'],
  ])('of which one is missing in the other are one mistake, told in the words of %s', (_title, origin, target, way) => {
    const outer = { ...a('ro'), ...(target === undefined ? { target: '/srv/a' } : {}) }
    const { problems } = refusal(inTree(tree, outer, ro('/srv/a/none', target, { origin })))
    expect(problems).toEqual([expect.stringContaining(`it does not exist; make it (mkdir -p /srv/a/none), or ${way}`)])
  })
})

test('the message about a missing source with a colon says what may follow the colon', () => {
  expect(refusal(inTree({}, ro('/srv/a:craete'))).problems).toEqual([
    expect.stringMatching(/it does not exist, and "craete" is neither an absolute target nor ro, .*create.*; make it/),
  ])
})

describe('The workspace', () => {
  test('keeps its host path when the policy says so', () => {
    const plan = planIn({ policy: { samePath: true } })
    expect([plan.zones[0]?.target, plan.workdir]).toEqual([CWD, CWD])
  })

  const TREE: Tree = { ...PLAIN_TREE, ...DATA, '/people': '-> /home', [`${CWD}/out`]: 'directory' }
  const beside = (policy: Partial<Policy>, ...zones: Zone[]) => planIn({ tree: TREE, policy: { ...policy, zones } })
  const shown = (policy: Partial<Policy>, ...zones: Zone[]) =>
    shownIn({ tree: TREE, policy: { ...policy, zones } }).sort()

  test('that is taken away is an empty read-only directory beside zones', () => {
    const plan = beside({ workspace: 'none' }, ro('/srv/data'))
    expect(plan.zones.map(({ target }) => target)).toEqual(['/srv/data'])
    expect(plan.system).toContainEqual({ op: 'directory', target: '/workspace', mode: 0o755 })
    expect(plan.workdir).toBe('/workspace')
  })

  const made = rw(`${CWD}/new`, undefined, { create: true })
  test.each<[title: string, zone: Zone, expected: readonly string[]]>([
    ['elsewhere', rw('/srv/data'), ['rw /srv/data /srv/data']],
    ['inside it, which is writable', rw(`${CWD}/data`), [`rw ${CWD}/data /workspace/data`]],
    ['inside it that is made first', made, [`rw ${CWD}/new /workspace/new`]],
    ['of memory', tmpfs('/t'), []],
  ])('is shown beside a zone %s', (_title, one, expected) => {
    expect(shown({ workspace: 'ro' }, one)).toEqual([`ro ${CWD} /workspace`, ...expected])
    expect(beside({ workspace: 'ro' }, one).workdir).toBe('/workspace')
  })

  test.each<[title: string, zone: Zone, expected: string, workdir: string]>([
    ['is it', cow(CWD), `cow ${CWD} /workspace`, '/workspace'],
    ['is it, at another place', rw(CWD, '/src'), `rw ${CWD} /src`, '/src'],
    ['holds it', ro(HOME), `ro ${HOME} ${HOME}`, CWD],
    ['holds it by a link', ro('/people'), 'ro /home /people', '/people/ann/project'],
    ['stands in its place', ro('/srv/data', '/workspace'), 'ro /srv/data /workspace', '/workspace'],
  ])('is shown by a zone that %s, and then only there', (_title, one, expected, workdir) => {
    expect(shown({ workspace: 'rw' }, one)).toEqual([expected])
    expect(beside({ workspace: 'rw' }, one).workdir).toBe(workdir)
  })

  test('gives its place to memory that is put there', () => {
    expect(shown({}, tmpfs('/workspace'))).toEqual([])
  })

  test('that is writable keeps a part read-only by protecting it, and shows a writable part already', () => {
    const { zones } = beside({ workspace: 'rw', protectNot: ['*'] }, ro(`${CWD}/data`), rw(`${CWD}/out`))
    expect(zones.map(({ mode, target, protect }) => [mode, target, protect])).toEqual([['rw', '/workspace', ['data']]])
  })

  test.each<[title: string, zone: Zone]>([
    ['of another directory', ro('/srv/data', '/workspace/data')],
    ['that lets sockets be used', rw(`${CWD}/data`, undefined, { sockets: true })],
    ['that is copy-on-write', cow(`${CWD}/data`)],
    ['that is made first', made],
  ])('that is writable holds no mount point for a zone %s', (_title, one) => {
    expect(() => beside({ workspace: 'rw' }, one)).toThrow('is below the writable zone workspace')
  })

  test('that no zone can show says how to run without it', () => {
    const world = { tree: TREE, request: { cwd: CWD, secretDirectories: [`${CWD}/out`] } }
    const zones = [ro('/srv/data')]
    expect(refusal({ ...world, policy: { zones } }).message).toContain('to run without it: --no-workspace')
    expect(planIn({ ...world, policy: { zones, workspace: 'none' } }).zones).toHaveLength(1)
  })

  test('that is withheld is not shown beside a zone either, without a word', () => {
    const plan = planIn({ tree: TREE, request: { cwd: HOME }, policy: { zones: [ro('/srv/data')] } })
    expect([plan.zones.map(({ source }) => source), plan.warnings]).toEqual([['/srv/data'], []])
  })

  test.each(['/', '/usr/share', '/etc', '/tmp', '/home', '/home/ann', '/var/log', '/proc', '/run/user'])(
    'is empty, with one line of warning, when the caller stands in %s',
    (cwd) => {
      const plan = planIn({ tree: { ...PLAIN_TREE, ...(cwd === '/' ? {} : { [cwd]: 'directory' }) }, request: { cwd } })
      expect([plan.zones, plan.warnings]).toEqual([[], [expect.stringContaining(`${cwd} `)]])
      expect(plan.scratch.map(({ target }) => target)).toContain('/workspace')
    },
  )

  test('may be the home directory when it is named', () => {
    expect(shownIn({ request: { cwd: HOME }, policy: { zones: [ro(HOME)] } })).toEqual([`ro ${HOME} /workspace`])
  })

  test('is refused when the working directory is gone', () => {
    expect(refusal({ request: { cwd: '/home/ann/deleted' } }).message).toContain('/home/ann/deleted')
  })
})

describe('Scratch file systems', () => {
  test.each<[title: string, zones: Zone[], expected: readonly unknown[]]>([
    ['leads to /tmp, and has its bound', [], ['symlink /tmp']],
    ['has a bound of its own above a zone', [ro('/srv/data', '/var/tmp/in')], [52_428_800]],
    ['is a zone that stands there', [ro('/srv/data', '/var/tmp')], []],
    ['is what a zone above it has there', [ro('/srv/data', '/var')], []],
  ])('/var/tmp %s', (_title, zones, expected) => {
    const { scratch, system } = planIn(inTree({}, ...zones))
    const found = [...scratch, ...system].filter(({ target }) => target === '/var/tmp')
    const shown = found.map((one) =>
      'op' in one ? `${one.op}${one.op === 'symlink' ? ` ${one.link}` : ''}` : one.size,
    )
    expect(shown).toEqual(expected)
  })

  test.each([
    ['a small one still holds a thousand files', 4096, 1024],
    ['a huge one holds no more than a million', 2 ** 40, 1_048_576],
  ])('%s', (_title, size, inodes) => {
    const { scratch } = planIn({ policy: { zones: [tmpfs('/scratch', size)] } })
    const found = scratch.find(({ target }) => target === '/scratch')
    expect(found).toEqual({ target: '/scratch', size, inodes, mode: 0o755 })
  })

  test('give way to a zone on the same target', () => {
    const { scratch } = planIn(inTree({}, rw('/srv/data', '/tmp')))
    expect(scratch.map(({ target }) => target)).not.toContain('/tmp')
  })
})

describe('A credential', () => {
  const [file, target] = ['/home/ann/.config/gh/hosts.yml', '/home/sandbox/.config/gh/hosts.yml']
  const credentials = [{ file, target, origin: { layer: 'profile', source: 'ci.yaml', key: 'credentials' } }] as const
  const withFile = (kind: string): World => ({ tree: { ...PLAIN_TREE, [file]: kind }, policy: { credentials } })

  test('is one read-only file', () => {
    const plan = planIn(withFile('file'))
    const shown = plan.zones.find(({ name }) => name.startsWith('credential'))
    expect(shown).toMatchObject({ mode: 'ro', kind: 'file', from: 'ci.yaml: credentials' })
    expect(plan.system.map(({ target }) => target)).toContain('/home/sandbox/.config/gh')
  })

  test('is refused when it is a directory', () => {
    expect(refusal(withFile('directory')).message).toContain('expected a file, got a directory')
  })
})

describe('The SSH agent', () => {
  const tree = { ...PLAIN_TREE, '/run/user/1000/agent': 'socket' }
  const request = { sshAgentSocket: '/run/user/1000/agent' }
  const policy = { sshAgent: true }
  test('is a single socket, and its variable points there', () => {
    const plan = planIn({ tree, policy, request })
    const shown = plan.zones.find(({ name }) => name === 'ssh-agent')
    expect(shown).toMatchObject({ kind: 'socket', target: '/run/ssh-agent.sock', sockets: true })
    expect(plan.env).toContainEqual({ name: 'SSH_AUTH_SOCK', from: 'built-in', value: '/run/ssh-agent.sock' })
  })

  test.each([
    [0, [expect.stringContaining('run llm-do as the user of the agent')]],
    [1000, []],
  ])('does not answer a command of root, and uid %i is told so', (uid, warnings) => {
    expect(planIn({ tree, policy, request, machine: { uid } }).warnings).toEqual(warnings)
  })

  test('is not shown unless the policy says so', () => {
    expect(JSON.stringify(planIn({ tree, request }))).not.toContain('agent')
  })

  test.each<[string, NonNullable<World['request']>, string]>([
    ['there is none', {}, 'SSH_AUTH_SOCK is not set'],
    ['it is no socket', { sshAgentSocket: '/etc/passwd' }, 'expected a socket, got a file'],
  ])('is refused when %s', (_title, request, reason) => {
    expect(refusal({ tree, policy, request }).message).toContain(reason)
  })
})

describe("The runner's own directory, which holds its secret,", () => {
  const secretDirectory = '/run/user/1000/llm-do'
  const tree = { [`${secretDirectory}/key`]: 'file', '/run/user/1000/bus': 'socket', '/srv/l': '-> /run/user' }
  const showing = (mode: 'ro' | 'rw', hostPath: string): World => ({
    ...inTree(tree, zone({ mode, hostPath, target: '/z', sockets: true })),
    request: { secretDirectories: ['/srv/runtime/llm-do', secretDirectory] },
  })

  test.each([
    ['itself', secretDirectory, 'is part of'],
    ['in part', `${secretDirectory}/key`, 'is part of'],
    ['with what is above it', '/run/user/1000', `holds the runner's own directory ${secretDirectory}`],
    ['through a link', '/srv/l', 'holds'],
  ])('is not shown %s', (_title, hostPath, message) => {
    for (const mode of ['ro', 'rw'] as const) expect(refusal(showing(mode, hostPath)).message).toContain(message)
  })

  test('closes no sibling of it', () => {
    expect(shownIn(showing('rw', '/run/user/1000/bus'))).toEqual(['rw /run/user/1000/bus /z'])
  })
})

describe('A source that leads through a link', () => {
  const secret = { '/srv/secret/id_rsa': 'file' }
  const output = { [`${CWD}/output`]: '-> /srv/secret' }

  test.each<[title: string, tree: Tree, hostPath: string, link: string]>([
    ['in the caller directory', output, `${CWD}/output`, `${CWD}/output is a symbolic link to /srv/secret`],
    ['on the way', { [`${CWD}/a`]: '-> /srv' }, `${CWD}/a/secret`, `${CWD}/a is a symbolic link to /srv`],
    ['from outside', { ...output, '/srv/p': `-> ${CWD}/output` }, '/srv/p', `${CWD}/output is a symbolic link`],
    ['that leads to the parent', { [`${CWD}/up`]: '-> ..' }, `${CWD}/up`, `${CWD}/up is a symbolic link to ..`],
  ])('out of the caller directory is refused: %s', (_title, tree, hostPath, link) => {
    for (const mode of ['ro', 'rw'] as const) {
      const { message } = refusal(inTree({ ...secret, ...tree }, zone({ mode, hostPath, target: '/z' })))
      expect([message, message]).toEqual([expect.stringContaining(link), expect.stringMatching(/name \/\S+ itself/)])
    }
  })

  test('out of another writable zone is refused', () => {
    const tree = { ...secret, '/data/in': '-> /srv/secret' }
    expect(refusal(inTree(tree, rw('/data', '/d'), ro('/data/in', '/z'))).message).toContain('leads out of /data')
    expect(shownIn(inTree(tree, ro('/data/in', '/z')))).toHaveLength(1)
  })

  test('and stays in the caller directory is followed, and so is one of the host elsewhere', () => {
    const tree = { ...secret, [`${CWD}/current`]: '-> data', '/opt/link': '-> /srv/secret' }
    expect(shownIn(inTree(tree, rw(`${CWD}/current`, '/z')))).toHaveLength(1)
    expect(shownIn(inTree(tree, ro('/opt/link', '/z')))).toHaveLength(1)
  })

  test('for one look and not for the next is refused', () => {
    const hostPath = `${CWD}/a/data`
    const world = inTree({ ...secret, [hostPath]: 'directory' }, ro(hostPath, '/z'))
    expect(planIn(world).zones).toHaveLength(1)
    const swapped = { ...world, otherwise: { [hostPath]: { real: '/srv/secret' } } }
    expect(refusal(swapped).message).toContain(`${hostPath} was changed while it was looked at`)
    const missing = inTree(secret, rw(hostPath, '/z', { create: true }))
    expect(refusal({ ...missing, otherwise: { [hostPath]: { real: '/srv/secret/data' } } }).message).toContain(
      'changed',
    )
  })

  describe('is followed by root', () => {
    const at = '/srv/link'
    const world = { ...inTree({ ...secret, [at]: '-> /srv/secret' }, ro(at, '/z')), machine: { uid: 0, gid: 0 } }
    const by = (uid: number) => ({ identity: `1:1:41471:${uid}:${uid}>` })
    const ofSeven = { [at]: { ...by(7), uid: 7 }, '/srv/secret': { uid: 7 } }

    test.each<[title: string, otherwise: NonNullable<World['otherwise']>]>([
      ["where it is root's own", { [at]: by(0) }],
      ["where it leads to what is that user's own", ofSeven],
    ])('%s', (_title, otherwise) => {
      expect(shownIn({ ...world, otherwise })).toEqual(['ro /srv/secret /z'])
    })

    test.each<[title: string, otherwise: NonNullable<World['otherwise']>]>([
      ["where it is another user's", { [at]: by(7) }],
      ['where the owner is unknown', { [at]: { identity: '' } }],
      ["where it led to that user's own only for one look", { [at]: { ...by(7), uid: 7 } }],
      ['where everybody may put links', { ...ofSeven, '/srv': { mode: 0o1777 } }],
    ])('not %s', (_title, otherwise) => {
      expect(refusal({ ...world, otherwise }).message).toContain('root does not follow it')
    })
  })
})
