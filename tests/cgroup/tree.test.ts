import { describe, expect, test } from 'vitest'
import { directoryOf, findCgroupMount, findOwnPath, unitOf } from '../../src/cgroup/tree.ts'

const line = (root: string, directory: string, options = 'rw,relatime') =>
  `31 25 0:27 ${root} ${directory} ${options} shared:9 - cgroup2 cgroup2 rw,nsdelegate`
const V1 = '32 25 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory'

describe('the cgroup v2 mount', () => {
  test.each([
    ['a unified host', [line('/', '/sys/fs/cgroup')], '/sys/fs/cgroup'],
    ['a hybrid host', [V1, line('/', '/sys/fs/cgroup/unified')], '/sys/fs/cgroup/unified'],
    [
      'one place covered by a later mount',
      [line('/a', '/sys/fs/cgroup'), line('/', '/sys/fs/cgroup')],
      '/sys/fs/cgroup',
    ],
    ['a second mount elsewhere', [line('/', '/sys/fs/cgroup'), line('/', '/mnt/cg')], '/sys/fs/cgroup'],
    ['only a mount elsewhere', [V1, line('/', '/mnt/my\\040groups')], '/mnt/my groups'],
  ])('is found on %s', (_, lines, directory) => {
    expect(findCgroupMount(lines.join('\n'))?.directory).toBe(directory)
  })

  test('is missing where only version 1 is mounted', () => {
    expect(findCgroupMount(V1)).toBeUndefined()
  })

  test('says when it is read-only', () => {
    expect(findCgroupMount(line('/', '/sys/fs/cgroup', 'ro,nosuid'))?.readOnly).toBe(true)
    expect(findCgroupMount(line('/', '/sys/fs/cgroup'))?.readOnly).toBe(false)
  })
})

test('the own path is the line of hierarchy 0', () => {
  expect(findOwnPath('4:memory:/a\n0::/user.slice/x.scope\n')).toBe('/user.slice/x.scope')
  expect(findOwnPath('4:memory:/a\n')).toBeUndefined()
})

describe('the directory of a path', () => {
  const mount = (root: string) => ({ directory: '/sys/fs/cgroup', root, readOnly: false })
  test.each([
    ['/', '/', '/sys/fs/cgroup'],
    ['/', '/a/b', '/sys/fs/cgroup/a/b'],
    ['/docker/1', '/docker/1', '/sys/fs/cgroup'],
    ['/docker/1', '/docker/1/x', '/sys/fs/cgroup/x'],
    ['/docker/1', '/docker/12', undefined],
    ['/docker/1', '/', undefined],
    ['/', '/../..', undefined],
  ])('with root %s, %s is at %s', (root, path, directory) => {
    expect(directoryOf(mount(root), path)).toBe(directory)
  })
})

describe('the systemd unit of a path', () => {
  test.each([
    ['/system.slice/ssh.service', { name: 'ssh.service', path: '/system.slice/ssh.service', manager: 'system' }],
    ['/system.slice/ci.service/leaf', { name: 'ci.service', path: '/system.slice/ci.service', manager: 'system' }],
    [
      '/user.slice/user-1000.slice/session-3.scope',
      { name: 'session-3.scope', path: '/user.slice/user-1000.slice/session-3.scope', manager: 'system' },
    ],
    [
      '/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope',
      {
        name: 'run-1.scope',
        path: '/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope',
        manager: 'user',
      },
    ],
    [
      '/user.slice/user-1000.slice/user@1000.service/init.scope',
      { name: 'init.scope', path: '/user.slice/user-1000.slice/user@1000.service/init.scope', manager: 'user' },
    ],
    ['/', undefined],
    ['/some/group', undefined],
  ])('%s', (path, unit) => {
    expect(unitOf(path)).toEqual(unit)
  })
})
