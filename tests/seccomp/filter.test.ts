import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compileProfile, toHex } from '../../src/seccomp/compile.ts'
import { type FilterRequest, filterFor, keptSets, nameOf } from '../../src/seccomp/filter.ts'
import { PRECOMPILED_FILTERS, type PrecompiledFilters } from '../../src/seccomp/precompiled.ts'
import { PROFILE_NAMES } from '../../src/seccomp/rules.ts'
import { ARCHES } from '../../src/seccomp/syscalls.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The inputs of the build, by the script of the build. */
async function filtersOfBuild(): Promise<PrecompiledFilters> {
  const { precompile } = await import(join(ROOT, 'scripts/precompile.mjs'))
  return (await precompile(ROOT)).filters
}

type Named = FilterRequest & Parameters<typeof nameOf>[0]

const EVERY = [...PROFILE_NAMES, 'off' as const].flatMap((profile) =>
  ARCHES.flatMap((arch) => [false, true].map((isRoot): Named => ({ profile, arch, always: keptSets({ isRoot }) }))),
)
const compiled = (request: FilterRequest): string => toHex(compileProfile(request).filter)

test('The build knows the filter of every shipped profile, and each is what would be compiled', async () => {
  expect(await filtersOfBuild()).toEqual(
    Object.fromEntries(EVERY.map((request) => [nameOf(request), compiled(request)])),
  )
})

test('No two filters are known by the same words', () => {
  expect(new Set(EVERY.map(nameOf)).size).toBe(EVERY.length)
})

test('From the sources nothing is known, and every filter is compiled', async () => {
  expect(PRECOMPILED_FILTERS).toEqual({})
  for (const request of EVERY) expect((await filterFor(request))(request.arch)).toBe(compiled(request))
})

test('A filter that is known is not compiled, and one that was asked for in other words is', async () => {
  const root: Named = { profile: 'strict', arch: 'arm64', always: keptSets({ isRoot: true }) }
  const known = { [nameOf(root)]: 'known' }
  expect((await filterFor(root, known))('arm64')).toBe('known')
  for (const other of [
    { ...root, profile: 'default' as const },
    { ...root, arch: 'x64' as const },
    { ...root, always: [] },
  ])
    expect((await filterFor(other, known))(other.arch)).toBe(compiled(other))
})

test('The rules of a file are compiled, whatever is known', async () => {
  const profile = { extends: 'default', allow: [], deny: [] } as const
  const known = { 'default x64': 'known', '[object Object] x64': 'known' }
  expect((await filterFor({ profile, arch: 'x64', always: [] }, known))('x64')).toBe(
    compiled({ profile, arch: 'x64', always: [] }),
  )
})
