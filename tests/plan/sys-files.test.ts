/** Files of /sys by which programs size themselves. */
import { expect, test } from 'vitest'
import type { PlannedLimits } from '../../src/plan/limits.ts'
import { sysFiles } from '../../src/plan/sys-files.ts'

const textOf = (limits: PlannedLimits, name: string) => {
  const entry = sysFiles(limits, '0-3').find(({ target }) => target.endsWith(`/${name}`))
  return entry?.op === 'file' ? entry.content : undefined
}

test('limits that are held are shown in the words of both versions of cgroups', () => {
  const limits = { memory: { max: 1024, by: 'watchdog' }, cpus: { max: 1.5, by: 'cgroup2' } } as const
  expect(['memory.max', 'memory.limit_in_bytes', 'cpu.max'].map((name) => textOf(limits, name))).toEqual([
    '1024\n',
    '1024\n',
    '150000 100000\n',
  ])
})

test('limits come with the list that says version 2 has the controllers, and without limits there is none', () => {
  const list = textOf({ cpus: { max: 1, by: 'affinity' } }, 'proc.cgroups')
  expect(list?.trim().split('\n').slice(1)).toEqual(
    ['cpuset', 'cpu', 'cpuacct', 'memory', 'pids'].map((name) => `${name}\t0\t1\t1`),
  )
  expect(textOf({ memory: { max: 1024, by: 'none' } }, 'proc.cgroups')).toBeUndefined()
})

test('a limit that nothing holds, or that there is none of, is not shown', () => {
  expect(textOf({ memory: { max: 1024, by: 'none' } }, 'memory.max')).toBeUndefined()
  expect(textOf({}, 'cpu.max')).toBeUndefined()
})

test('processors are those that the caller may use, and none are named where they are not known', () => {
  expect(textOf({}, 'online')).toBe('0-3\n')
  expect(sysFiles({}, undefined)).toEqual([])
})
