import { describe, expect, test } from 'vitest'
import { ACTION, encode, type Instruction, OPCODE } from '../../src/seccomp/bpf.ts'
import { problemsOf } from './loadable.ts'
import { decode, nativeCall, simulate } from './simulate.ts'

const at = (code: number, k: number, jt = 0, jf = 0): Instruction => ({ code, jt, jf, k })
const allow = at(OPCODE.ret, ACTION.allow)
const kill = at(OPCODE.ret, ACTION.killProcess)

describe('the check of a filter', () => {
  const BAD: readonly (readonly [string, Uint8Array, string])[] = [
    ['no instruction', encode([]), 'expected 1 to 4096 instructions, got 0'],
    ['too many instructions', encode(Array(4097).fill(allow)), 'expected 1 to 4096 instructions, got 4097'],
    ['half an instruction', encode([allow]).slice(0, 5), '5 bytes are no whole instructions'],
    ['an end without an answer', encode([at(OPCODE.load, 0)]), 'the last instruction does not return'],
    ['a jump past the end', encode([at(OPCODE.jump, 1), allow]), '0: jumps past the end'],
    ['a conditional jump past the end', encode([at(OPCODE.jumpEqual, 1, 0, 1), allow]), '0: jumps past the end'],
    [
      'a load next to a word',
      encode([at(OPCODE.load, 2), allow]),
      '0: loads byte 2, where no word of seccomp_data begins',
    ],
    [
      'a load behind the data',
      encode([at(OPCODE.load, 64), allow]),
      '0: loads byte 64, where no word of seccomp_data begins',
    ],
    ['an unknown instruction', encode([at(0x60, 0), allow]), '0: no such instruction: 0x60'],
  ]
  test.each(BAD)('refuses %s', (_, filter, problem) => {
    expect(problemsOf(filter)).toContain(problem)
  })

  test('has nothing against the shortest filter there is', () => {
    expect(problemsOf(encode([allow]))).toEqual([])
  })
})

describe('the simulator', () => {
  const simulated = (program: readonly Instruction[], args: readonly bigint[]) =>
    simulate(decode(encode(program)), nativeCall('x64', 7, args))

  test('reads the high half of an argument behind the low one', () => {
    const program = [at(OPCODE.load, 16 + 8 + 4), at(OPCODE.jumpEqual, 0xdead, 0, 1), kill, allow]
    expect(simulated(program, [0n, 0xdead_0000_0001n])).toEqual({ action: ACTION.killProcess, executed: 3 })
    expect(simulated(program, [0n, 0xdeadn])).toEqual({ action: ACTION.allow, executed: 3 })
  })

  test('compares without a sign', () => {
    const program = [at(OPCODE.load, 16), at(OPCODE.jumpGreaterOrEqual, 0x7fff_ffff, 0, 1), kill, allow]
    expect(simulated(program, [0xffff_ffffn]).action).toBe(ACTION.killProcess)
    expect(simulated(program, [-1n]).action).toBe(ACTION.killProcess)
    expect(simulated(program, [1n]).action).toBe(ACTION.allow)
  })

  test('masks, and jumps far', () => {
    const program = [
      at(OPCODE.load, 16),
      at(OPCODE.and, 0xf),
      at(OPCODE.jumpEqual, 3, 0, 1),
      at(OPCODE.jump, 1),
      allow,
      kill,
    ]
    expect(simulated(program, [0xf3n]).action).toBe(ACTION.killProcess)
    expect(simulated(program, [0xf4n]).action).toBe(ACTION.allow)
  })

  test('complains about a program that runs past its end', () => {
    expect(() => simulated([at(OPCODE.load, 0)], [])).toThrow('the filter runs past its end, at 1')
  })
})
