/** Container runtimes hand the profile to libseccomp; so do we, and run what it makes of it. */
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { dockerSeccomp } from '../../../src/backends/docker/seccomp-profile.ts'
import { ACTION } from '../../../src/seccomp/bpf.ts'
import { clausesFor, PROFILE_NAMES, shippedRules } from '../../../src/seccomp/rules.ts'
import { SYSCALLS } from '../../../src/seccomp/syscalls.ts'
import { declared, interestingArguments } from '../../seccomp/declared.ts'
import { ARCH } from '../../seccomp/fixtures.ts'
import { decode, nativeCall, simulate } from '../../seccomp/simulate.ts'
import { describeWith } from '../../support/needs.ts'

describeWith('python', "Docker's words, compiled by libseccomp", () => {
  for (const profile of PROFILE_NAMES)
    test(`allow for ${profile} what our filter allows`, async ({ skip }) => {
      const input = JSON.stringify(dockerSeccomp(profile, ARCH))
      const script = join(import.meta.dirname, '../../programs/libseccomp-filter.py')
      const { stdout, exitCode, stderr } = await execa('python3', [script], {
        input,
        encoding: 'buffer',
        reject: false,
      })
      skip(exitCode === 77, 'there is no libseccomp')
      expect(exitCode, Buffer.from(stderr).toString()).toBe(0)
      const program = decode(stdout)
      const unlisted = new Set(
        Buffer.from(stderr)
          .toString()
          .split('\n')
          .map((name) => SYSCALLS[ARCH].get(name)),
      )
      expect(unlisted.size).toBeLessThan(40)
      const rules = shippedRules(profile)
      const isAllowed = (number: number, args: readonly bigint[]) =>
        simulate(program, nativeCall(ARCH, number, args)).action === ACTION.allow
      const differing = [...clausesFor(rules, ARCH)]
        // An older libseccomp refuses calls that it does not know, as runtimes do.
        .filter(([number]) => !unlisted.has(number))
        .flatMap(([number, clauses]) => interestingArguments(clauses).map((args) => ({ number, args })))
        .filter(
          ({ number, args }) =>
            isAllowed(number, args) !== (declared(rules, ARCH, nativeCall(ARCH, number, args)) === ACTION.allow),
        )
      expect(differing.slice(0, 5)).toEqual([])
    })
})
