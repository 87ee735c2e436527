/** Processes under a compiled filter: the fixtures, built once for a test file, and how to run something with them. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll } from 'vitest'
import { compileProfile } from '../../src/seccomp/compile.ts'
import { PROFILE_NAMES, type ProfileName } from '../../src/seccomp/rules.ts'
import type { Arch } from '../../src/seccomp/syscalls.ts'
import { newDirectory } from '../support/directory.ts'

export const ARCH = process.arch as Arch
export const PROGRAMS = join(import.meta.dirname, '..', 'programs')

export interface Fixtures {
  /** Where a file of the ground is: a fixture by its name, a filter by its profile's. */
  readonly at: (name: string) => string
  /** The command under the filter of a profile; unfiltered for `none`. */
  readonly under: (profile: ProfileName | 'none', command: readonly string[]) => [string, string[]]
}

/** Builds the fixtures before the tests of a file and removes them afterwards. Needs gcc. */
export function buildFixtures(): Fixtures {
  const made: { path?: string } = {}
  const at = (name: string) => join(made.path ?? '/nowhere', name)
  const compileProgram = (name: string) =>
    execa('gcc', ['-O1', '-Wall', '-Wextra', '-Werror', '-o', at(name), join(PROGRAMS, `${name}.c`)])

  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    made.path = path
    await compileProgram('apply-filter')
    await compileProgram('make-calls')
    for (const profile of PROFILE_NAMES) await writeFile(at(profile), compileProfile({ profile, arch: ARCH }).filter)
    return remove
  })

  return {
    at,
    under: (profile, [file = '', ...args]) =>
      profile === 'none' ? [file, args] : [at('apply-filter'), [at(profile), file, ...args]],
  }
}
