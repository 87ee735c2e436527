import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'

/** Plain modules without declarations: what is used of them is said here. */
const benchModule = (name: string) => import(pathToFileURL(join(import.meta.dirname, '../../bench', name)).href)

interface Statistics {
  readonly quantile: (values: readonly number[], p: number) => number
  readonly median: (values: readonly number[]) => number
  readonly netRatio: (times: Readonly<Record<string, readonly number[]>>) => { value: number; note: string }
  readonly table: (head: readonly string[], rows: readonly (readonly string[])[]) => string
}

const { median, netRatio, quantile, table } = (await benchModule('statistics.mjs')) as Statistics
const { byHand } = (await benchModule('bwrap.mjs')) as {
  readonly byHand: (words: readonly string[]) => readonly string[]
}

describe('the numbers of the bench', () => {
  test.each([
    [[5], 0.5, 5],
    [[3, 1, 2], 0.5, 2],
    [[4, 3, 2, 1], 0.5, 2],
    [[10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 0.95, 10],
    [[10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 0.1, 1],
  ])('of %j the quantile %d is %d, by nearest rank', (values, p, expected) => {
    expect(quantile(values, p)).toBe(expected)
  })

  test('a median leaves the order of the runs as it was', () => {
    const runs = [3, 1, 2]
    expect(median(runs)).toBe(2)
    expect(runs).toEqual([3, 1, 2])
  })

  test('a net ratio is one of neighbours, each without the start-up of its own side', () => {
    const times = {
      'true inside': [10, 10, 10],
      'true outside': [2, 2, 2],
      inside: [110, 210, 310],
      outside: [102, 102, 302],
    }
    expect(netRatio(times)).toEqual({ value: 1, note: 'middle half of 3 rounds: 1.00 to 2.00' })
  })

  test('a table has columns as wide as their widest cell', () => {
    expect(table(['a', 'ms'], [['long', '1']]).split('\n')).toEqual(['a     ms', '----  --', 'long   1'])
  })
})

test('the walls by hand are the mounts of the launch file, and nothing that only looks like one', () => {
  const words = 'llm-do-launch-2 key zone at bind missing engine bwrap /usr/bin/bwrap hostname sandbox'.split(' ')
  const tree = 'tmpfs /tmp 64 16 1777 bind /usr /usr zone /w /workspace rw 1 2 closed end'.split(' ')
  const line = byHand([...words, ...tree]).join(' ')
  expect(line).toMatch(/--size 64 --tmpfs \/tmp --ro-bind \/usr \/usr --bind \/w \/workspace --remount-ro \/$/)
  expect(line).not.toContain('missing')
})
