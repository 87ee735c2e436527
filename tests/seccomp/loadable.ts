/** Finds in a filter the problems that the kernel would find. */
import { INSTRUCTION_BYTES, type Instruction, OFFSET, OPCODE } from '../../src/seccomp/bpf.ts'
import { decode, MAX_INSTRUCTIONS } from './simulate.ts'

const CONDITIONS: ReadonlySet<number> = new Set([
  OPCODE.jumpEqual,
  OPCODE.jumpGreater,
  OPCODE.jumpGreaterOrEqual,
  OPCODE.jumpAnyBit,
])

function problemOf({ code, jt, jf, k }: Instruction, index: number, length: number): string | undefined {
  const last = length - 1
  if (code === OPCODE.load)
    return k % 4 === 0 && k < OFFSET.end ? undefined : `${index}: loads byte ${k}, where no word of seccomp_data begins`
  if (code === OPCODE.jump) return index + 1 + k <= last ? undefined : `${index}: jumps past the end`
  if (CONDITIONS.has(code)) return index + 1 + Math.max(jt, jf) <= last ? undefined : `${index}: jumps past the end`
  return code === OPCODE.and || code === OPCODE.ret
    ? undefined
    : `${index}: no such instruction: 0x${code.toString(16)}`
}

/**
 * The problems that the kernel would find in a filter (bpf_check_classic in net/core/filter.c, seccomp_check_filter in kernel/seccomp.c),
 * for the instructions that we use. Jumps go forward by construction, so a filter without problems ends.
 */
export function problemsOf(filter: Uint8Array): readonly string[] {
  const program = decode(filter)
  const whole = filter.length % INSTRUCTION_BYTES === 0 ? [] : [`${filter.length} bytes are no whole instructions`]
  const size =
    program.length > 0 && program.length <= MAX_INSTRUCTIONS
      ? []
      : [`expected 1 to ${MAX_INSTRUCTIONS} instructions, got ${program.length}`]
  const end = program.at(-1)?.code === OPCODE.ret ? [] : ['the last instruction does not return']
  const inner = program.map((instruction, index) => problemOf(instruction, index, program.length))
  return [...whole, ...size, ...end, ...inner.filter((problem) => problem !== undefined)]
}
