/** Every key of the schema changes the policy: one that did nothing would be a broken promise. */
import { describe, expect, test } from 'vitest'
import { KEY_ROWS } from '../../src/policy/key-table.ts'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import type { PolicyLayer } from '../../src/policy/layer.ts'
import { EFFECTS, NOT_POLICY } from './effects.ts'
import { mergeLayers } from './layers.ts'

function policyOf(values: object): object {
  const layer: PolicyLayer = { layer: 'profile', source: 'p.yaml', directory: '/', values: values as SandboxInput }
  // The origin of a value is not the value.
  const { origins: _, ...policy } = mergeLayers([layer], { profile: 'p', home: '/home/ann' })
  return policy
}

describe('A key of the schema', () => {
  test('is in the table below, each of them', () => {
    const keys = KEY_ROWS.map(({ key }) => key).filter((key) => !NOT_POLICY.includes(key))
    expect(Object.keys(EFFECTS).sort()).toEqual([...keys].sort())
  })

  test.each(Object.entries(EFFECTS))('changes the policy: %s', (_key, [without, with_]) => {
    expect(policyOf(with_)).not.toEqual(policyOf(without))
  })
})

describe('An old spelling', () => {
  test('is still read: resources.cpu, cpu-limit', () => {
    expect(policyOf({ resources: { cpu: '1' } })).toEqual(policyOf({ resources: { cpus: '1' } }))
    expect(policyOf({ require: ['cpu-limit'] })).toEqual(policyOf({ require: ['cpus-limit'] }))
  })

  test('is an unknown key where the new one is set, too, and is reported with its line', () => {
    expect(() => policyOf({ resources: { cpu: '1', cpus: '2' } })).toThrow('got the unknown key "cpu"')
    const layer = {
      layer: 'profile',
      source: 'p.yaml',
      directory: '/',
      locations: { 'resources.cpu': 'p.yaml:3' },
    } as const
    const values = { resources: { cpu: 'many' } } as SandboxInput
    expect(() => mergeLayers([{ ...layer, values }], { profile: 'p', home: '' })).toThrow('p.yaml:3: resources.cpus:')
  })
})
