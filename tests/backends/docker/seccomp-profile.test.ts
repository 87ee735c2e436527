import { describe, expect, test } from 'vitest'
import { dockerSeccomp } from '../../../src/backends/docker/seccomp-profile.ts'
import { PROFILE_NAMES } from '../../../src/seccomp/rules.ts'
import { ARCHES } from '../../../src/seccomp/syscalls.ts'
import { isAllowed } from './seccomp-rules.ts'

const COMBINATIONS = ARCHES.flatMap((arch) => PROFILE_NAMES.map((profile) => ({ arch, profile })))

describe("the profile in Docker's words", () => {
  test.each(COMBINATIONS)('keeps for $profile on $arch the error of what is always refused', ({ arch, profile }) => {
    const json = dockerSeccomp(profile, arch)
    const errnoOf = (name: string) => json.syscalls.find(({ names }) => names.includes(name))?.errnoRet
    expect([errnoOf('io_uring_setup'), errnoOf('bpf'), errnoOf('openat2')]).toEqual([38, 1, 38])
  })

  test.each(COMBINATIONS)(
    'asks on $profile of $arch about an argument only once in a rule, with numbers that JSON keeps',
    ({ arch, profile }) => {
      const rules = dockerSeccomp(profile, arch).syscalls.map(({ args = [] }) => args)
      for (const args of rules) {
        expect(new Set(args.map(({ index }) => index)).size).toBe(args.length)
        expect(args.every(({ value, valueTwo }) => Number.isSafeInteger(value) && Number.isSafeInteger(valueTwo))).toBe(
          true,
        )
      }
    },
  )

  test('follows the rules of a file', () => {
    const json = dockerSeccomp(
      { extends: 'default', allow: ['bpf'], deny: [{ names: ['kill'], errno: 'EACCES' }] },
      'x64',
    )
    expect(isAllowed(json, 'bpf', [])).toBe(true)
    expect(json.syscalls.find(({ names }) => names.includes('kill'))).toEqual({
      names: ['kill'],
      action: 'SCMP_ACT_ERRNO',
      errnoRet: 13,
    })
  })

  test('names the machine, and answers EPERM to what is left over', () => {
    const { architectures, defaultAction, defaultErrnoRet } = dockerSeccomp('default', 'arm64')
    expect({ architectures, defaultAction, defaultErrnoRet }).toEqual({
      architectures: ['SCMP_ARCH_AARCH64'],
      defaultAction: 'SCMP_ACT_ERRNO',
      defaultErrnoRet: 1,
    })
  })
})
