/** Processes under a compiled filter: the filters, written once for a test file, and how to run something with them. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll } from 'vitest'
import { compileProfile } from '../../src/seccomp/compile.ts'
import { PROFILE_NAMES, type ProfileName } from '../../src/seccomp/rules.ts'
import type { Arch } from '../../src/seccomp/syscalls.ts'
import { newDirectory } from '../support/directory.ts'
import { guest } from '../support/driver.ts'

export const ARCH = process.arch as Arch

export interface Fixtures {
  /** The command under the filter of a profile; unfiltered for `none`. */
  readonly under: (profile: ProfileName | 'none', command: readonly string[]) => [string, string[]]
}

/** Writes the filters before the tests of a file and removes them afterwards. */
export function buildFixtures(): Fixtures {
  const made: { path?: string } = {}
  const at = (name: string) => join(made.path ?? '/nowhere', name)

  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    made.path = path
    for (const profile of PROFILE_NAMES) await writeFile(at(profile), compileProfile({ profile, arch: ARCH }).filter)
    return remove
  })

  return {
    under: (profile, [file = '', ...args]) =>
      profile === 'none' ? [file, args] : [guest('apply-filter'), [at(profile), file, ...args]],
  }
}
