import { describe, expect, test } from 'vitest'
import type { HostFacts } from '../../src/host/facts.ts'
import { isOlder, offersOf } from '../../src/host/offers.ts'
import { NEEDS } from '../../src/policy/values.ts'
import { GOOD_MACHINE } from '../plan/world.ts'

const facts = (some: Partial<HostFacts> = {}): HostFacts => ({ ...GOOD_MACHINE, paths: {}, ...some })
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
    for (const { gives, lacks, unusable } of Object.values(offersOf(machine))) {
      if (unusable !== undefined) continue
      const told = [...Object.keys(gives), ...Object.keys(lacks)].sort()
      expect(told).toEqual([...NEEDS].sort())
    }
  })
})

test('Linux 7.1 closes sockets in zones, earlier kernels do not', () => {
  expect(offersOf(facts({ landlockAbi: 9 })).namespace.gives['sockets-closed']).toBe('kernel')
  expect(offersOf(facts({ landlockAbi: 8 })).namespace.gives['sockets-closed']).toBeUndefined()
})

test('A host process gives no wall at all', () => {
  expect(Object.keys(offersOf(facts()).process.gives).sort()).toEqual([
    'cpus-limit',
    'deadline',
    'memory-limit',
    'net-host',
    'output-limit',
    'pids-limit',
    'tty',
  ])
})

test('Namespaces are a matter of Linux', () => {
  expect(offersOf(facts({ platform: 'darwin' })).namespace.unusable?.fix).toBe('--backend docker')
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
