import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse, splitLine } from '../lib/parse.mjs'

test('a comma in quotes is text', () => {
  assert.deepEqual(splitLine('a,"b, c",d'), ['a', 'b, c', 'd'])
  assert.throws(() => splitLine('a,"b'), /never closed/)
})

test('comments and empty lines are passed over', () => {
  assert.deepEqual(parse('date,amount\n# of May\n\n2024-05-01,1.00\n'), [{ date: '2024-05-01', amount: 100 }])
})
