import { describe, expect, test } from 'vitest'
import { dockerSeccomp } from '../../../src/backends/docker/seccomp-profile.ts'
import { ACTION } from '../../../src/seccomp/bpf.ts'
import { clausesFor, PROFILE_NAMES, shippedRules } from '../../../src/seccomp/rules.ts'
import { ARCHES, SYSCALLS } from '../../../src/seccomp/syscalls.ts'
import { declared, interestingArguments } from '../../seccomp/declared.ts'
import { nativeCall } from '../../seccomp/simulate.ts'
import { isAllowed } from './seccomp-rules.ts'

const COMBINATIONS = ARCHES.flatMap((arch) => PROFILE_NAMES.map((profile) => ({ arch, profile })))

describe("the profile in Docker's words", () => {
  test.each(COMBINATIONS)(
    'allows for $profile on $arch what the filter allows, and nothing else',
    ({ arch, profile }) => {
      const json = dockerSeccomp(profile, arch)
      const clauses = clausesFor(shippedRules(profile), arch)
      const differing = [...SYSCALLS[arch]].flatMap(([name, number]) =>
        interestingArguments(clauses.get(number) ?? [])
          .filter((args) => {
            const isDeclared = declared(shippedRules(profile), arch, nativeCall(arch, number, args)) === ACTION.allow
            return isAllowed(json, name, args) !== isDeclared
          })
          .map((args) => ({ name, args })),
      )
      expect(differing).toEqual([])
    },
  )
})
