import { describe, expect, test } from 'vitest'
import { checkLimits, controllersFor, type GroupLimits, groupSettings } from '../../src/cgroup/limits.ts'

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
      written({ memory: { max: 1, by: 'watchdog' }, pids: { max: 3, by: 'rlimit' }, cpus: { max: 1, by: 'affinity' } }),
    ).toEqual({})
  })

  test('the controllers needed are named once each', () => {
    const settings = groupSettings({ memory: kernel(1024 ** 3), pids: kernel(32), cpus: kernel(2) })
    expect(controllersFor(settings)).toEqual(['memory', 'pids', 'cpu'])
  })
})

describe('limits that make no sense', () => {
  test.each([
    [{ memory: 0 }, '--memory'],
    [{ memory: -1 }, '--memory'],
    [{ memory: 4 * 1024 ** 2 - 1 }, '--memory'],
    [{ memory: 5_000_000.5 }, '--memory'],
    [{ memory: 2 ** 60 }, '--memory'],
    [{ memory: Number.NaN }, '--memory'],
    [{ memory: Number.POSITIVE_INFINITY }, '--memory'],
    [{ swap: -1 }, 'resources.swap'],
    [{ pids: 0 }, '--pids'],
    [{ pids: 2 }, '--pids'],
    [{ pids: 3.5 }, '--pids'],
    [{ pids: 4_194_305 }, '--pids'],
    [{ cpus: 0 }, '--cpus'],
    [{ cpus: 0.009 }, '--cpus'],
    [{ cpus: -2 }, '--cpus'],
    [{ cpus: 10_000 }, '--cpus'],
  ])('%o is refused with expected and got', (limits, flag) => {
    const problems = checkLimits(limits)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(new RegExp(`^${flag}: expected .* got ${Object.values(limits)[0]}`))
  })

  test('a limit below what the helpers need says so', () => {
    expect(checkLimits({ pids: 2 })[0]).toContain('the engine, PID 1 and the command are three')
  })

  test('every limit that is wrong is told, not only the first', () => {
    expect(checkLimits({ memory: 0, pids: 0, cpus: 0 })).toHaveLength(3)
  })

  test.each([
    [{}],
    [{ memory: null, pids: null, cpus: null }],
    [{ memory: 4 * 1024 ** 2, swap: 0, pids: 3, cpus: 0.01 }],
    [{ memory: 512 * 1024 ** 2, pids: 32, cpus: 2.5 }],
  ])('%o can be held', (limits) => {
    expect(checkLimits(limits)).toEqual([])
  })
})
