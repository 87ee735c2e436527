import { describe, expect, test } from 'vitest'
import { type GroupLimits, groupSettings } from '../../src/cgroup/limits.ts'

const kernel = (max: number) => ({ max, by: 'cgroup2' })
const written = (limits: GroupLimits): Readonly<Record<string, string>> =>
  Object.fromEntries(groupSettings(limits).map(({ file, value }) => [file, value]))

describe('settings of a run’s cgroup', () => {
  test('a memory limit also forbids swap and makes the kernel kill the whole tree', () => {
    expect(written({ memory: kernel(536_870_912) })).toEqual({
      'memory.max': '536870912',
      'memory.swap.max': '0',
      'memory.oom.group': '1',
    })
  })

  test('swap that the policy allows is allowed on top of the memory', () => {
    expect(written({ memory: kernel(1024 ** 3), swap: kernel(4096) })['memory.swap.max']).toBe('4096')
  })

  test.each([
    [2, '200000 100000'],
    [0.5, '50000 100000'],
    [1.25, '125000 100000'],
    [0.01, '1000 100000'],
    [0.0001, '1000 100000'],
  ])('%d cores are a quota of "%s"', (cores, value) => {
    expect(written({ cpus: kernel(cores) })).toEqual({ 'cpu.max': value })
  })

  test('a limit that something else holds is not written', () => {
    expect(
      written({
        memory: { max: 1, by: 'watchdog' },
        pids: { max: 3, by: 'rlimit' },
        cpus: { max: 1, by: 'affinity' },
        io: { writeBps: 4096, by: 'none' },
      }),
    ).toEqual({})
  })

  test.each([
    [{ readBps: 1_048_576 }, '* rbps=1048576'],
    [{ writeBps: 4096, writeIops: 20 }, '* wbps=4096 wiops=20'],
    [{ readBps: 4096, writeBps: 8192, readIops: 1, writeIops: 2 }, '* rbps=4096 wbps=8192 riops=1 wiops=2'],
  ])('rates %o of every disk are "%s"', (rates, value) => {
    expect(written({ io: { ...rates, by: 'cgroup2' } })).toEqual({ 'io.max': value })
  })
})
