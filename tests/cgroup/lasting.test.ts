import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isLasting } from '../../src/cgroup/ladder.ts'
import { isSystemdRunning } from '../../src/cgroup/systemd.ts'
import { temporaryDirectory } from '../support/directory.ts'

const ALL = ['cpu', 'memory', 'pids']
const SEEN = { '/some/file': 'missing' }

/** A service manager may change its answer at any time, so an incomplete answer is not kept. */
const WITHOUT_MANAGER = !isSystemdRunning()

test.each([
  ['nothing lacks', { has: ALL, given: ALL, lacking: '' }, true],
  ['nothing is there to be given', { has: [], given: [], lacking: 'all', seen: SEEN }, WITHOUT_MANAGER],
  ['all that is there is given', { has: ['memory'], given: ['memory'], lacking: 'cpu', seen: SEEN }, WITHOUT_MANAGER],
  ['one that is there was refused', { has: ALL, given: ['memory', 'pids'], lacking: 'cpu', seen: SEEN }, false],
  ['it may have been chance', { has: [], given: [], lacking: 'all', seen: { '/some/file': undefined } }, false],
  ['nothing can be seen of what lacks', { has: [], given: [], lacking: 'all' }, false],
])('an answer is remembered where %s: %o, %s', async (_, { has, given: controllers, ...fact }, expected) => {
  const parent = await temporaryDirectory()
  writeFileSync(join(parent, 'cgroup.controllers'), `${has.join(' ')}\n`)
  expect(isLasting({ parent, controllers, ...fact })).toBe(expected)
})

test('a machine without any place is remembered like the others', () => {
  expect(isLasting({ controllers: [], lacking: 'all', seen: SEEN })).toBe(WITHOUT_MANAGER)
})
