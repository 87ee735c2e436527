import { expect, test } from 'vitest'
import { policyHash } from '../../src/fleet/policy-hash.ts'
import type { Policy } from '../../src/policy/policy.ts'

const POLICY = {
  profile: 'task',
  origins: {},
  protectFiles: ['/here/profile.yaml'],
  resources: { memory: 512 },
  zones: [{ source: '/tasks/task-1/in', mode: 'ro' }],
  env: { inherit: [], set: { TOKEN: 'one' } },
} as unknown as Policy

const changed = (more: object): Policy => ({ ...POLICY, ...more }) as Policy
const hashOf = (policy: Policy, directory = '/tasks/task-1'): string => policyHash(policy, directory)

test.each([
  ['what the profile is called', changed({ profile: '/etc/other.yaml' }), '/tasks/task-1'],
  ['files of the machine', changed({ protectFiles: ['/there/profile.yaml'] }), '/tasks/task-1'],
  ['the value of a variable', changed({ env: { inherit: [], set: { TOKEN: 'two' } } }), '/tasks/task-1'],
  ['where the task is', changed({ zones: [{ source: '/other/task-7/in', mode: 'ro' }] }), '/other/task-7'],
])('the hash of a policy does not depend on %s', (_, policy, directory) => {
  expect(hashOf(policy, directory)).toBe(hashOf(POLICY))
})

test.each([
  ['a limit', changed({ resources: { memory: 513 } })],
  ['a zone elsewhere', changed({ zones: [{ source: '/tasks/task-10/in', mode: 'ro' }] })],
  ['which variables are set', changed({ env: { inherit: [], set: {} } })],
])('the hash of a policy depends on %s', (_, policy) => {
  expect(hashOf(policy)).not.toBe(hashOf(POLICY))
})
