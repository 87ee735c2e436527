import { describe, expect, test } from 'vitest'
import type { PlannedZone } from '../../src/plan/plan.ts'
import { absolutePathsIn, endOf, hiddenDenials, stderrDenials } from '../../src/report/stderr-denials.ts'
import { plannedZone } from '../backends/plans.ts'
import { capture, plan } from './fixtures.ts'

const zone = (more: Partial<PlannedZone>) =>
  plannedZone({ name: 'workspace', mode: 'ro', source: '/srv/app', target: '/workspace', ...more })
const MIB = 1024 ** 2
const inside = plan({
  zones: [
    zone({}),
    zone({ name: 'ro#1', source: '/srv/data', target: '/data' }),
    zone({ name: 'ro#2', source: '/srv/lib', target: '/srv/lib' }),
    zone({ name: 'rw#1', mode: 'rw', source: '/srv/out', target: '/out', protect: ['.vscode'] }),
  ],
  scratch: [
    { target: '/tmp', size: 50 * MIB, inodes: 1, mode: 0o1777 },
    { target: '/home/sandbox', size: 10 * MIB, inodes: 1, mode: 0o700 },
    { target: '/cache', size: 3 * MIB, inodes: 1, mode: 0o755 },
  ],
})
const fixOf = (text: string): readonly string[] =>
  stderrDenials(text, inside).map(({ operation, target, fix, key }) => `${operation} ${target} ${fix} ${key}`)

describe('a refused write is named as programs say it', () => {
  test.each([
    ["touch: cannot touch 'x': Read-only file system", 'write /workspace/x --rw . zones'],
    ['sh: 1: cannot create x: Read-only file system', 'write /workspace/x --rw . zones'],
    ['bash: line 1: sub/x: Read-only file system', 'write /workspace/sub/x --rw . zones'],
    ['mkdir: cannot create directory ‘a b’: Read-only file system', 'write /workspace/a b --rw . zones'],
    ["OSError: [Errno 30] Read-only file system: 'x'", 'write /workspace/x --rw . zones'],
    ["Error: EROFS: read-only file system, open '/workspace/x'", 'write /workspace/x --rw . zones'],
    ['/usr/bin/ld: cannot open output file a.out: Read-only file system', 'write /workspace/a.out --rw . zones'],
    ['cp: cannot create regular file /data/x: Read-only file system', 'write /data/x --rw /srv/data:/data zones'],
    ["rm: cannot remove '/srv/lib/x': Read-only file system", 'write /srv/lib/x --rw /srv/lib zones'],
    [
      "mv: cannot move 'a' to '/out/.vscode/a': Read-only file system",
      'write /out/.vscode/a --protect-not .vscode protectNot',
    ],
    [
      "error: could not lock config file '/out/.git/config': Read-only file system",
      'write /out/.git/config --protect-not .git/config protectNot',
    ],
    ["touch: cannot touch '/opt/tool/x': Read-only file system", 'write /opt/tool/x --tmpfs /opt/tool zones'],
    ["mkdir: cannot create directory '/etc/foo': Read-only file system", 'write /etc/foo  '],
    ['Read-only file system', 'write /workspace --rw . zones'],
  ])('%s', (line, expected) => {
    expect(fixOf(`${line}\n`)).toEqual([expected])
  })
})

describe('a full scratch file system is named by its own flag', () => {
  test.each([
    ["dd: error writing '/tmp/f': No space left on device", 'write /tmp/f --tmp 100m resources.tmp'],
    [
      'OSError: [Errno 28] ENOSPC: no space left on device, write /home/sandbox/.npm/x',
      'write /home/sandbox/.npm/x --home 20m resources.home',
    ],
    ["cp: error writing '/cache/x': No space left on device", 'write /cache/x --tmpfs /cache:6m zones'],
  ])('%s', (line, expected) => {
    expect(fixOf(line)).toEqual([expected])
  })
})

describe('words that no fact confirms are no denial', () => {
  test.each([
    ['a writable place', "touch: cannot touch '/out/x': Read-only file system"],
    ['a full zone of the host', "dd: error writing '/out/f': No space left on device"],
    ['a file that is missing', 'cat: x: No such file or directory'],
    ['an ordinary failure', 'error: 3 tests failed'],
  ])('%s', (_, line) => {
    expect(stderrDenials(line, inside)).toEqual([])
  })
})

test('the same refusal is one row with its number, and there is an end to rows', () => {
  const again = "touch: cannot touch 'x': Read-only file system\n".repeat(3)
  expect(stderrDenials(again, inside)).toMatchObject([{ count: 3, evidence: 'stderr' }])
  const many = Array.from({ length: 999 }, (_, at) => `touch: cannot touch 'x${at}': Read-only file system`).join('\n')
  expect(stderrDenials(many, inside)).toHaveLength(32)
})

test('only the end of a long text is looked at', () => {
  const text = `cat: /opt/first: No such file or directory\n${'x'.repeat(20_000)}\ncat: /opt/last: No such file`
  expect(absolutePathsIn(endOf(capture(text)))).toEqual(['/opt/last'])
})

test('what is hidden has the flag that was found for it, if any', () => {
  const hidden = [
    { path: '/srv/app/x', inside: '/workspace/x', flags: '--same-path' },
    { path: '/opt/tool', flags: '--ro /opt/tool' },
    { path: '/sys/class/net' },
  ]
  expect(hiddenDenials(hidden).map(({ fix, key }) => [fix, key])).toEqual([
    ['--same-path', 'samePath'],
    ['--ro /opt/tool', 'zones'],
    ['', ''],
  ])
})
