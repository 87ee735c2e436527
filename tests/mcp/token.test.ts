import { expect, test } from 'vitest'
import { isBearer, newToken } from '../../src/mcp/token.ts'

const TOKEN = newToken()

test('a token is 256 random bits', () => {
  expect(TOKEN).toMatch(/^[0-9a-f]{64}$/)
  expect(newToken()).not.toBe(TOKEN)
})

test.each([
  [`Bearer ${TOKEN}`, true],
  [`bearer ${TOKEN}`, true],
  [`Bearer ${TOKEN}x`, false],
  [`Bearer ${TOKEN.slice(0, -1)}`, false],
  [`Bearer ${TOKEN} x`, false],
  [`Basic ${TOKEN}`, false],
  [TOKEN, false],
  ['Bearer ', false],
  ['', false],
  [undefined, false],
])('the header %s opens: %s', (header, opens) => {
  expect(isBearer(header, TOKEN)).toBe(opens)
})
