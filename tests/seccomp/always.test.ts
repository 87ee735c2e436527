import { describe, expect, test } from 'vitest'
import { ANSWER, decode } from '../../src/seccomp/bpf.ts'
import { compileProfile } from '../../src/seccomp/compile.ts'
import { ERRNO } from '../../src/seccomp/errno.ts'
import { nativeCall, problemsOf, simulate } from '../../src/seccomp/simulate.ts'
import { ARCHES, type Arch, SYSCALLS } from '../../src/seccomp/syscalls.ts'

const REFUSED = ANSWER.errno | ERRNO.EPERM
const fchmodat = (arch: Arch, mode: bigint) => nativeCall(arch, SYSCALLS[arch].get('fchmodat') ?? -1, [0n, 0n, mode])

describe.each(ARCHES)('a set that is kept whatever the profile says, on %s', (arch) => {
  const always = ['setuid-bits'] as const
  const withoutFchmodat = { extends: 'default', allow: ['fchmodat'], deny: [] } as const

  test.each([['off' as const], [withoutFchmodat]])('holds for %j', (profile) => {
    const { filter } = compileProfile({ profile, arch, always })
    expect(problemsOf(filter)).toEqual([])
    expect(simulate(decode(filter), fchmodat(arch, 0o4755n)).answer).toBe(REFUSED)
    expect(simulate(decode(filter), fchmodat(arch, 0o755n)).answer).toBe(ANSWER.allow)
  })

  test('is missing from the same rules without it: the control', () => {
    const { filter } = compileProfile({ profile: withoutFchmodat, arch })
    expect(simulate(decode(filter), fchmodat(arch, 0o4755n)).answer).toBe(ANSWER.allow)
    expect(compileProfile({ profile: 'off', arch }).filter).toHaveLength(0)
  })

  test('adds nothing else to off', () => {
    const { filter } = compileProfile({ profile: 'off', arch, always })
    const mount = nativeCall(arch, SYSCALLS[arch].get('mount') ?? -1)
    expect(simulate(decode(filter), mount).answer).toBe(ANSWER.allow)
  })
})
