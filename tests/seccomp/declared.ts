/** The declared rules, read as plainly as possible: what every translation of them is compared with. */
import { ACTION, AUDIT_ARCH } from '../../src/seccomp/bpf.ts'
import { ERRNO } from '../../src/seccomp/errno.ts'
import {
  type Clause,
  PROFILES,
  type Refusal,
  SETS,
  type SeccompRules,
  type SetName,
  type Test,
} from '../../src/seccomp/rules.ts'
import { type Arch, SYSCALLS } from '../../src/seccomp/syscalls.ts'
import type { Call } from './simulate.ts'

function holds(test: Test, args: readonly bigint[]): boolean {
  const argument = args[test.argument] ?? 0n
  const word = test.half === 'high' ? (argument >> 32n) & 0xffff_ffffn : argument & 0xffff_ffffn
  if ('anyBit' in test) return (word & BigInt(test.anyBit)) !== 0n
  const masked = Number(word & BigInt(test.mask ?? 0xffff_ffff))
  return 'among' in test ? test.among.includes(masked) : !test.notAmong.includes(masked)
}

const invert = (numbers: ReadonlyMap<string, number>) => new Map([...numbers].map(([name, number]) => [number, name]))
const NAMES = { x64: invert(SYSCALLS.x64), arm64: invert(SYSCALLS.arm64) }

function firstThatFits(sets: readonly SetName[], name: string, args: readonly bigint[]): Refusal | undefined {
  const refusals = sets.flatMap((set): readonly Refusal[] => SETS[set].refusals)
  return refusals.find(({ names, when }) => names.includes(name) && (when ?? []).every((test) => holds(test, args)))
}

/** Verdict of the rules about a call on a machine, as SECCOMP_RET_*. */
export function declared(rules: SeccompRules, arch: Arch, call: Call, always: readonly SetName[] = []): number {
  if (call.arch !== AUDIT_ARCH[arch]) return ACTION.killProcess
  const name = NAMES[arch].get(call.number)
  if (name === undefined) return ACTION.errno | ERRNO.ENOSYS
  const kept = firstThatFits(always, name, call.args)
  if (kept !== undefined) return ACTION.errno | ERRNO[kept.errno]
  const denied = rules.deny.find(({ names }) => names.includes(name))
  if (denied !== undefined) return ACTION.errno | ERRNO[denied.errno]
  if (rules.allow.includes(name)) return ACTION.allow
  const sets = rules.extends === 'off' ? [] : PROFILES[rules.extends].sets
  const fitting = firstThatFits(sets, name, call.args)
  return fitting === undefined ? ACTION.allow : ACTION.errno | ERRNO[fitting.errno]
}

/** Set above what the kernel reads of an int: must change nothing where 32 bits are compared. */
const ABOVE = [0xf_ffffn << 32n]

function valuesNear(test: Test): readonly bigint[] {
  const bits = (word: number) =>
    Array.from({ length: 32 }, (_, bit) => BigInt(word) & (1n << BigInt(bit))).filter(Boolean)
  // Up to bit 52, the last one that Docker's JSON can ask about.
  const shift = test.half === 'high' ? 21n : 0n
  if ('anyBit' in test) return bits(test.anyBit).map((bit) => bit << shift)
  return ('among' in test ? test.among : test.notAmong)
    .map(BigInt)
    .flatMap((value) => [value, value + 1n, value ^ 0x8000_0000n])
}

function valuesFor(clauses: readonly Clause[], argument: number): readonly bigint[] {
  const tests = clauses.flatMap(({ when }) => when ?? []).filter((test) => test.argument === argument)
  if (tests.length === 0) return [0n]
  const near = [0n, 0xffff_ffffn, 0x0008_0001n, ...tests.flatMap(valuesNear)]
  return [...new Set([...near, ...near.flatMap((value) => ABOVE.map((above) => value | above))])]
}

/** Arguments at and around every border that the clauses of one system call know, in all combinations. */
export function interestingArguments(clauses: readonly Clause[]): readonly (readonly bigint[])[] {
  return [0, 1, 2, 3, 4, 5].reduce<readonly (readonly bigint[])[]>(
    (lists, argument) => {
      const values = valuesFor(clauses, argument)
      return lists.flatMap((list) => values.map((value) => [...list, value]))
    },
    [[]],
  )
}
