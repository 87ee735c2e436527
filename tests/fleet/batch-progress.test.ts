import { expect, test } from 'vitest'
import { progressLine } from '../../src/fleet/batch-progress.ts'

test.each([
  { done: 0, failed: 0, total: 8, columns: 80, line: `[${'.'.repeat(40)}]   0 %  0 of 8 done, 0 failed` },
  {
    done: 2,
    failed: 1,
    total: 8,
    columns: 80,
    line: `[${'#'.repeat(10)}${'.'.repeat(30)}]  25 %  2 of 8 done, 1 failed`,
  },
  { done: 8, failed: 1, total: 8, columns: 80, line: `[${'#'.repeat(40)}] 100 %  8 of 8 done, 1 failed` },
  // A file that has grown meanwhile.
  { done: 9, failed: 0, total: 8, columns: 80, line: `[${'#'.repeat(40)}] 100 %  9 of 8 done, 0 failed` },
  { done: 2, failed: 0, total: 8, columns: 42, line: '[##........]  25 %  2 of 8 done, 0 failed' },
  { done: 2, failed: 0, total: 8, columns: 36, line: '25 %  2 of 8 done, 0 failed' },
  { done: 2, failed: 0, total: 8, columns: 10, line: '25 %  2 o' },
  { done: 2, failed: 1, total: undefined, columns: 80, line: '2 done, 1 failed' },
])('$done of $total in $columns columns', ({ line, columns, ...counts }) => {
  expect(progressLine(counts, columns)).toBe(line)
  expect(line.length).toBeLessThan(columns)
})
