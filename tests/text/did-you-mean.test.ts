import { expect, test } from 'vitest'
import { didYouMean, nearest } from '../../src/text/did-you-mean.ts'

const KEYS = ['memory', 'swap', 'cpu', 'pids', 'timeout', 'network']

test.each([
  ['memry', 'memory'],
  ['meomry', 'memory'],
  ['Memory', 'memory'],
  ['timout', 'timeout'],
  ['cpus', 'cpu'],
  ['netwrok', 'network'],
])('%s is near %s', (word, known) => {
  expect(nearest(word, KEYS)).toBe(known)
})

test.each(['', 'banana', 'x', 'x'.repeat(100_000)])('%s is near nothing', (word) => {
  expect(nearest(word, KEYS)).toBeUndefined()
})

test('a message asks only when a word is near', () => {
  expect([didYouMean('memry', KEYS), didYouMean('banana', KEYS)]).toEqual([' Did you mean "memory"?', ''])
})
