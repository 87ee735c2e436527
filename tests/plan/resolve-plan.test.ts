import { describe, expect, test } from 'vitest'
import { offersFor } from '../../src/backends/index.ts'
import { isForNode } from '../../src/launch-cache/eligibility.ts'
import { canonicalJson } from '../../src/plan/hash.ts'
import { pathsNamedBy } from '../../src/plan/paths-to-inspect.ts'
import { resolvePlan } from '../../src/plan/resolve-plan.ts'
import { factsOf, PLAIN_POLICY, PLAIN_REQUEST, PLAIN_TREE, planIn, zone } from './world.ts'

describe('A plan', () => {
  test('does not depend on the order in which zones were named', () => {
    const tree = { ...PLAIN_TREE, '/srv/a': 'directory', '/srv/b': 'directory' }
    const [a, b] = ['/srv/a', '/srv/b'].map((hostPath) => zone({ mode: 'ro', hostPath }))
    expect(planIn({ tree, policy: { zones: [b!, a!] } }).hash).toBe(planIn({ tree, policy: { zones: [a!, b!] } }).hash)
  })

  test.each([
    ['a zone is writable', { policy: { workspace: 'rw' as const } }],
    ['a limit is another', { policy: { resources: { ...PLAIN_POLICY.resources, memory: 1 } } }],
    ['the caller is root', { machine: { uid: 0 } }],
    ['a file of the host is another', { tree: { ...PLAIN_TREE, '/etc/timezone': 'file' } }],
  ])('has another hash when %s', (_title, world) => {
    expect(planIn(world).hash).not.toBe(planIn({}).hash)
    expect(planIn({}).hash).toMatch(/^[0-9a-f]{16}$/)
  })

  test('runs root under a fresh identity, anybody else as himself, both as user 1000 inside', () => {
    expect(planIn({ machine: { uid: 0, gid: 0 } })).toMatchObject({ identity: 'fresh', uid: 1000, gid: 1000 })
    expect(planIn({})).toMatchObject({ identity: 'self', uid: 1000, gid: 1000 })
  })

  test('of a watched run is for node alone, is refused by backends that cannot watch, and warns of a filter for sandboxes inside', () => {
    const watched = planIn({ policy: { explain: true } })
    expect({ isForNode: isForNode(watched), warnings: watched.warnings }).toEqual({ isForNode: true, warnings: [] })
    expect(isForNode(planIn({}))).toBe(false)
    expect(planIn({ policy: { explain: true, seccomp: 'nested' } }).warnings).toContainEqual(
      expect.stringContaining('EBUSY'),
    )
    for (const backend of ['wasm', 'process'] as const) {
      const world = { policy: { explain: true, backend }, permits: { unsandboxed: true } }
      expect(() => planIn(world)).toThrow(/explain/)
    }
  })

  test('of a run that ends with what started it says so, and warns where that cannot be seen', () => {
    const seen = planIn({ policy: { dieWithParent: true } })
    expect([seen.dieWithParent, seen.warnings]).toEqual([true, []])
    const unseen = { isParentUnseen: true } as const
    expect(planIn({ policy: { dieWithParent: true }, request: unseen }).warnings).toEqual([
      expect.stringContaining('in another pid namespace'),
    ])
    const other = planIn({ request: unseen })
    expect([other.dieWithParent, other.warnings]).toEqual([undefined, []])
  })

  test('holds the filter of its architecture', () => {
    const { policy, request, facts } = factsOf({ machine: { arch: 'arm64' } })
    const offers = offersFor({ policy, facts, permits: { unsandboxed: false, docker: true } })
    const seccompFilter = (arch: string) => `filter-${arch}`
    const plan = resolvePlan({ policy, request, facts, needs: [], offers, seccompFilter, mountWays: [] })
    expect(plan.seccomp).toEqual({ profile: 'default', arch: 'arm64', filter: 'filter-arm64' })
  })

  test('refuses a cgroup parent that cannot be used', () => {
    expect(() => planIn({ policy: { cgroupParent: '/sys/fs/cgroup/x' } })).toThrow(
      'cgroupParent: /sys/fs/cgroup/x cannot be used',
    )
  })

  test('knows the resolver of the host only when the network is the host', () => {
    const targets = (mode: 'none' | 'host'): string[] =>
      planIn({ policy: { network: { mode, allow: [], deny: [] } } }).system.map(({ target }) => target)
    expect(targets('host')).toContain('/etc/resolv.conf')
    expect(targets('none')).not.toContain('/etc/resolv.conf')
  })

  test('keeps /bin and /lib as the host has them', () => {
    const split = { '/bin/sh': 'file', '/lib/x': 'file', '/usr/bin/x': 'file' }
    const { system } = planIn({ tree: { ...split, '/home/ann/project': 'directory' } })
    expect(system).toContainEqual({ op: 'bind', source: '/bin', target: '/bin', kind: 'directory', from: 'system' })
    expect(planIn({}).system).toContainEqual({ op: 'symlink', target: '/bin', link: 'usr/bin' })
  })
})

test('Questions are asked once each, sorted and absolute, and none about a path that cannot be', () => {
  const zones = [zone({ mode: 'ro', hostPath: '/srv/a\0b' }), zone({ mode: 'cow', hostPath: '/srv/x' })]
  const inspected = pathsNamedBy(
    { ...PLAIN_POLICY, zones },
    { ...PLAIN_REQUEST, command: ['tool\0'], path: ['', '.', 'relative', '/usr/bin'] },
  )
  expect(inspected).toEqual([...new Set(inspected)].sort())
  expect(inspected.filter((path) => !path.startsWith('/') || path.includes('\0'))).toEqual([])
  expect(inspected).toEqual(expect.arrayContaining(['/srv/x', '/usr/bin']))
})

describe('Canonical JSON', () => {
  test.each<[unknown, string]>([
    [{ b: 1, a: [true, null, 'x'] }, '{"a":[true,null,"x"],"b":1}'],
    [{ a: undefined, b: { d: 1, c: 2 } }, '{"b":{"c":2,"d":1}}'],
    ['"\n', '"\\"\\n"'],
    [[undefined], '[null]'],
  ])('of %j', (value, text) => {
    expect(canonicalJson(value)).toBe(text)
  })
})

test('an end of TLS for which no host is named is told', () => {
  const network = { mode: 'restricted', allow: ['a.test'], deny: [], terminate: true } as const
  const warnings = (more: object): readonly string[] =>
    planIn({ policy: { network: { ...network, ...more } } }).warnings
  expect(warnings({})).toEqual([expect.stringContaining('leave out --terminate-tls')])
  expect(warnings({ terminate: false })).toEqual([])
})
