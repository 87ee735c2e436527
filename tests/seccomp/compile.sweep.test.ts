/** Every number and every border, compared with the declared rules. */
import { describe, expect, test } from 'vitest'
import { compileProfile } from '../../src/seccomp/compile.ts'
import { clausesFor, type SeccompRules } from '../../src/seccomp/rules.ts'
import { type Arch, SYSCALLS } from '../../src/seccomp/syscalls.ts'
import { declared, interestingArguments } from './declared.ts'
import { ALL, FAR, RAGGED } from './rule-sets.ts'
import { decode, nativeCall, simulate } from './simulate.ts'

const programOf = (rules: SeccompRules, arch: Arch) => decode(compileProfile({ profile: rules, arch }).filter)

describe('a compiled filter', () => {
  test.each(ALL)('of $title on $arch answers arguments at every border as declared', ({ arch, rules }) => {
    const program = programOf(rules, arch)
    const calls = [...clausesFor(rules, arch)].flatMap(([number, clauses]) =>
      interestingArguments(clauses).map((args) => nativeCall(arch, number, args)),
    )
    const differing = calls.filter((call) => simulate(program, call).action !== declared(rules, arch, call))
    expect(calls.length).toBeGreaterThan(SYSCALLS[arch].size)
    expect(differing).toEqual([])
  })

  test('is right at every length: a jump that just reaches and one that just does not', () => {
    const differing = RAGGED.deny.flatMap((_, index) => {
      const rules: SeccompRules = { ...FAR, deny: FAR.deny.slice(index) }
      const program = programOf(rules, 'x64')
      return [...SYSCALLS.x64.values()]
        .map((number) => nativeCall('x64', number, [16n, 0x5413n, 0n]))
        .filter((call) => simulate(program, call).action !== declared(rules, 'x64', call))
        .map(({ number }) => ({ index, number }))
    })
    expect(differing).toEqual([])
  })
})
