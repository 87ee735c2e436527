/** The filters of the built program, which does not compile those of shipped profiles, and those that a profile names by a path. */
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import type { Plan } from '../../src/plan/plan.ts'
import { compileProfile, toHex } from '../../src/seccomp/compile.ts'
import { keptSets } from '../../src/seccomp/filter.ts'
import { PROFILE_NAMES } from '../../src/seccomp/rules.ts'
import { fill, runForText } from '../real/directory.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const PROGRAM = join(checkoutFor(currentUser()), 'bin/llm-do-exec')
const ALWAYS = keptSets({ isRoot: currentUser() === 'root' })

async function plannedFilter(profile: string): Promise<Plan['seccomp']> {
  const home = await temporaryDirectory()
  const { stdout } = await execa(PROGRAM, ['--seccomp', profile, '--plan=json', '--', 'true'], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home },
    extendEnv: false,
  })
  return (JSON.parse(stdout) as Plan).seccomp
}

describeWith(['userns'], 'The built program plans', () => {
  test.each([...PROFILE_NAMES, 'off' as const])('the filter %s as it would be compiled', async (profile) => {
    const { arch, filter } = await plannedFilter(profile)
    expect(filter).toBe(toHex(compileProfile({ profile, arch, always: ALWAYS }).filter))
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
