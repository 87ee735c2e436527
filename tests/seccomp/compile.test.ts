import { describe, expect, test } from 'vitest'
import { ACTION, AUDIT_ARCH, OPCODE } from '../../src/seccomp/bpf.ts'
import { compileProfile } from '../../src/seccomp/compile.ts'
import { ERRNO, type ErrnoName } from '../../src/seccomp/errno.ts'
import {
  clausesFor,
  PROFILE_NAMES,
  type ProfileName,
  type SeccompRules,
  shippedRules,
} from '../../src/seccomp/rules.ts'
import { ARCHES, type Arch, MAX_SYSCALL, SYSCALL_NAMES, SYSCALLS } from '../../src/seccomp/syscalls.ts'
import { declared } from './declared.ts'
import { problemsOf } from './loadable.ts'
import { ALL, RAGGED } from './rule-sets.ts'
import { decode, nativeCall, simulate } from './simulate.ts'
import { REFUSED } from './words.ts'

const COMBINATIONS = ARCHES.flatMap((arch) => PROFILE_NAMES.map((profile) => ({ arch, profile })))
const errno = (name: ErrnoName) => ACTION.errno | ERRNO[name]

const programOf = (profile: ProfileName | SeccompRules, arch: Arch) => decode(compileProfile({ profile, arch }).filter)

describe('a compiled filter', () => {
  test.each(ALL)('of $title on $arch is one that the kernel would load', ({ arch, rules }) => {
    expect(problemsOf(compileProfile({ profile: rules, arch }).filter)).toEqual([])
  })

  test.each(ALL)('of $title on $arch answers every number as declared', ({ arch, rules }) => {
    const program = programOf(rules, arch)
    const numbers = [...Array(MAX_SYSCALL + 65).keys()]
    const differing = numbers
      .map((number) => nativeCall(arch, number))
      .filter((call) => simulate(program, call).action !== declared(rules, arch, call))
    expect(differing).toEqual([])
  })

  test.each(COMBINATIONS)(
    'of $profile on $arch answers ENOSYS to x32 and to numbers that do not exist',
    ({ arch, profile }) => {
      const program = programOf(profile, arch)
      const x32 = [...Array(1024).keys()].map((number) => 0x4000_0000 + number)
      const strange = [...x32, MAX_SYSCALL + 1, 600, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, -1]
      const actions = new Set(strange.map((number) => simulate(program, nativeCall(arch, number)).action))
      expect([...actions]).toEqual([errno('ENOSYS')])
    },
  )

  test.each(COMBINATIONS)(
    'of $profile on $arch ends the process for a call of another machine',
    ({ arch, profile }) => {
      const program = programOf(profile, arch)
      const i386 = 0x4000_0003
      const arm = 0x4000_0028
      const other = arch === 'x64' ? AUDIT_ARCH.arm64 : AUDIT_ARCH.x64
      const actions = [i386, arm, other, 0, 0xffff_ffff].flatMap((foreign) =>
        [0, 1, 16, MAX_SYSCALL].map((number) => simulate(program, { number, arch: foreign, args: [] }).action),
      )
      expect(new Set(actions)).toEqual(new Set([ACTION.killProcess]))
    },
  )

  test('long ways between instructions are bridged: the ragged filter is longer than a jump reaches', () => {
    const program = programOf(RAGGED, 'x64')
    expect(program.length).toBeGreaterThan(400)
    expect(program.filter(({ code }) => code === OPCODE.jump).length).toBeGreaterThan(0)
  })

  test('`off` is an empty filter', () => {
    expect(compileProfile({ profile: 'off', arch: 'x64' })).toEqual({ filter: new Uint8Array(0), instructions: 0 })
  })

  test.each(COMBINATIONS)(
    'of $profile on $arch is short: less than 200 instructions, at most 20 to an answer without arguments',
    ({ arch, profile }) => {
      const program = programOf(profile, arch)
      const plain = [...clausesFor(shippedRules(profile), arch)].filter(([, clauses]) => clauses.length === 0)
      expect(program.length).toBeLessThan(200)
      expect(
        Math.max(...plain.map(([number]) => simulate(program, nativeCall(arch, number)).executed)),
      ).toBeLessThanOrEqual(20)
    },
  )
})

/** Written by hand from what the profiles promise, independent of how the sets are declared: an answer, and the arguments that get it. */
type Expectation = readonly [
  profile: ProfileName,
  name: string,
  answer: ErrnoName | 'allow',
  ...args: readonly (readonly bigint[])[],
]
const HIGH = 0xdead_beef_0000_0000n
const EXPECTED: readonly Expectation[] = [
  ['default', 'seccomp', 'allow', [1n, 8n]],
  // In clone's flags 0x80 belongs to the exit signal, in unshare's it is CLONE_NEWTIME.
  ['default', 'clone', 'allow', [0x1200011n], [0x3d0f00n], [0x3d0f00n | HIGH], [0x91n]],
  ['default', 'clone', 'EPERM', [0x1000_0011n], [0x1000_0011n | HIGH], [0x0002_0000n], [0x4000_0000n]],
  ['default', 'unshare', 'EPERM', [0x80n], [0x1000_0000n], [0x1000_0000n | HIGH], [0x600n | HIGH], [0x0010_0000n]],
  ['default', 'unshare', 'allow', [0x600n]],
  ['default', 'personality', 'allow', [0n], [0x40000n], [0xffff_ffffn]],
  ['default', 'personality', 'EPERM', [8n], [8n | HIGH], [0x44_0000n]],
  ['default', 'ioctl', 'EPERM', [0n, 0x5412n], [0n, 0x5412n | HIGH], [0n, 0x541cn], [0n, 0x5423n | HIGH]],
  ['default', 'ioctl', 'allow', [0n, 0x5413n]],
  ['default', 'socket', 'allow', [1n, 1n, 0n], [2n, 0x80001n, 6n], [10n, 2n, 0n], [16n, 3n, 0n], [16n, 3n, 4n]],
  [
    'default',
    'socket',
    'EAFNOSUPPORT',
    [40n, 1n, 0n],
    [40n | HIGH, 1n, 0n],
    [38n, 5n, 0n],
    [17n, 3n, 0n],
    [2n, 0x8000an, 3n],
    [2n | HIGH, 10n | HIGH, 3n],
  ],
  ['default', 'socket', 'EPROTONOSUPPORT', [16n, 3n, 6n], [16n, 3n, 15n], [16n, 3n, 16n], [16n | HIGH, 3n, 12n | HIGH]],
  ['default', 'socketpair', 'allow', [1n, 1n, 0n]],
  ['default', 'socketpair', 'EAFNOSUPPORT', [30n, 1n, 0n]],
  ['default', 'fchmodat', 'allow', [0n, 0n, 0o755n], [0n, 0n, 0o1777n]],
  ['default', 'fchmodat', 'EPERM', [0n, 0n, 0o4755n], [0n, 0n, 0o2755n], [0n, 0n, 0o4755n | HIGH]],
  ['default', 'fchmodat2', 'EPERM', [0n, 0n, 0o4755n, 0x100n]],
  ['default', 'fchmod', 'EPERM', [3n, 0o6755n]],
  ['default', 'mknodat', 'EPERM', [0n, 0n, 0o104755n]],
  ['default', 'mknodat', 'allow', [0n, 0n, 0o10644n]],
  [
    'default',
    'openat',
    'EPERM',
    [0n, 0n, 0x41n, 0o4755n],
    [0n, 0n, 0x41n | HIGH, 0o2755n | HIGH],
    [0n, 0n, 0x41_0002n, 0o4755n],
    [0n, 0n, 0x40_4002n, 0o4755n],
  ],
  // Without O_CREAT the kernel does not read the mode, and the register holds whatever it held.
  ['default', 'openat', 'allow', [0n, 0n, 0x41n, 0o644n], [0n, 0n, 0n, 0o7777n]],
  ['default', 'mkdirat', 'allow', [0n, 0n, 0o2755n]],
  ['default', 'setsockopt', 'allow', [3n, 0n, 64n]],
  ['strict', 'socket', 'allow', [16n, 3n, 0n], [2n, 0x80801n, 6n], [1n, 5n, 0n]],
  ['strict', 'socket', 'EPROTONOSUPPORT', [16n, 3n, 4n], [2n, 1n, 132n], [2n, 5n, 0n], [10n, 3n, 58n]],
  ['strict', 'seccomp', 'EPERM', [1n, 8n]],
  ['strict', 'seccomp', 'allow', [1n, 1n]],
  ...(['default', 'nested'] as const).flatMap(
    (profile) =>
      [
        [profile, 'fcntl', 'EPERM', [3n, 1024n, 0n], [3n, 1024n | HIGH, 1n], [3n, 1026n, 4n]],
        [profile, 'fcntl', 'allow', [3n, 0n], [3n, 1025n], [3n, 1030n, 3n], [3n, 1031n, 65536n]],
      ] as const,
  ),
  ['nested', 'unshare', 'allow', [0x1002_0000n]],
  ['nested', 'clone', 'allow', [0x1000_0011n]],
  ['nested', 'socket', 'EAFNOSUPPORT', [17n, 3n, 0n]],
  ['nested', 'fchmodat', 'EPERM', [0n, 0n, 0o4755n]],
  // arptables (96) and ebtables (128) have tables of their own, and a second number each.
  [
    'nested',
    'setsockopt',
    'EPERM',
    [3n, 0n, 64n],
    [3n, 41n, 64n | HIGH],
    [3n, 0n, 96n],
    [3n, 0n, 97n],
    [3n, 0n, 128n],
    [3n, 0n, 129n],
    [3n, 41n, 128n],
  ],
  ['nested', 'setsockopt', 'allow', [3n, 0n, 98n], [3n, 0n, 130n], [3n, 41n, 67n], [3n, 6n, 64n]],
  ['default', 'chmod', 'EPERM', [0n, 0o4755n]],
  ['default', 'chmod', 'allow', [0n, 0o755n]],
  ['default', 'creat', 'EPERM', [0n, 0o2755n]],
  ['default', 'mknod', 'EPERM', [0n, 0o104755n]],
  ['default', 'open', 'EPERM', [0n, 0x41n, 0o4755n]],
  ['default', 'open', 'allow', [0n, 0n, 0o4755n]],
  ['default', 'mkdir', 'allow', [0n, 0o2755n]],
]
/** Calls refused for every argument: both what must be among them, and that nothing else is. */
describe('what a profile refuses always', () => {
  test.each(COMBINATIONS)('is for $profile on $arch what is written down by hand', ({ arch, profile }) => {
    const program = programOf(profile, arch)
    const numbers = SYSCALLS[arch]
    const expected = [...REFUSED[profile]].filter(([name]) => numbers.has(name))
    const actions = expected.map(([name]) => [name, simulate(program, nativeCall(arch, numbers.get(name)!)).action])
    expect(actions).toEqual(expected.map(([name, error]) => [name, errno(error)]))
    const always = [...clausesFor(shippedRules(profile), arch)].filter(
      ([, [first]]) => first?.when?.length === undefined && first !== undefined,
    )
    const names = new Map([...numbers].map(([name, number]) => [number, name]))
    expect(always.map(([number]) => names.get(number)).sort()).toEqual(expected.map(([name]) => name).sort())
  })

  test.each(PROFILE_NAMES)('names for %s only calls that exist somewhere', (profile) => {
    expect([...REFUSED[profile].keys()].filter((name) => !SYSCALL_NAMES.includes(name))).toEqual([])
  })
})

const show = (args: readonly bigint[]) => `(${args.map((value) => `0x${value.toString(16)}`).join(', ')})`
const words = (answer: number) => (answer === ACTION.allow ? 'allow' : answer)

describe('a promise of the profiles', () => {
  // aarch64 does not have calls such as chmod.
  const rows = ARCHES.flatMap((arch) =>
    EXPECTED.filter(([, name]) => arch === 'x64' || SYSCALLS[arch].has(name)).flatMap(
      ([profile, name, answer, ...all]) =>
        all.map((args) => ({ arch, profile, name, args, shown: show(args), answer })),
    ),
  )
  test.each(rows)(
    '$profile on $arch: $name $shown is answered with $answer',
    ({ arch, profile, name, args, answer }) => {
      const program = programOf(profile, arch)
      const got = simulate(program, nativeCall(arch, SYSCALLS[arch].get(name)!, args)).action
      expect(words(got)).toBe(answer === 'allow' ? 'allow' : errno(answer))
    },
  )
})
