/**
 * Classic BPF as seccomp uses it: include/uapi/linux/bpf_common.h, filter.h, seccomp.h, audit.h. Numbers and bytes, nothing else.
 */
import type { Arch } from './syscalls.ts'

/** One `struct sock_filter`. */
export interface Instruction {
  readonly code: number
  /** Instructions to skip when the test holds, 0 to 255. */
  readonly jt: number
  /** The same when it does not hold. */
  readonly jf: number
  /** 32 bits, unsigned. */
  readonly k: number
}

export const OPCODE = {
  /** A = 32-bit word at byte k of struct seccomp_data. */
  load: 0x20,
  /** Skip k instructions. */
  jump: 0x05,
  jumpEqual: 0x15,
  jumpGreater: 0x25,
  jumpGreaterOrEqual: 0x35,
  /** Jumps when A & k is not 0. */
  jumpAnyBit: 0x45,
  /** A = A & k. */
  and: 0x54,
  /** The answer is k. */
  ret: 0x06,
} as const

/** Bytes of one `struct sock_filter`. */
export const INSTRUCTION_BYTES = 8

/** Byte offsets in struct seccomp_data; both machines are little-endian, so the low half comes first. */
export const OFFSET = { number: 0, arch: 4, firstArgument: 16, argumentBytes: 8, highHalf: 4, end: 64 } as const

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64. */
export const AUDIT_ARCH: Readonly<Record<Arch, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 }

/** SECCOMP_RET_*; the errno goes into the low 16 bits. */
export const ACTION = { killProcess: 0x8000_0000, errno: 0x0005_0000, allow: 0x7fff_0000 } as const

/** The bytes that the kernel reads: code u16, jt u8, jf u8, k u32, little-endian. */
export function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(program.length * INSTRUCTION_BYTES)
  const view = new DataView(bytes.buffer)
  for (const [index, { code, jt, jf, k }] of program.entries()) {
    const at = index * INSTRUCTION_BYTES
    view.setUint16(at, code, true)
    view.setUint8(at + 2, jt)
    view.setUint8(at + 3, jf)
    view.setUint32(at + 4, k, true)
  }
  return bytes
}
