/** Programs that size themselves by /sys: by the limits of the run, and not by the host's memory. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { runForText } from './directory.ts'

const MIB = 1024 ** 2

describeWith(['userns'], '/sys', () => {
  test('has nothing but files of ours, which nobody can change', async () => {
    const script = 'find /sys -type f -o -type l; echo 1 >/sys/fs/cgroup/memory.max; mkdir /sys/made'
    const { status, out, err } = await runForText(['--', 'sh', '-c', script])
    expect([status, out.trim().split('\n').toSorted(), err.match(/Read-only file system/g)]).toEqual([
      1,
      [
        '/sys/devices/system/cpu/online',
        '/sys/devices/system/cpu/possible',
        '/sys/devices/system/cpu/present',
        '/sys/fs/cgroup/cpu.max',
        '/sys/fs/cgroup/memory.high',
        '/sys/fs/cgroup/memory.max',
        '/sys/fs/cgroup/memory/memory.limit_in_bytes',
        '/sys/fs/cgroup/memory/memory.soft_limit_in_bytes',
      ],
      ['Read-only file system', 'Read-only file system'],
    ])
    const { out: mounts } = await runForText(['--', 'cat', '/proc/mounts'])
    expect(mounts).not.toMatch(/^\S+ \/sys|^(?:sysfs|cgroup)/m)
  })

  test('names the processors that the caller may use, so that lscpu works', async () => {
    const own = /^Cpus_allowed_list:\s*(\S+)/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1]
    const { status, out } = await runForText(['--', 'sh', '-c', 'cat /sys/devices/system/cpu/online; lscpu'])
    expect([status, out]).toEqual([0, expect.stringContaining(`${own}\n`)])
  })

  test('shows node its memory: a heap that is full is an error of its own, not a kill', async () => {
    const run = (script: string) => runForText(['--memory', '300m', '--', 'node', '-e', script])
    const { out } = await run('console.log(process.constrainedMemory())')
    expect(Number(out)).toBe(300 * MIB)
    const { status, err } = await run('const all = []; for (;;) all.push(new Array(1e5).fill({}))')
    expect([status, err]).toEqual([134, expect.stringContaining('JavaScript heap out of memory')])
  })

  testWith('network-clients', 'is read by nothing of java, whose heap a variable bounds', async () => {
    const heap = async (...options: readonly string[]) =>
      (await runForText([...options, '--', 'java', '-XshowSettings:vm', '-version'])).err
    expect(await heap('--env', 'JAVA_TOOL_OPTIONS=-XX:MaxRAM=512m')).toContain('Max. Heap Size (Estimated): 1')
  })
})
