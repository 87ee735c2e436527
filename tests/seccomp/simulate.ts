/**
 * The kernel's side of a filter, in TypeScript: what it would answer.
 */
import { AUDIT_ARCH, INSTRUCTION_BYTES, type Instruction, OFFSET, OPCODE } from '../../src/seccomp/bpf.ts'
import type { Arch } from '../../src/seccomp/syscalls.ts'

/** BPF_MAXINSNS: the kernel takes no longer filter. */
export const MAX_INSTRUCTIONS = 4096

/** `struct seccomp_data`. */
export interface Call {
  /** 32 bits; may carry the x32 bit or be -1. */
  readonly number: number
  /** AUDIT_ARCH_* of the caller. */
  readonly arch: number
  /** Missing arguments are 0; only the low 64 bits count. */
  readonly args: readonly bigint[]
}

export interface SimulatedCall {
  /** SECCOMP_RET_* with its data. */
  readonly action: number
  /** Instructions that were executed. */
  readonly executed: number
}

export const nativeCall = (arch: Arch, number: number, args: readonly bigint[] = []): Call => ({
  number,
  arch: AUDIT_ARCH[arch],
  args,
})

const low32 = (value: bigint): number => Number(BigInt.asUintN(32, value))

function word({ number, arch, args }: Call, offset: number): number {
  if (offset === OFFSET.number) return number >>> 0
  if (offset === OFFSET.arch) return arch >>> 0
  const index = Math.floor((offset - OFFSET.firstArgument) / OFFSET.argumentBytes)
  const value = args[index] ?? 0n
  return offset % OFFSET.argumentBytes === 0 ? low32(value) : low32(value >> 32n)
}

const CONDITIONS: ReadonlyMap<number, (a: number, k: number) => boolean> = new Map([
  [OPCODE.jumpEqual, (a: number, k: number) => a === k],
  [OPCODE.jumpGreater, (a: number, k: number) => a > k],
  [OPCODE.jumpGreaterOrEqual, (a: number, k: number) => a >= k],
  [OPCODE.jumpAnyBit, (a: number, k: number) => (a & k) !== 0],
])

/**
 * Runs a filter on one call.
 * @param program what `decode` makes of the bytes
 * @throws RangeError for a program that the kernel would not load
 */
export function simulate(program: readonly Instruction[], call: Call): SimulatedCall {
  let accumulator = 0
  let at = 0
  for (let executed = 1; executed <= MAX_INSTRUCTIONS; executed++) {
    const instruction = program[at]
    if (instruction === undefined) throw new RangeError(`the filter runs past its end, at ${at}`)
    const { code, jt, jf, k } = instruction
    const condition = CONDITIONS.get(code)
    at += 1
    if (code === OPCODE.ret) return { action: k, executed }
    if (code === OPCODE.load) accumulator = word(call, k)
    else if (code === OPCODE.and) accumulator = (accumulator & k) >>> 0
    else if (code === OPCODE.jump) at += k
    else if (condition !== undefined) at += condition(accumulator, k) ? jt : jf
    else throw new RangeError(`no such instruction: 0x${code.toString(16)}`)
  }
  throw new RangeError('the filter does not end')
}

/** Turns bytes back into instructions. A rest shorter than one instruction is left out. */
export function decode(bytes: Uint8Array): readonly Instruction[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: Math.floor(bytes.length / INSTRUCTION_BYTES) }, (_, index) => {
    const at = index * INSTRUCTION_BYTES
    return {
      code: view.getUint16(at, true),
      jt: view.getUint8(at + 2),
      jf: view.getUint8(at + 3),
      k: view.getUint32(at + 4, true),
    }
  })
}
