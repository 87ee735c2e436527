import { expect, test } from 'vitest'
import { randomHex } from '../../src/os/random-id.ts'

test.each([
  ['the device of the kernel', undefined],
  ['no device', '/nonexistent/urandom'],
  ['a device that gives nothing', '/dev/null'],
])('Names are long enough and never the same, from %s', (_title, device) => {
  const names = Array.from({ length: 1000 }, () => randomHex(10, device))
  expect(names.filter((name) => !/^[0-9a-f]{20}$/.test(name))).toEqual([])
  expect(new Set(names).size).toBe(1000)
})
