import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isUnrefused } from '../../src/cgroup/ladder.ts'
import { temporaryDirectory } from '../support/directory.ts'

test.each([
  ['', [], true],
  ['memory pids', ['memory', 'pids'], true],
  ['cpu memory pids', ['memory', 'pids'], false], // A real-time process kept cpu from being given.
  ['cpu io memory pids', ['cpu', 'memory', 'pids'], true], // io is wanted by few.
])('a place that has "%s" and gives %o has refused none: %s', async (has, controllers, expected) => {
  const parent = await temporaryDirectory()
  writeFileSync(join(parent, 'cgroup.controllers'), `${has}\n`)
  expect(isUnrefused({ parent, controllers })).toBe(expected)
})

test('where no place is there, none has refused', () => {
  expect(isUnrefused({ controllers: [] })).toBe(true)
})
