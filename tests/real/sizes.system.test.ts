/** Programs that size themselves by /sys: by the limits of the run, and not by the host's memory. */
import { readFile } from 'node:fs/promises'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { ENGINES } from '../escape/chain.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { textHere } from './in-process.ts'

const MIB = 1024 ** 2
const GROUPS = '/sys/fs/cgroup'
const FLAGS = 'ro,nosuid,nodev,noexec,relatime'
/** Each says so should it succeed; `nested`, where more is allowed, is tried by the adversary (tests/adversary/kernel.ts). */
const UNCOVER = [
  `umount ${GROUPS}`,
  `umount -l ${GROUPS}`,
  `mount --move ${GROUPS} /tmp`,
  `mount -t cgroup2 none /tmp`,
  `unshare -Urm --cgroup mount -t cgroup2 none /tmp`,
  `cat ${GROUPS}/cgroup.procs`,
  `cat ${GROUPS}/../cgroup/cgroup.procs`,
  `cat /proc/*/root${GROUPS}/cgroup.procs`,
]
  .map((attempt) => `${attempt} && echo uncovered`)
  .join('; ')

interface Mount {
  readonly root: string
  readonly at: string
  readonly flags: string
  readonly type: string
}

/** proc_pid_mountinfo(5). */
const mountsIn = (text: string): readonly Mount[] =>
  [...text.matchAll(/^\d+ \d+ \d+:\d+ (?<root>\S+) (?<at>\S+) (?<flags>\S+) .*?- (?<type>\S+) /gm)].map(
    ({ groups }) => ({ ...groups }) as unknown as Mount,
  )

describeWith(['userns'], '/sys', () => {
  test('has nothing but files of ours, which nobody can change', async () => {
    const script = 'find /sys -type f -o -type l; echo 1 >/sys/fs/cgroup/memory.max; mkdir /sys/made'
    const { status, out, err } = await textHere(['--', 'sh', '-c', script])
    expect([status, out.trim().split('\n').toSorted(), err.match(/Read-only file system/g)]).toEqual([
      1,
      [
        ...['online', 'possible', 'present'].map((name) => `/sys/devices/system/cpu/${name}`),
        ...'cpu.max memory.high memory.max memory/memory.limit_in_bytes memory/memory.soft_limit_in_bytes proc.cgroups'
          .split(' ')
          .map((name) => `/sys/fs/cgroup/${name}`),
      ],
      ['Read-only file system', 'Read-only file system'],
    ])
  })

  for (const engine of ENGINES) {
    testWith(engine, `shows nothing of the host's groups, and cannot be uncovered (${engine})`, async () => {
      const script = `${UNCOVER}; ls -A ${GROUPS} ${GROUPS}/../cgroup; grep -E '/sys|sysfs|cgroup' /proc/self/mountinfo`
      const { out } = await textHere(['--engine', engine, '--', 'sh', '-c', `{ ${script}; } 2>/dev/null`])
      expect(out).not.toContain('uncovered')
      expect(out.match(/^cgroup\..*|^\/sys.*:$/gm)).toEqual([`${GROUPS}:`, `${GROUPS}/../cgroup:`])
      expect(mountsIn(out).filter(({ at }) => at.startsWith('/sys'))).toEqual([
        { root: '/', at: GROUPS, flags: FLAGS, type: 'cgroup2' },
        { root: GROUPS, at: GROUPS, flags: FLAGS, type: 'tmpfs' },
      ])
      expect(mountsIn(out).filter(({ type }) => /^(?:sysfs|cgroup)/.test(type))).toHaveLength(1)
    })
  }

  test('a cgroup file system that nothing covers shows processes: the control', async () => {
    const script = `mount -t cgroup2 none /tmp && ls -A /tmp`
    const { stdout } = await execa('unshare', ['-Urm', '--cgroup', 'sh', '-c', script])
    expect(stdout).toMatch(/^cgroup\.procs$/m)
  })

  test('has the limits of the run, and the list of what they speak for', async () => {
    const script = `cd ${GROUPS} && cat memory.max cpu.max && cat /proc/cgroups`
    const { out } = await textHere(['--memory', '300m', '--cpus', '1', '--', 'sh', '-c', script])
    expect(out.split('\n').slice(0, 2)).toEqual([`${300 * MIB}`, '100000 100000'])
    expect(out).toMatch(/^memory\t0\t1\t1$/m)
    const unlimited = await textHere([
      ...['--memory', 'none', '--cpus', 'none', '--', 'sh', '-c'],
      'cat /proc/cgroups; grep cgroup2 /proc/self/mountinfo; true',
    ])
    expect(unlimited).toMatchObject({ status: 0, out: '' })
  })

  test('names the processors that the caller may use, so that lscpu works', async () => {
    const own = /^Cpus_allowed_list:\s*(\S+)/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1]
    const { status, out } = await textHere(['--', 'sh', '-c', 'cat /sys/devices/system/cpu/online; lscpu'])
    expect([status, out]).toEqual([0, expect.stringContaining(`${own}\n`)])
  })

  test('shows node its memory: a heap that is full is an error of its own, not a kill', async () => {
    const run = (script: string) => textHere(['--memory', '300m', '--', 'node', '-e', script])
    const { out } = await run('console.log(process.constrainedMemory())')
    expect(Number(out)).toBe(300 * MIB)
    const { status, err } = await run('const all = []; for (;;) all.push(new Array(1e5).fill({}))')
    expect([status, err]).toEqual([134, expect.stringContaining('JavaScript heap out of memory')])
  })
})
