import { describe, expect, test } from 'vitest'
import { ACTION, AUDIT_ARCH, decode, OPCODE } from '../../src/seccomp/bpf.ts'
import { compileProfile, toHex } from '../../src/seccomp/compile.ts'
import { ERRNO, type ErrnoName } from '../../src/seccomp/errno.ts'
import { clausesFor, PROFILE_NAMES, type ProfileName, rulesOf, type SeccompRules } from '../../src/seccomp/rules.ts'
import { nativeCall, problemsOf, simulate } from '../../src/seccomp/simulate.ts'
import { ARCHES, type Arch, MAX_SYSCALL, SYSCALL_NAMES, SYSCALLS } from '../../src/seccomp/syscalls.ts'
import { declared } from './declared.ts'
import { ALL, RAGGED } from './rule-sets.ts'
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

  test('the same rules give the same bytes', () => {
    const once = () => toHex(compileProfile({ profile: 'default', arch: 'x64' }).filter)
    expect(once()).toBe(once())
  })

  test('`off` is an empty filter', () => {
    expect(compileProfile({ profile: 'off', arch: 'x64' })).toEqual({ filter: new Uint8Array(0), instructions: 0 })
  })

  test('hexadecimal has two digits for every byte', () => {
    expect(toHex(Uint8Array.of(0, 6, 255))).toBe('0006ff')
  })

  test.each(COMBINATIONS)(
    'of $profile on $arch is short: less than 200 instructions, at most 20 to an answer without arguments',
    ({ arch, profile }) => {
      const program = programOf(profile, arch)
      const plain = [...clausesFor(rulesOf(profile), arch)].filter(([, clauses]) => clauses.length === 0)
      expect(program.length).toBeLessThan(200)
      expect(
        Math.max(...plain.map(([number]) => simulate(program, nativeCall(arch, number)).executed)),
      ).toBeLessThanOrEqual(20)
    },
  )
})

/** Written by hand from what the profiles promise, independent of how the sets are declared. */
type Expectation = readonly [profile: ProfileName, name: string, args: readonly bigint[], answer: ErrnoName | 'allow']
const HIGH = 0xdead_beef_0000_0000n
const EXPECTED: readonly Expectation[] = [
  ['default', 'read', [], 'allow'],
  ['default', 'execve', [], 'allow'],
  ['default', 'ptrace', [], 'allow'],
  ['default', 'process_vm_readv', [], 'allow'],
  ['default', 'seccomp', [1n, 8n], 'allow'],
  ['default', 'init_module', [], 'EPERM'],
  ['default', 'bpf', [], 'EPERM'],
  ['default', 'keyctl', [], 'EPERM'],
  ['default', 'mount', [], 'EPERM'],
  ['default', 'setns', [], 'EPERM'],
  ['default', 'userfaultfd', [1n], 'EPERM'],
  ['default', 'io_uring_setup', [], 'ENOSYS'],
  ['default', 'fsopen', [], 'ENOSYS'],
  ['default', 'clone3', [], 'ENOSYS'],
  ['default', 'openat2', [], 'ENOSYS'],
  ['default', 'statmount', [], 'ENOSYS'],
  ['default', 'clone', [0x1200011n], 'allow'],
  ['default', 'clone', [0x3d0f00n], 'allow'],
  ['default', 'clone', [0x3d0f00n | HIGH], 'allow'],
  ['default', 'clone', [0x1000_0011n], 'EPERM'],
  ['default', 'clone', [0x1000_0011n | HIGH], 'EPERM'],
  ['default', 'clone', [0x0002_0000n], 'EPERM'],
  ['default', 'clone', [0x4000_0000n], 'EPERM'],
  // In clone's flags 0x80 belongs to the exit signal, in unshare's it is CLONE_NEWTIME.
  ['default', 'clone', [0x91n], 'allow'],
  ['default', 'unshare', [0x80n], 'EPERM'],
  ['default', 'unshare', [0x600n], 'allow'],
  ['default', 'unshare', [0x1000_0000n], 'EPERM'],
  ['default', 'unshare', [0x1000_0000n | HIGH], 'EPERM'],
  ['default', 'unshare', [0x600n | HIGH], 'EPERM'],
  ['default', 'unshare', [0x0010_0000n], 'EPERM'],
  ['default', 'personality', [0n], 'allow'],
  ['default', 'personality', [0x40000n], 'allow'],
  ['default', 'personality', [0xffff_ffffn], 'allow'],
  ['default', 'personality', [8n], 'EPERM'],
  ['default', 'personality', [8n | HIGH], 'EPERM'],
  ['default', 'personality', [0x44_0000n], 'EPERM'],
  ['default', 'ioctl', [0n, 0x5412n], 'EPERM'],
  ['default', 'ioctl', [0n, 0x5412n | HIGH], 'EPERM'],
  ['default', 'ioctl', [0n, 0x541cn], 'EPERM'],
  ['default', 'ioctl', [0n, 0x5423n | HIGH], 'EPERM'],
  ['default', 'ioctl', [0n, 0x5413n], 'allow'],
  ['default', 'socket', [1n, 1n, 0n], 'allow'],
  ['default', 'socket', [2n, 0x80001n, 6n], 'allow'],
  ['default', 'socket', [10n, 2n, 0n], 'allow'],
  ['default', 'socket', [40n, 1n, 0n], 'EAFNOSUPPORT'],
  ['default', 'socket', [40n | HIGH, 1n, 0n], 'EAFNOSUPPORT'],
  ['default', 'socket', [38n, 5n, 0n], 'EAFNOSUPPORT'],
  ['default', 'socket', [17n, 3n, 0n], 'EAFNOSUPPORT'],
  ['default', 'socket', [2n, 0x8000an, 3n], 'EAFNOSUPPORT'],
  ['default', 'socket', [2n | HIGH, 10n | HIGH, 3n], 'EAFNOSUPPORT'],
  ['default', 'socket', [16n, 3n, 0n], 'allow'],
  ['default', 'socket', [16n, 3n, 16n], 'allow'],
  ['default', 'socket', [16n, 3n, 6n], 'EPROTONOSUPPORT'],
  ['default', 'socket', [16n, 3n, 12n], 'EPROTONOSUPPORT'],
  ['default', 'socket', [16n | HIGH, 3n, 12n | HIGH], 'EPROTONOSUPPORT'],
  ['default', 'socketpair', [1n, 1n, 0n], 'allow'],
  ['default', 'socketpair', [30n, 1n, 0n], 'EAFNOSUPPORT'],
  ['default', 'fchmodat', [0n, 0n, 0o755n], 'allow'],
  ['default', 'fchmodat', [0n, 0n, 0o1777n], 'allow'],
  ['default', 'fchmodat', [0n, 0n, 0o4755n], 'EPERM'],
  ['default', 'fchmodat', [0n, 0n, 0o2755n], 'EPERM'],
  ['default', 'fchmodat', [0n, 0n, 0o4755n | HIGH], 'EPERM'],
  ['default', 'fchmodat2', [0n, 0n, 0o4755n, 0x100n], 'EPERM'],
  ['default', 'fchmod', [3n, 0o6755n], 'EPERM'],
  ['default', 'mknodat', [0n, 0n, 0o104755n], 'EPERM'],
  ['default', 'mknodat', [0n, 0n, 0o10644n], 'allow'],
  ['default', 'openat', [0n, 0n, 0x41n, 0o4755n], 'EPERM'],
  ['default', 'openat', [0n, 0n, 0x41n | HIGH, 0o2755n | HIGH], 'EPERM'],
  ['default', 'openat', [0n, 0n, 0x41_0002n, 0o4755n], 'EPERM'],
  ['default', 'openat', [0n, 0n, 0x40_4002n, 0o4755n], 'EPERM'],
  ['default', 'openat', [0n, 0n, 0x41n, 0o644n], 'allow'],
  // Without O_CREAT the kernel does not read the mode, and the register holds whatever it held.
  ['default', 'openat', [0n, 0n, 0n, 0o7777n], 'allow'],
  ['default', 'mkdirat', [0n, 0n, 0o2755n], 'allow'],
  ['default', 'setsockopt', [3n, 0n, 64n], 'allow'],
  ['strict', 'ptrace', [], 'EPERM'],
  ['strict', 'process_vm_writev', [], 'EPERM'],
  ['strict', 'socket', [16n, 3n, 0n], 'allow'],
  ['strict', 'socket', [16n, 3n, 4n], 'EPROTONOSUPPORT'],
  ['strict', 'socket', [2n, 1n, 132n], 'EPROTONOSUPPORT'],
  ['strict', 'socket', [2n, 5n, 0n], 'EPROTONOSUPPORT'],
  ['strict', 'socket', [10n, 3n, 58n], 'EPROTONOSUPPORT'],
  ['strict', 'socket', [2n, 0x80801n, 6n], 'allow'],
  ['strict', 'socket', [1n, 5n, 0n], 'allow'],
  ['strict', 'seccomp', [1n, 8n], 'EPERM'],
  ['strict', 'seccomp', [1n, 1n], 'allow'],
  ['strict', 'mount', [], 'EPERM'],
  ['nested', 'unshare', [0x1002_0000n], 'allow'],
  ['nested', 'clone', [0x1000_0011n], 'allow'],
  ['nested', 'clone3', [], 'allow'],
  ['nested', 'mount', [], 'allow'],
  ['nested', 'pivot_root', [], 'allow'],
  ['nested', 'setns', [], 'allow'],
  ['nested', 'sethostname', [], 'allow'],
  ['nested', 'bpf', [], 'EPERM'],
  ['nested', 'io_uring_setup', [], 'ENOSYS'],
  ['nested', 'socket', [17n, 3n, 0n], 'EAFNOSUPPORT'],
  ['nested', 'fchmodat', [0n, 0n, 0o4755n], 'EPERM'],
  ['nested', 'setsockopt', [3n, 0n, 64n], 'EPERM'],
  ['nested', 'setsockopt', [3n, 41n, 64n | HIGH], 'EPERM'],
  // arptables (96) and ebtables (128) have tables of their own, and a second number each.
  ['nested', 'setsockopt', [3n, 0n, 96n], 'EPERM'],
  ['nested', 'setsockopt', [3n, 0n, 97n], 'EPERM'],
  ['nested', 'setsockopt', [3n, 0n, 128n], 'EPERM'],
  ['nested', 'setsockopt', [3n, 0n, 129n], 'EPERM'],
  ['nested', 'setsockopt', [3n, 41n, 128n], 'EPERM'],
  ['nested', 'setsockopt', [3n, 0n, 98n], 'allow'],
  ['nested', 'setsockopt', [3n, 0n, 130n], 'allow'],
  ['nested', 'setsockopt', [3n, 41n, 67n], 'allow'],
  ['nested', 'setsockopt', [3n, 6n, 64n], 'allow'],
]
/** Calls refused for every argument: both what must be among them, and that nothing else is. */
describe('what a profile refuses always', () => {
  test.each(COMBINATIONS)('is for $profile on $arch what is written down by hand', ({ arch, profile }) => {
    const program = programOf(profile, arch)
    const numbers = SYSCALLS[arch]
    const expected = [...REFUSED[profile]].filter(([name]) => numbers.has(name))
    const actions = expected.map(([name]) => [name, simulate(program, nativeCall(arch, numbers.get(name)!)).action])
    expect(actions).toEqual(expected.map(([name, error]) => [name, errno(error)]))
    const always = [...clausesFor(rulesOf(profile), arch)].filter(
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
  const rows = ARCHES.flatMap((arch) =>
    EXPECTED.map(([profile, name, args, answer]) => ({ arch, profile, name, args, shown: show(args), answer })),
  )
  test.each(rows)(
    '$profile on $arch: $name $shown is answered with $answer',
    ({ arch, profile, name, args, answer }) => {
      const program = programOf(profile, arch)
      const got = simulate(program, nativeCall(arch, SYSCALLS[arch].get(name)!, args)).action
      expect(words(got)).toBe(answer === 'allow' ? 'allow' : errno(answer))
    },
  )

  const OLD_NAMES: readonly (readonly [string, readonly bigint[], ErrnoName | 'allow'])[] = [
    ['chmod', [0n, 0o4755n], 'EPERM'],
    ['chmod', [0n, 0o755n], 'allow'],
    ['creat', [0n, 0o2755n], 'EPERM'],
    ['mknod', [0n, 0o104755n], 'EPERM'],
    ['open', [0n, 0x41n, 0o4755n], 'EPERM'],
    ['open', [0n, 0n, 0o4755n], 'allow'],
    ['mkdir', [0n, 0o2755n], 'allow'],
    ['iopl', [3n], 'EPERM'],
    ['create_module', [], 'EPERM'],
  ]
  test.each(OLD_NAMES)('default on x64: the old call %s%s is answered with %s', (name, args, answer) => {
    const program = programOf('default', 'x64')
    const got = simulate(program, nativeCall('x64', SYSCALLS.x64.get(name)!, args)).action
    expect(words(got)).toBe(answer === 'allow' ? 'allow' : errno(answer))
  })
})
