/** The filters of the built program, which does not compile those of shipped profiles. */
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import type { Plan } from '../../src/plan/plan.ts'
import { compileProfile, toHex } from '../../src/seccomp/compile.ts'
import { keptSets } from '../../src/seccomp/filter.ts'
import { PROFILE_NAMES } from '../../src/seccomp/rules.ts'
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
