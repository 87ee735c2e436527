import { describe, expect, test } from 'vitest'
import { PROTECTED_NAMES } from '../../src/policy/protected.ts'
import { DOCKER, PLAIN_TREE, planIn, type World, zone } from './world.ts'

const ALL_BUT_GIT = PROTECTED_NAMES.map(({ name }) => name)
const FILE = { file: '/home/ann/filter.yaml' }
const NO_LANDLOCK = { machine: { landlockAbi: 1 } }
const IN_DOCKER = { machine: { docker: DOCKER } }
const rw = (policy: World['policy'], more: Omit<World, 'policy'> = {}): World => ({
  policy: { workspace: 'rw', ...policy },
  ...more,
})

describe('A writable zone whose protections a command could move', () => {
  test.each<[title: string, world: World]>([
    ['under nested', rw({ seccomp: 'nested' })],
    ['in a container, which has no Landlock', rw({ seccomp: 'off', backend: 'docker' }, IN_DOCKER)],
    ['under nested where only git directories are protected', rw({ seccomp: 'nested', protectNot: ALL_BUT_GIT })],
    ['without a filter and without Landlock', rw({ seccomp: 'off' }, NO_LANDLOCK)],
    ['without a filter where trees get namespaces', rw({ seccomp: 'off' }, { machine: { kernel: '7.0.0' } })],
    ['under a file that lets it mount, no Landlock', rw({ seccomp: FILE }, { ...NO_LANDLOCK, mountWays: ['mount'] })],
    ['under a file that makes trees', rw({ seccomp: FILE }, { machine: { kernel: '12.1.0' }, mountWays: ['tree'] })],
  ])('is refused %s', (_title, world) => {
    expect(() => planIn(world)).toThrow(
      /^the caller's directory: \/home\/ann\/project cannot be writable under seccomp .*, which lets the command make mounts: it could move its protected paths \(.*\); give them up with --protect-not '\*', or show it read-only$/,
    )
  })

  test.each<[title: string, world: World]>([
    ['is read-only', { policy: { seccomp: 'nested', workspace: 'ro' } }],
    ['has nothing protected', rw({ seccomp: 'nested', protectNot: ['*'] })],
    ['is kept by the filter', rw({ seccomp: 'strict' }, NO_LANDLOCK)],
    ['is kept by Landlock without a filter', rw({ seccomp: 'off' })],
    ['is kept by Landlock under a file', rw({ seccomp: FILE }, { mountWays: ['mount'] })],
    ['is kept by a file, without Landlock', rw({ seccomp: FILE }, { ...NO_LANDLOCK, mountWays: [] })],
    [
      'is on an older kernel than the one that makes namespaces of trees',
      rw({ seccomp: FILE }, { machine: { kernel: '6.18.44' }, mountWays: ['mount', 'tree'] }),
    ],
    ['is in a container with the default filter', rw({ backend: 'docker' }, IN_DOCKER)],
    ['isolates nothing anyway', rw({ seccomp: 'nested', backend: 'process' }, { permits: { unsandboxed: true } })],
  ])('is not refused when it %s', (_title, world) => {
    expect(planIn(world).zones).toHaveLength(1)
  })

  test.each(['ro', 'rw', 'cow'] as const)('cannot hide anything, whatever its mode: %s', (workspace) => {
    const hiding = (seccomp: 'nested' | 'default') => () =>
      planIn({ policy: { seccomp, workspace, protectNot: ['*'], hide: ['.env'] } })
    expect(hiding('nested')).toThrow('nothing in /home/ann/project can be hidden under seccomp nested')
    expect(hiding('default')).not.toThrow()
  })

  test('names four of its paths and counts the others', () => {
    const world = rw({ seccomp: 'nested', protectNot: ['*'], protect: ['a', 'b', 'c', 'd', 'e', 'f'] })
    expect(() => planIn(world)).toThrow('(a, b, c, d and 2 more)')
  })

  test('names the key for paths of the policy itself', () => {
    const world = rw({ seccomp: 'nested', protectNot: ['*'], protect: ['secret'] })
    expect(() => planIn(world)).toThrow('its protected paths (secret); leave them out of protect, or show it read-only')
  })

  test('that holds what decides the next run has no way out but another zone', () => {
    const tree = { ...PLAIN_TREE, '/home/ann/project/p.yaml': 'file' }
    const policy = { seccomp: 'nested', protectNot: ['*'], protectFiles: ['/home/ann/project/p.yaml'] } as const
    expect(() => planIn(rw(policy, { tree }))).toThrow(
      'it could move what decides the next run (p.yaml); show another directory, or this one read-only',
    )
  })

  test('is refused where a file outside decides the next run and has another name, which may lie in it', () => {
    const [file, tree] = ['/usr/bin/node', { ...PLAIN_TREE, '/usr/bin/node': 'file' }]
    const policy = { seccomp: 'nested', protectNot: ['*'], protectFiles: [file] } as const
    expect(planIn(rw(policy, { tree })).zones).toHaveLength(1)
    expect(() => planIn(rw(policy, { tree, otherwise: { [file]: { names: 2 } } }))).toThrow(
      'it could move what decides the next run (another name of /usr/bin/node); show another directory, or this one read-only',
    )
  })

  const asRoot = { uid: 0, gid: 0 }
  const ROOTS = { ...PLAIN_TREE, '/srv/data': 'directory' } as const
  const open = (mode: 'ro' | 'rw', seccomp: 'nested' | 'off'): World => ({
    policy: { seccomp, protectNot: ['*'], zones: [zone({ mode, hostPath: '/srv/data', target: '/data' })] },
    tree: ROOTS,
    machine: asRoot,
  })

  test('of root is refused to root although nothing in it is protected', () => {
    expect(() => planIn(open('rw', 'nested'))).toThrow(
      "/srv/data is root's and cannot be writable under seccomp nested, which lets the command make mounts",
    )
  })

  test.each([
    ['read-only', open('ro', 'nested')],
    ['without mounts', open('rw', 'off')],
  ])('of root is shown to root %s', (_title, world) => {
    expect(planIn(world).zones.some(({ source }) => source === '/srv/data')).toBe(true)
  })

  test('is named by its flag', () => {
    const zones = [zone({ mode: 'rw', hostPath: '/home/ann/project/data', target: '/data' })]
    expect(() => planIn({ policy: { zones, seccomp: 'nested' } })).toThrow(
      'flag --rw: /home/ann/project/data cannot be',
    )
  })
})
