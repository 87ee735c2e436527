import { expect, test } from 'vitest'
import { lostHints, savedHints } from '../../src/report/lost-files.ts'
import { plannedZone } from '../backends/plans.ts'
import { plan } from './fixtures.ts'

const scratch = (target: string) => ({ target, size: 1, inodes: 1, mode: 0o700 })
const zone = plannedZone({ name: 'workspace', mode: 'ro', source: '/srv/app', target: '/workspace' })
const inside = plan({
  workdir: '/workspace',
  zones: [zone, plannedZone({ name: 'rw#1', mode: 'rw', source: '/srv/out', target: '/tmp/out' })],
  scratch: [scratch('/tmp'), scratch('/home/sandbox')],
})
const lost = (path: string, target: string) => [expect.stringContaining(`${path} is gone with the scratch ${target}; `)]

test.each([
  ['saved to /home/sandbox/report.txt.', '/home/sandbox/report.txt', '/home/sandbox'],
  ["Wrote '/tmp/plot.png'", '/tmp/plot.png', '/tmp'],
  ['one\nGenerated: /tmp/a/b.html (3 kB)\n', '/tmp/a/b.html', '/tmp'],
])('output that says "%s" is answered', (text, path, target) => {
  expect(savedHints([text, ''], inside)).toEqual(lost(path, target))
  expect(savedHints(['', `${text}\nsaved ${path}2`], inside)).toEqual(lost(path, target))
})

test.each([
  '',
  'reading /tmp/in.csv',
  'saved to /workspace/report.txt',
  'saved to /tmp/out/report.txt',
  'created /home/sandbox/.cache/x',
  'saved to /tmp',
  'saved\n/tmp/x',
])('output that says "%s" is not', (text) => {
  expect(savedHints([text, text], inside)).toEqual([])
})

test.each([
  ['gcc -o /tmp/p p.c', '/tmp/p'],
  ['cp a /tmp/b', '/tmp/b'],
])('at a terminal the words "%s" are answered', (line, path) => {
  expect(lostHints(line.split(' '), inside)).toEqual(lost(path, '/tmp'))
})

test.each([
  ['sh', '-c', 'gcc -o /tmp/p p.c && /tmp/p'],
  ['sh', '-c', 'sort x > /tmp/x; wc -l </tmp/x'],
  ['cat', '/tmp/p'],
  ['cp', 'a', '/tmp/out/b'],
])('at a terminal a file that the command reads again does not count as lost: %j', (...command) => {
  expect(lostHints(command, inside)).toEqual([])
})

test('a writable directory needs no flag', () => {
  const writable = { ...inside, zones: [{ ...zone, mode: 'rw' as const }] }
  expect(savedHints(['saved /tmp/x'], writable)).toEqual([
    '/tmp/x is gone with the scratch /tmp; to keep it: a path below /workspace',
  ])
})
