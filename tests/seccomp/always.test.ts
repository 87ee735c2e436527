/** Refusals that stay in every filter: for all users calls that would reach PID 1, for root calls that would plant a program of root's. */
import { describe, expect, test } from 'vitest'

import { ACTION, AUDIT_ARCH } from '../../src/seccomp/bpf.ts'
import { compileProfile } from '../../src/seccomp/compile.ts'
import { ERRNO } from '../../src/seccomp/errno.ts'
import { keptSets } from '../../src/seccomp/filter.ts'
import {
  clausesFor,
  PROFILE_NAMES,
  type ProfileName,
  type SeccompRules,
  shippedRules,
} from '../../src/seccomp/rules.ts'
import { ARCHES, type Arch, COMPAT, MAX_SYSCALL, SYSCALL_NAMES, SYSCALLS } from '../../src/seccomp/syscalls.ts'
import { declared, interestingArguments } from './declared.ts'
import { problemsOf } from './loadable.ts'
import { decode, nativeCall, simulate } from './simulate.ts'
import { KEPT_FOR_ROOT, PID_ARGUMENT } from './words.ts'

type FilterProfile = ProfileName | 'off' | SeccompRules

/** A file that gives everything back that a file can give back. */
const OPEN_FILE: SeccompRules = { extends: 'default', allow: SYSCALL_NAMES, deny: [] }
const FILTERS: readonly (readonly [string, FilterProfile])[] = [
  ...[...PROFILE_NAMES, 'off' as const].map((name) => [name, name] as const),
  ['a file that allows every call', OPEN_FILE],
]
const USERS = [
  { user: 'root', isRoot: true },
  { user: 'a plain user', isRoot: false },
] as const
const CASES = ARCHES.flatMap((arch) =>
  USERS.flatMap(({ user, isRoot }) => FILTERS.map(([title, profile]) => ({ arch, user, isRoot, title, profile }))),
)

const refused = (errno: keyof typeof ERRNO) => ACTION.errno | ERRNO[errno]

function simulator(profile: FilterProfile, arch: Arch, isRoot: boolean) {
  const { filter } = compileProfile({ profile, arch, always: keptSets({ isRoot }) })
  const program = decode(filter)
  return (name: string, args: readonly bigint[] = []) =>
    simulate(program, nativeCall(arch, SYSCALLS[arch].get(name) ?? -1, args)).action
}

const has = (arch: Arch, name: string): boolean => SYSCALLS[arch].has(name)
const HIGH = 0xdead_beef_0000_0000n
const SOME = 0o755n

/** The first argument of ioprio_set(2) says that a process is meant. */
const argumentsOn = (name: string, argument: number, pid: bigint): bigint[] =>
  Array.from({ length: 6 }, (_, at) => (at === argument ? pid : name === 'ioprio_set' && at === 0 ? 1n : 0n))

describe.each(CASES)('$title for $user on $arch', ({ arch, isRoot, profile }) => {
  const actionOf = simulator(profile, arch, isRoot)
  const always = keptSets({ isRoot })

  test('is a filter that the kernel would load, and a short one', () => {
    const { filter, instructions } = compileProfile({ profile, arch, always })
    expect(problemsOf(filter)).toEqual([])
    expect(instructions).toBeLessThan(200)
  })

  test('answers every number, and what is kept at every border of its arguments, as declared', () => {
    const rules = typeof profile === 'string' ? shippedRules(profile) : profile
    const program = decode(compileProfile({ profile, arch, always }).filter)
    // The borders of all else are asked about in compile.test.ts.
    const kept = clausesFor(OPEN_FILE, arch, always)
    const calls = [...Array(MAX_SYSCALL + 65).keys()].flatMap((number) =>
      interestingArguments(kept.get(number) ?? []).map((args) => nativeCall(arch, number, args)),
    )
    const differing = calls.filter((call) => simulate(program, call).action !== declared(rules, arch, call, always))
    expect(differing).toEqual([])
  })

  test.each(Object.entries(PID_ARGUMENT))('refuses %s on PID 1, and on no other process', (name, argument) => {
    const on = (pid: bigint) => actionOf(name, argumentsOn(name, argument, pid))
    expect([on(1n), on(HIGH | 1n)]).toEqual([refused('EPERM'), refused('EPERM')])
    expect([on(0n), on(2n), on(0x1_0000_0000n), on(4_194_304n)]).toEqual(Array(4).fill(ACTION.allow))
  })

  test('refuses priorities of all processes of a user or group, PID 1 among them', () => {
    const rows = [
      { name: 'setpriority', process: 0n, all: [1n, 2n] },
      { name: 'ioprio_set', process: 1n, all: [2n, 3n] },
    ]
    for (const { name, process, all } of rows) {
      const whole = all.flatMap((which) => [actionOf(name, [which, 0n]), actionOf(name, [HIGH | which, 65_534n])])
      expect([name, ...whole]).toEqual([name, ...Array(4).fill(refused('EPERM'))])
      expect([name, actionOf(name, [process, 0n])]).toEqual([name, ACTION.allow])
    }
  })

  const rootTest = isRoot ? test : () => undefined

  rootTest('refuses what writes capabilities, and what does so without a call of its own', () => {
    const actions = [...KEPT_FOR_ROOT.keys()].map((name) => [name, actionOf(name)])
    expect(actions).toEqual([...KEPT_FOR_ROOT].map(([name, errno]) => [name, refused(errno)]))
  })

  rootTest('refuses set-id bits', () => {
    const rows: readonly (readonly [string, (mode: bigint) => readonly bigint[]])[] = [
      ['fchmodat', (mode) => [0n, 0n, mode]],
      ['fchmodat2', (mode) => [0n, 0n, mode, 0n]],
      ['fchmod', (mode) => [3n, mode]],
      ['openat', (mode) => [0n, 0n, 0x41n, mode]],
      ['mknodat', (mode) => [0n, 0n, mode]],
      ['chmod', (mode) => [0n, mode]],
      ['creat', (mode) => [0n, mode]],
    ]
    for (const [name, args] of rows.filter(([name]) => has(arch, name))) {
      const answers = [0o4755n, 0o2755n | HIGH, SOME].map((mode) => actionOf(name, args(mode)))
      expect([name, ...answers]).toEqual([name, refused('EPERM'), refused('EPERM'), ACTION.allow])
    }
  })

  test('lets everything through that everyday programs ask for themselves', () => {
    for (const name of ['prlimit64', 'sched_setaffinity', 'sched_setscheduler', 'getxattr', 'removexattr', 'openat'])
      expect([name, actionOf(name)]).toEqual([name, ACTION.allow])
  })
})

describe.each(ARCHES)('without what is kept, on %s', (arch) => {
  const open = (name: string, args: readonly bigint[] = []) =>
    simulate(
      decode(compileProfile({ profile: OPEN_FILE, arch }).filter),
      nativeCall(arch, SYSCALLS[arch].get(name) ?? -1, args),
    ).action

  test('the same file lets all of it through: the control', () => {
    for (const [name, argument] of Object.entries(PID_ARGUMENT))
      expect([name, open(name, argumentsOn(name, argument, 1n))]).toEqual([name, ACTION.allow])
    for (const name of KEPT_FOR_ROOT.keys()) expect(open(name)).toBe(ACTION.allow)
    expect(open('fchmodat', [0n, 0n, 0o4755n])).toBe(ACTION.allow)
  })

  test('a plain user may set attributes: what he plants is his own', () => {
    for (const profile of [...PROFILE_NAMES, 'off' as const])
      expect(simulator(profile, arch, false)('setxattr')).toBe(ACTION.allow)
  })
})

describe.each(ARCHES)('32-bit programs of %s', (arch) => {
  const { audit, numbers } = COMPAT[arch]
  const actionOfCall = (profile: FilterProfile, isRoot: boolean, call: { number: number; args?: readonly bigint[] }) =>
    simulate(decode(compileProfile({ profile, arch, always: keptSets({ isRoot }) }).filter), {
      arch: audit,
      args: [],
      ...call,
    }).action

  test('run under `off`, for a plain user', () => {
    for (const number of [0, 1, 3, 20, 340, 402, 500])
      expect([number, actionOfCall('off', false, { number })]).toEqual([number, ACTION.allow])
  })

  test.each(Object.entries(PID_ARGUMENT))('cannot reach PID 1 there by %s', (name, argument) => {
    const number = numbers.get(name) ?? -1
    const on = (pid: bigint) => argumentsOn(name, argument, pid)
    expect(number).toBeGreaterThan(0)
    expect(actionOfCall('off', false, { number, args: on(1n) })).toBe(refused('EPERM'))
    expect(actionOfCall('off', false, { number, args: on(0n) })).toBe(ACTION.allow)
  })

  test.each([...PROFILE_NAMES.map((profile) => [profile, false] as const), ['off', true] as const])(
    'end under %s (for root: %s)',
    (profile, isRoot) => {
      expect(actionOfCall(profile, isRoot, { number: 20 })).toBe(ACTION.killProcess)
    },
  )

  test('of any other machine end under `off`, too', () => {
    const other = arch === 'x64' ? AUDIT_ARCH.arm64 : AUDIT_ARCH.x64
    const program = decode(compileProfile({ profile: 'off', arch, always: keptSets({ isRoot: false }) }).filter)
    expect(simulate(program, { number: 20, arch: other, args: [] }).action).toBe(ACTION.killProcess)
  })
})
