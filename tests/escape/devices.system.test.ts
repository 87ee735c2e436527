/** A device that the policy shows: that one, and neither another one nor more than its use. */
import { execFileSync } from 'node:child_process'
import { rmSync, statSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runForResult } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { PLAIN_ID, type User } from '../support/users.ts'
import { makeTestSite } from './chain.ts'
import { planOnce } from './launch.ts'

const FULL = '1 7'
const LOG = '1 11'
const made = { count: 0 }

function newName(): string {
  const path = `/dev/llm-do-test-${process.pid}-${made.count++}`
  onTestFinished(() => rmSync(path, { force: true }))
  return path
}

/** A node of the test's own. */
function makeNode(number: string, mode = '666', owner: User = 'root'): string {
  const path = newName()
  execFileSync('mknod', [path, 'c', ...number.split(' ')])
  execFileSync('chmod', [mode, path])
  if (owner === 'plain') execFileSync('chown', [`${PLAIN_ID}`, path])
  return path
}

function makeLink(target: string): string {
  const path = newName()
  execFileSync('ln', ['-s', target, path])
  return path
}

const runIn = async (as: User, words: readonly string[], script: string): Promise<Result> =>
  runForResult([...words, '--', 'sh', '-c', script], { as, cwd: await temporaryDirectory({ owner: as }) })

describeWith(['root', 'unshare', 'userns'], 'A device that the policy shows', () => {
  describe.each<User>(['root', 'plain'])('to a command of %s', (as) => {
    test('can be used by its own name and by that of a link, and not without the option', async () => {
      const node = makeNode(FULL)
      const link = makeLink(node)
      const use = `for node in ${node} ${link}; do stat -c %F,%t:%T $node; { echo x | cat >$node; } 2>&1 | grep -o 'No space.*'; done`
      const shown = await runIn(as, ['--device', node, '--device', link], use)
      expect(shown.stdout).toBe('character special file,1:7\nNo space left on device\n'.repeat(2))
      expect(shown.devices).toEqual([node, link])
      // Control: without the option the file is missing, and the cached plan of the other run is not taken.
      const hidden = await runIn(as, [], use)
      expect([hidden.stdout, hidden.devices]).toEqual(['', undefined])
    })

    testWith(['kvm', 'python'], 'takes the calls of its driver', async () => {
      const node = makeNode('10 232')
      const calls = `import fcntl, os; f = os.open("${node}", os.O_RDWR); vm = fcntl.ioctl(f, 0xAE01, 0); print(fcntl.ioctl(f, 0xAE00), fcntl.ioctl(vm, 0xAE41, 0) > vm)`
      const { stdout, stderr } = await runIn(as, ['--device', node], `python3 -c '${calls}'`)
      expect([stdout, stderr]).toEqual(['12 True\n', ''])
    })

    test('can be neither changed nor removed, and no other mount shows devices', async () => {
      const node = makeNode(FULL, '666', as)
      const before = statSync(node)
      const attack = `chmod 0 ${node}; touch -d 2000-01-01 ${node}; chown 1000 ${node}; mv ${node} /dev/x; rm -f ${node}; umount ${node}; mknod /tmp/log c 1 11; cat /tmp/log`
      const list = 'grep -v nodev /proc/self/mountinfo | cut -d" " -f5 | sort'
      const { stdout } = await runIn(as, ['--device', node], `(${attack}) 2>/dev/null; ${list}`)
      const { mode, uid, mtimeMs, ino } = before
      expect(statSync(node)).toMatchObject({ mode, uid, mtimeMs, ino })
      const ours = /^\/(dev\/(full|null|ptmx|pts|random|tty|urandom|zero)|proc\/.*)$/
      expect(
        stdout
          .trim()
          .split('\n')
          .filter((path) => !ours.test(path)),
      ).toEqual([node])
    })

    test('is the only one that is open without namespaces', async () => {
      const [node, other] = [makeNode(FULL), makeNode(FULL)]
      const words = ['--backend', 'no-namespaces', '--no-workspace', '--workdir', '/usr']
      const use = `for node in ${node} ${other}; do { echo x | cat >$node; } 2>&1 | grep -oE 'No space.*|Permission denied'; done`
      const { stdout } = await runIn(as, [...words, '--device', node], use)
      expect(stdout).toBe('No space left on device\nPermission denied\n')
    })

    test('is open to those whom the kernel lets in', async () => {
      const node = makeNode(FULL, '600')
      const closed = await runIn(as, ['--device', node], `{ echo x >${node}; } 2>&1`)
      expect(closed.stdout).toContain('Permission denied')
      expect(closed.warnings.filter((line) => line.includes(node))).toHaveLength(as === 'root' ? 1 : 0)
    })

    test.each([
      ['kmsg', '/dev/kmsg'],
      ['the first loop device', '/dev/loop0'],
      ['loop-control', '/dev/loop-control'],
      ['a terminal', '/dev/tty'],
      ['a network interface', '/dev/net/tun'],
      ['fuse', '/dev/fuse'],
    ])('is never %s, by no name', async (_, path) => {
      for (const name of [path, makeLink(path)]) {
        const { reason, error, stdout } = await runIn(as, ['--device', name], 'echo begun')
        expect([reason, error?.code, stdout]).toEqual(['setup', 'POLICY_INVALID', ''])
      }
      const { type, numbers } = numbersOf(path)
      if (type === 'c') expect((await runIn(as, ['--device', makeNode(numbers)], 'echo begun')).stdout).toBe('')
    })
  })

  describe.each(['unshare', 'bwrap'] as const)('that was exchanged since it was planned (%s)', (engine) => {
    test('is refused, whether another node or a link is in its place', async () => {
      const node = makeNode(FULL)
      const site = await makeTestSite()
      const command = ['/usr/bin/stat', '-c', '%t:%T', node]
      const planned = await planOnce({ site, engine, command, values: { devices: [node] } })
      // Control: the planned one is shown.
      expect((await planned.run()).stdout).toBe('1:7\n')
      rmSync(node)
      execFileSync('mknod', [node, 'c', ...LOG.split(' ')])
      execFileSync('chmod', ['666', node])
      expect((await planned.run()).outcome.failure).toMatchObject({ step: 'stage: device was replaced' })
      rmSync(node)
      execFileSync('ln', ['-s', '/dev/full', node])
      expect((await planned.run()).outcome.failure).toMatchObject({ step: 'stage: open device', errno: 'ELOOP' })
    })
  })
})

function numbersOf(path: string): { readonly type: string; readonly numbers: string } {
  const [type = '', major = '', minor = ''] = execFileSync('stat', ['-c', '%F %Hr %Lr', path], { encoding: 'utf8' })
    .replace('character special file', 'c')
    .replace('block special file', 'b')
    .trim()
    .split(' ')
  return { type, numbers: `${major} ${minor}` }
}
