import { describe, expect, test } from 'vitest'
import { countProcessors, statusLine } from '../../src/os/proc-status.ts'

describe('Texts of /proc', () => {
  test.each([
    ['0-3,8', 5],
    ['0', 1],
    ['', 0],
    ['x', 0],
    ['0-1\n', 2],
  ])('the list %j names %d processors', (list, count) => {
    expect(countProcessors(list)).toBe(count)
  })

  test('a line is found by its whole name', () => {
    expect(statusLine('CapEffX:\t1\nCapEff:\t00ff\n', 'CapEff')).toBe('00ff')
    expect(statusLine('', 'CapEff')).toBe('')
  })
})
