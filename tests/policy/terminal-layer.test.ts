import { expect, test } from 'vitest'
import type { PolicyLayer } from '../../src/policy/layer.ts'
import { mergePolicies } from '../../src/policy/merge.ts'
import { withTerminal } from '../../src/policy/terminal-layer.ts'
import { checkLayers } from '../../src/policy/validate-layers.ts'

const STANDARD = '/package/profiles/default.yaml'
const profile = (source: string, timeout?: string): PolicyLayer => ({
  layer: 'profile',
  source,
  directory: '/',
  values: timeout === undefined ? {} : { resources: { timeout } },
})
const spoken = (layer: 'environment' | 'flag', timeout: string): PolicyLayer => ({ ...profile(layer, timeout), layer })
const standard = profile(STANDARD, '30s')

test.each<[what: string, profiles: readonly PolicyLayer[], above: readonly PolicyLayer[], timeout: number | null]>([
  ['the profile of everybody', [standard], [], null],
  ['no profile that names one', [profile('/own.yaml')], [], null],
  ['a profile of a person above the one of everybody', [standard, profile('/own/default.yaml')], [], null],
  ['a profile that names one', [standard, profile('/package/profiles/task.yaml', '20s')], [], 20_000],
  ['a profile that names the same', [standard, profile('/own/default.yaml', '30s')], [], 30_000],
  ['a profile of its own that extends nothing', [profile('/own.yaml', '40s')], [], 40_000],
  ['a variable', [standard], [spoken('environment', '5s')], 5_000],
  ['a flag', [standard], [spoken('flag', '5s')], 5_000],
])('at a terminal the deadline is that of %s', async (...[, profiles, above, timeout]) => {
  const layers = await checkLayers([...withTerminal(profiles, STANDARD), ...above])
  const policy = mergePolicies(layers, { profile: 'default', home: '/home/ann' })
  expect(policy.resources.timeout).toBe(timeout)
  expect(policy.origins['resources.timeout']).toContainEqual(
    expect.objectContaining({ source: 'stdin and stderr are terminals' }),
  )
})
