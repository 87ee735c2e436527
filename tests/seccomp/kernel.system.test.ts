/**
 * The filter in a real process. As root, who may do all of it: what is refused then is refused by the filter, and each attempt is
 * made without it too. The arguments are nonsense on purpose, so that a call that gets through does no harm.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { ERRNO } from '../../src/seccomp/errno.ts'
import { clausesFor, PROFILE_NAMES, type ProfileName, shippedRules } from '../../src/seccomp/rules.ts'
import { SYSCALLS } from '../../src/seccomp/syscalls.ts'
import { fill, runForText } from '../real/directory.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { guest } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'
import { ARCH, buildFixtures } from './fixtures.ts'

/** -1 in every register: no valid pointer, descriptor, flag or id. */
const NONSENSE = Array<string>(6).fill('0xffffffffffffffff').join(',')
const callOf = (name: string, args = '') => `${SYSCALLS[ARCH].get(name)}${args === '' ? '' : `,${args}`}`

describeWith('root', 'the kernel', () => {
  const { under } = buildFixtures()

  /** Makes each call in a new child; answers with `ok`, an errno or `signal N`. */
  async function resultsOf(profile: ProfileName | 'none', calls: readonly string[]): Promise<readonly string[]> {
    const [file, args] = under(profile, [guest('make-calls'), ...calls])
    return (await execa(file, args, { input: '' })).stdout.split('\n')
  }

  test.each(PROFILE_NAMES)(
    'refuses under %s what the profile always refuses, with the declared error, and not without it',
    async (profile) => {
      const refused = [...SYSCALLS[ARCH]].flatMap(([name, number]) => {
        const [first] = clausesFor(shippedRules(profile), ARCH).get(number) ?? []
        return first === undefined || first.when !== undefined ? [] : [{ name, errno: String(ERRNO[first.errno]) }]
      })
      const calls = refused.map(({ name }) => callOf(name, NONSENSE))
      const [filtered, free] = await Promise.all([resultsOf(profile, calls), resultsOf('none', calls)])
      expect(refused.map(({ name }, index) => [name, filtered[index]])).toEqual(
        refused.map(({ name, errno }) => [name, errno]),
      )
      // A call that this kernel does not have answers ENOSYS anyway: that proves nothing, so it is not counted.
      const evident = refused.filter((_, index) => free[index] !== String(ERRNO.ENOSYS))
      expect(
        evident.filter(({ name, errno }) => free[refused.findIndex((row) => row.name === name)] === errno),
      ).toEqual([])
      expect(evident.length).toBeGreaterThan(35)
    },
  )

  const HIGH = 0xdead_beef_0000_0000n
  const hex = (...values: readonly (number | bigint)[]) => values.map((value) => `0x${value.toString(16)}`).join(',')
  /** Title, call, arguments, the answer under `default`, the answer without a filter. */
  const CONDITIONS: readonly (readonly [string, string, string, string, RegExp])[] = [
    ['a new user namespace', 'unshare', hex(0x1000_0000), '1', /^ok$/],
    ['a new network namespace behind high bits of clone', 'clone', hex(HIGH | 0x4000_0011n), '1', /^ok$/],
    ['a child in a new pid namespace', 'clone', hex(0x2000_0011), '1', /^ok$/],
    ['a Linux/i386 personality behind high bits', 'personality', hex(HIGH | 8n), '1', /^ok$/],
    ['AF_PACKET behind high bits', 'socket', hex(HIGH | 17n, 3, 0), '97', /^ok$/],
    ['AF_PACKET by the name AF_INET, SOCK_PACKET', 'socket', hex(2, 10, 3), '97', /^ok$/],
    ['netfilter netlink', 'socket', hex(16, 3, 12), '93', /^(ok|93)$/],
    ['a pair of TIPC sockets', 'socketpair', hex(30, 1, 0), '97', /^(97|95|14)$/],
    ['TIOCSTI behind high bits', 'ioctl', hex(0xffff_ffff, HIGH | 0x5412n), '1', /^9$/],
  ]
  const ALLOWED: readonly (readonly [string, string, string, RegExp])[] = [
    ['a plain child', 'clone', hex(0x11), /^ok$/],
    ['addresses without randomness', 'personality', hex(0x4_0000), /^ok$/],
    ['an internet socket', 'socket', hex(2, 0x8_0001, 6), /^ok$/],
    ['a pair of sockets', 'socketpair', hex(1, 1, 0), /^14$/],
    ['other questions to a terminal', 'ioctl', hex(0xffff_ffff, 0x5413), /^9$/],
  ]
  test('refuses calls by their arguments under default, and not without it', async () => {
    const calls = CONDITIONS.map(([, name, args]) => callOf(name, args))
    const [filtered, free] = await Promise.all([resultsOf('default', calls), resultsOf('none', calls)])
    expect(CONDITIONS.map(([what], at) => [what, filtered[at]])).toEqual(
      CONDITIONS.map(([what, , , refused]) => [what, refused]),
    )
    expect(CONDITIONS.map(([what], at) => [what, free[at]])).toEqual(
      CONDITIONS.map(([what, , , , answer]) => [what, expect.stringMatching(answer)]),
    )
  })

  test('allows calls that everyday programs make under default', async () => {
    const results = await resultsOf(
      'default',
      ALLOWED.map(([, name, args]) => callOf(name, args)),
    )
    expect(ALLOWED.map(([what], at) => [what, results[at]])).toEqual(
      ALLOWED.map(([what, , , result]) => [what, expect.stringMatching(result)]),
    )
  })

  test('takes setuid bits away from a new directory by itself: mkdir needs no rule', async () => {
    const AT_FDCWD = '0xffffff9c'
    const directory = await temporaryDirectory()
    expect(await resultsOf('none', [callOf('mkdirat', `${AT_FDCWD},:${directory}/new,06755`)])).toEqual(['ok'])
    expect(statSync(join(directory, 'new')).mode & 0o6000).toBe(0)
  })
})

describeWith(['userns', 'bwrap'], 'a sandbox inside the sandbox', () => {
  const { under } = buildFixtures()
  test('starts under nested, and not under default', async () => {
    const inner = ['--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'echo', 'inner']
    const outputOf = async (profile: ProfileName) =>
      (await execa(...under(profile, ['bwrap', ...inner]), { reject: false })).stdout
    expect([await outputOf('nested'), await outputOf('default')]).toEqual(['inner', ''])
  })
})

describeWith(['userns'], 'A filter file that a profile names', () => {
  test('is the one next to the profile, and the next run obeys what it says then', async () => {
    const [home, cwd] = [await temporaryDirectory(), await temporaryDirectory()]
    const filterOf = (names: string) => ({ 'profiles/own.yaml': `deny: [{ names: [${names}], errno: EACCES }]\n` })
    await fill(home, { 'p.yaml': 'sandbox: { seccomp: ./profiles/own.yaml }\n', ...filterOf('mkdir, mkdirat') })
    // In the caller's directory the same path leads to a filter that refuses nothing of it.
    await fill(cwd, filterOf('chroot'))
    const run = () => runForText(['--profile', join(home, 'p.yaml'), '--', 'mkdir', '/tmp/x'], { cwd })
    // The second run has the plan of the first one.
    for (let time = 0; time < 2; time += 1)
      expect(await run()).toMatchObject({ status: 1, err: expect.stringContaining('Permission denied') })
    await fill(home, filterOf('chroot'))
    expect(await run()).toEqual({ status: 0, out: '', err: '' })
  })
})
