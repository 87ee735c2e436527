import assert from 'node:assert/strict'
import { test } from 'node:test'
import { format, toCents } from '../lib/money.mjs'

test('amounts become cents', () => {
  assert.equal(toCents('12.50'), 1250)
  assert.equal(toCents('-3'), -300)
  assert.throws(() => toCents('abc'), /no amount/)
})

test('amounts are grouped', () => {
  assert.equal(format(123456789), '1 234 567.89 EUR')
})
