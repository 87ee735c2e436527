/** Files of /sys by which programs size themselves. */
import { expect, test } from 'vitest'
import type { PlannedLimits } from '../../src/plan/limits.ts'
import { sysFiles } from '../../src/plan/sys-files.ts'

const textOf = (limits: PlannedLimits, name: string) => {
  const entry = sysFiles(limits, '0-3').find(({ target }) => target.endsWith(`/${name}`))
  return entry?.op === 'file' ? entry.content : undefined
}

test('a limit that nothing holds, or that there is none of, is not shown', () => {
  expect(textOf({ memory: { max: 1024, by: 'none' } }, 'memory.max')).toBeUndefined()
  expect(textOf({}, 'cpu.max')).toBeUndefined()
})

test('processors are those that the caller may use, and none are named where they are not known', () => {
  expect(textOf({}, 'online')).toBe('0-3\n')
  expect(sysFiles({}, undefined)).toEqual([])
})
