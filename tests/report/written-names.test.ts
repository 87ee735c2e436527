import { expect, test } from 'vitest'
import type { PlannedZone } from '../../src/plan/plan.ts'
import { writtenHints } from '../../src/report/written-names.ts'
import { plannedZone } from '../backends/plans.ts'
import { plan } from './fixtures.ts'

const zone = (more: Pick<PlannedZone, 'source' | 'target'> & Partial<PlannedZone>) =>
  plannedZone({ name: 'workspace', mode: 'ro', ...more })
const inside = plan({
  workdir: '/workspace',
  zones: [
    zone({ source: '/srv/app', target: '/workspace' }),
    zone({ name: 'rw#1', mode: 'rw', source: '/srv/app/out', target: '/workspace/out', protect: ['.vscode'] }),
    zone({ name: 'ro#1', source: '/srv/data', target: '/data' }),
  ],
  scratch: [{ target: '/tmp', size: 1, inodes: 1, mode: 0o1777 }],
})
const THERE = ['/srv/app/old', '/srv/app/sub', '/srv/data/old']

const hintsFor = (command: readonly string[]): readonly string[] =>
  writtenHints(command, inside, (path) => THERE.includes(path))
const words = (line: string): readonly string[] => line.split(' ')
const hint = (path: string, fix = '--rw .') => [`${path} is read-only in the sandbox; to write it: ${fix}`]

test.each([
  ['touch new', '/workspace/new'],
  ['touch out/a new', '/workspace/new'],
  ['/usr/bin/mkdir -p sub/new', '/workspace/sub/new'],
  ['rm -f old', '/workspace/old'],
  ['cp a b new', '/workspace/new'],
  ['sed -i s/a/b/ old', '/workspace/old'],
  ['dd if=/dev/zero of=new', '/workspace/new'],
  ['gcc m.c -o new', '/workspace/new'],
  ['gcc -onew m.c', '/workspace/new'],
  ['curl https://a.test --output=new', '/workspace/new'],
  ['wget -O new https://a.test', '/workspace/new'],
  ['git commit -m x', '/workspace'],
  ['npm install left-pad', '/workspace'],
  ['cargo build', '/workspace'],
])('%s writes %s', (line, path) => {
  expect(hintsFor(words(line))).toEqual(hint(path))
})

test.each([
  ['echo hi > new', '/workspace/new'],
  ['echo hi >>new', '/workspace/new'],
  ['ls nosuch 2> new', '/workspace/new'],
  ['make &> "a new"', '/workspace/a new'],
  ['true && touch new; false', '/workspace/new'],
  ['cat old | tee new', '/workspace/new'],
  ['cd sub && echo > /workspace/new', '/workspace/new'],
])('the script %s writes %s', (script, path) => {
  for (const command of [
    ['sh', '-c', script],
    ['/bin/bash', '-lc', script, 'name'],
  ])
    expect(hintsFor(command)).toEqual(hint(path))
})

test('the flag is that of the zone, and one line of each is enough', () => {
  expect(hintsFor(['touch', '/data/a', '/data/b', 'c', 'out/.vscode/d'])).toEqual([
    ...hint('/workspace/out/.vscode/d', '--protect-not .vscode'),
    ...hint('/workspace/c'),
    ...hint('/data/a', '--rw /srv/data:/data'),
  ])
})

test.each([
  'grep nomatch old',
  'test -f nosuch',
  'mkdir old',
  'rm nosuch',
  'touch out/new /tmp/new',
  'git status',
  'npm test',
  'ps -o pid',
  'grep -o x old',
  'sed s/a/b/ old',
  'touch $HOME/x',
  'cp old',
])('%s writes nothing that is closed', (line) => {
  expect(hintsFor(words(line))).toEqual([])
})

test.each([
  'false',
  'echo x > /dev/null 2>&1; false',
  'cd out && echo x > new; false',
  'echo x > "$OUT"; false',
  'test 1 -gt 2',
  'node -e "() => 1"',
])('the script %s writes nothing that is closed', (script) => {
  expect(hintsFor(['sh', '-c', script])).toEqual([])
})
