import { describe, expect, test } from 'vitest'
import { processorsIn, statusLine } from '../../src/os/proc-status.ts'

describe('Texts of /proc', () => {
  test.each([
    ['0-3,8', [0, 1, 2, 3, 8]],
    ['0', [0]],
    ['', []],
    ['x', []],
    ['0-1\n', [0, 1]],
  ])('the list %j names the processors %j', (list, numbers) => {
    expect(processorsIn(list)).toEqual(numbers)
  })

  test('a line is found by its whole name', () => {
    expect(statusLine('CapEffX:\t1\nCapEff:\t00ff\n', 'CapEff')).toBe('00ff')
    expect(statusLine('', 'CapEff')).toBe('')
  })
})
