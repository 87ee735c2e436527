/**
 * Kernels that refuse what this one does: words that start a program under a seccomp filter of the test's own.
 *
 *     const [file, ...words] = await kernelThat([{ refuses: ['openat2'], with: 'ENOSYS' }])
 *
 * What the program starts has the same kernel.
 */
import { writeFile } from 'node:fs/promises'
import { constants, endianness } from 'node:os'
import { join } from 'node:path'
import { ACTION, encode, type Instruction, OFFSET, OPCODE } from '../../src/seccomp/bpf.ts'
import { type Arch, SYSCALLS } from '../../src/seccomp/syscalls.ts'
import { temporaryDirectory } from './directory.ts'
import { guest } from './driver.ts'

export interface Refusal {
  /** Names of system calls. */
  readonly refuses: readonly string[]
  /** Its answer; `success` says yes and does nothing. */
  readonly with: keyof typeof constants.errno | 'success'
  /** Only where the low half of an argument, counted from 0, is at least this. */
  readonly from?: { readonly argument: number; readonly value: number }
  /** Only where it is this. */
  readonly only?: { readonly argument: number; readonly value: number }
}

const numberOf = (name: string): number => {
  const number = SYSCALLS[process.arch as Arch].get(name)
  if (number === undefined) throw new Error(`no system call "${name}" on ${process.arch}`)
  return number
}

const instruction = (code: number, k: number, jt = 0, jf = 0): Instruction => ({ code, jt, jf, k })

/** One call: what it asks, and past it when the call is another one or its argument is smaller. */
function refusing(call: string, { with: errno, from, only }: Refusal): readonly Instruction[] {
  const refusal = instruction(OPCODE.ret, ACTION.errno | (errno === 'success' ? 0 : constants.errno[errno]))
  const tested = from ?? only
  const instructions =
    tested === undefined
      ? [refusal]
      : [
          instruction(OPCODE.load, OFFSET.firstArgument + tested.argument * OFFSET.argumentBytes),
          instruction(from === undefined ? OPCODE.jumpEqual : OPCODE.jumpGreaterOrEqual, tested.value, 0, 1),
          refusal,
        ]
  return [
    instruction(OPCODE.load, OFFSET.number),
    instruction(OPCODE.jumpEqual, numberOf(call), 0, instructions.length),
    ...instructions,
  ]
}

const filterOf = (refusals: readonly Refusal[]): Uint8Array =>
  encode([
    ...refusals.flatMap((refusal) => refusal.refuses.flatMap((call) => refusing(call, refusal))),
    instruction(OPCODE.ret, ACTION.allow),
  ])

/** Words before those of a program; they last as long as the running test. */
export async function kernelThat(refusals: readonly Refusal[]): Promise<readonly [string, string]> {
  if (endianness() !== 'LE') throw new Error('the filters of these tests are made for little-endian machines')
  const directory = await temporaryDirectory({ mode: 0o755 })
  const filter = join(directory, 'filter')
  await writeFile(filter, filterOf(refusals))
  return [guest('apply-filter'), filter]
}
