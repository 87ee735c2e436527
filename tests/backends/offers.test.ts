import { describe, expect, test } from 'vitest'
import { offersOf } from '../../src/backends/index.ts'
import type { HostFacts } from '../../src/host/facts.ts'
import { isOlder } from '../../src/host/version.ts'
import type { Offers } from '../../src/plan/offers.ts'
import { type BackendName, NEEDS } from '../../src/policy/values.ts'
import { GOOD_MACHINE } from '../plan/world.ts'

const facts = (some: Partial<HostFacts> = {}): HostFacts => ({ ...GOOD_MACHINE, paths: {}, ...some })
const offeredBy = (name: BackendName, machine: HostFacts): Offers =>
  offersOf(machine).find((offers) => offers.name === name) as Offers
const DOCKER = {
  program: 'docker',
  path: '/usr/bin/docker',
  clientVersion: '1',
  server: { ok: true },
  rootless: false,
  limits: [],
  remote: false,
} as const

describe('Every need is either given or lacking, never both and never neither', () => {
  test.each([
    ['on a machine where all works', facts({ docker: DOCKER })],
    ['without cgroup', facts({ cgroup: { rung: 'none', controllers: [], lacking: '', fix: '' }, docker: DOCKER })],
    [
      'on a kernel that closes sockets',
      facts({ landlockAbi: 9, docker: { ...DOCKER, limits: ['memory', 'swap', 'cpus', 'pids'] } }),
    ],
    ['on macOS', facts({ platform: 'darwin', docker: { ...DOCKER, remote: true } })],
  ])('%s', (_title, machine) => {
    for (const { gives, lacks, unusable } of offersOf(machine)) {
      if (unusable !== undefined) continue
      const answered = [...Object.keys(gives), ...Object.keys(lacks)].sort()
      expect(answered).toEqual([...NEEDS].sort())
    }
  })
})

test('Linux 7.1 closes sockets in zones, earlier kernels do not', () => {
  expect(offeredBy('namespace', facts({ landlockAbi: 9 })).gives['sockets-closed']).toBe('kernel')
  expect(offeredBy('namespace', facts({ landlockAbi: 8 })).gives['sockets-closed']).toBeUndefined()
})

test('A host process gives no wall at all', () => {
  expect(Object.keys(offeredBy('process', facts()).gives).sort()).toEqual(
    'cpus-limit deadline memory-limit net-host output-limit pids-limit tty'.split(' '),
  )
})

test('Namespaces are a matter of Linux', () => {
  expect(offeredBy('namespace', facts({ platform: 'darwin' })).unusable?.fix).toBe('--backend docker')
})

test.each([
  ['0.4.1', '0.5.0', true],
  ['0.5.0', '0.5.0', false],
  ['0.11.0', '0.5.0', false],
  ['1.0', '0.5.0', false],
  ['0.5', '0.5.0', false],
  ['', '0.5.0', true],
  ['unknown', '0.5.0', true],
])('version %j is older than %s: %s', (version, than, expected) => {
  expect(isOlder(version, than)).toBe(expected)
})

describe('Inside a sandbox of llm-do exec the namespace backend says that it is one', () => {
  const failed = { ok: false, step: 'stage: fsopen', errno: 'ENOSYS', message: 'stage: fsopen: ENOSYS' } as const
  const surroundings = { filtered: true, settings: {}, container: 'llm-do' }
  test.each([
    ['where its programs belong to a user without an id', { nativePrograms: { ...failed, message: 'foreign' } }],
    ['where the engine fails', {}],
  ])('%s', (_, more) => {
    const machine = facts({ engines: { bwrap: failed, unshare: failed }, surroundings, ...more })
    expect(offeredBy('namespace', machine).unusable).toEqual({
      why: expect.stringContaining('inside a sandbox of llm-do exec'),
      fix: expect.stringContaining('llm-do exec --backend no-namespaces'),
    })
  })
})

test('In a sandbox of our own no-namespaces says what to do about a network by name and memory that nobody can watch', () => {
  const cgroup = { rung: 'none', controllers: [], lacking: '', fix: '' } as const
  const outside = offeredBy('no-namespaces', facts({ cgroup, landlockAbi: 9 }))
  const inside = offeredBy('no-namespaces', facts({ cgroup, landlockAbi: 9, isInsideOwn: true, hidesProcesses: true }))
  expect(outside.lacks['net-restricted']?.fix).toContain('--backend namespace')
  expect(inside.lacks['net-restricted']?.fix).toContain('--net host')
  expect([outside.gives['memory-limit'], inside.gives['memory-limit']]).toEqual(['watchdog', undefined])
  expect(inside.lacks['memory-limit']?.fix).toBe('--memory none')
})

test('what repairs the native programs is said by the one who looked at them', () => {
  const nativePrograms = {
    ok: false,
    step: 'native programs',
    errno: '',
    message: 'foreign',
    fix: 'sudo chown',
  } as const
  expect(offeredBy('namespace', facts({ nativePrograms })).unusable?.fix).toBe('sudo chown')
})
