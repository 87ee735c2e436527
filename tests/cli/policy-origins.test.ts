import { expect, test } from 'vitest'
import { whyText } from '../../src/cli/policy-origins.ts'

const origins = {
  'resources.timeout': [
    { layer: 'built-in', source: 'built-in', key: 'resources.timeout' },
    { layer: 'profile', source: 'profiles/ci.yaml', key: 'resources.timeout' },
    { layer: 'flag', source: '--timeout', key: 'resources.timeout' },
  ],
  'resources.memory': [{ layer: 'built-in', source: 'built-in', key: 'resources.memory' }],
  network: [{ layer: 'flag', source: '--allow-host', key: 'network.allow' }],
} as const

test('the one who counts comes first', () => {
  expect(whyText(origins, 'resources.timeout')).toBe(
    'resources.timeout\n  flag      --timeout\n  profile   profiles/ci.yaml\n  built-in\n',
  )
})
test('a section shows all its keys', () => {
  expect(whyText(origins, 'resources')).toMatch(/^resources\.memory\n(?:.*\n)*resources\.timeout\n/)
})
test('a key that is not set is an error with the nearest one', () => {
  expect(() => whyText(origins, 'resources.timeot')).toThrow('Did you mean "resources.timeout"?')
})
test.each([
  ['its end', 'timeout'],
  ['its flag', '--timeout'],
])('a key may be called by %s', (_, word) => {
  expect(whyText(origins, word)).toBe(whyText(origins, 'resources.timeout'))
})
test('a flag whose name is not that of its key finds it', () => {
  expect(whyText({ 'resources.cpuTime': origins['resources.timeout'] }, 'cpu-time')).toMatch(/^resources\.cpuTime\n/)
})
test('the keys in use are named by their first word, each once', () => {
  expect(() => whyText(origins, 'nothing')).toThrow(
    expect.objectContaining({ hint: 'keys in use: network, resources' }),
  )
})
