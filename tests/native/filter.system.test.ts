/** Compares init's conclusions about a filter with the filter's effect. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { ACTION, encode, type Instruction, OFFSET, OPCODE } from '../../src/seccomp/bpf.ts'
import { compileRules } from '../../src/seccomp/compile.ts'
import { PROFILE_NAMES, shippedRules } from '../../src/seccomp/rules.ts'
import { type Arch, MAX_SYSCALL, SYSCALLS } from '../../src/seccomp/syscalls.ts'
import { nativeCall, simulate } from '../seccomp/simulate.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { driver } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'

const ARCH = process.arch as Arch

/** Arguments that rules decide by: none, all bits, flags of namespaces, and another process. */
const ARGUMENTS = [0n, 2n ** 64n - 1n, 0x1000_0000n, 0x5412n, 1n].map((value) => Array(6).fill(value) as bigint[])

const numberOf = (name: string): number => SYSCALLS[ARCH].get(name) ?? -1

/** Numbers that init believes to be let through. */
async function believed(program: readonly Instruction[]): Promise<readonly number[]> {
  const file = join(await temporaryDirectory(), 'filter')
  await writeFile(file, encode(program))
  const { stdout } = await execa(driver('native/filter'), [file, String(MAX_SYSCALL + 5)])
  return stdout.split('\n').filter(Boolean).map(Number)
}

const step = (code: number, k: number, [jt, jf]: readonly [number, number] = [0, 0]): Instruction => ({
  code,
  jt,
  jf,
  k,
})

describeWith(['gcc'], 'a filter, as init reads it', () => {
  test.each(PROFILE_NAMES)('(%s) lets nothing through that it refuses for some argument', async (profile) => {
    const program = compileRules(shippedRules(profile), ARCH)
    const allowed = (number: number) =>
      ARGUMENTS.every((args) => simulate(program, nativeCall(ARCH, number, args)).action === ACTION.allow)
    const numbers = await believed(program)
    expect(numbers.filter((number) => !allowed(number))).toEqual([])
    expect(numbers).toEqual(expect.arrayContaining(['read', 'recvmsg', 'execve'].map(numberOf)))
    expect(numbers).not.toContain(numberOf('ioctl')) // Decided by an argument.
    expect(numbers).not.toContain(numberOf('io_uring_setup'))
  })

  test.each([
    ['is empty', []],
    ['never answers', [step(OPCODE.load, OFFSET.number)]],
    ['jumps past its end', [step(OPCODE.jump, 9), step(OPCODE.ret, ACTION.allow)]],
    ['asks for an argument', [step(OPCODE.load, OFFSET.firstArgument), step(OPCODE.ret, ACTION.allow)]],
    ['calculates', [step(OPCODE.load, OFFSET.number), step(OPCODE.and, 1), step(OPCODE.ret, ACTION.allow)]],
    ['allows with data', [step(OPCODE.ret, ACTION.allow + 1)]],
  ])('that %s lets nothing through', async (_case, program) => {
    expect(await believed(program)).toEqual([])
  })

  test('that always allows lets everything through', async () => {
    expect(await believed([step(OPCODE.ret, ACTION.allow)])).toHaveLength(MAX_SYSCALL + 6)
  })
})
