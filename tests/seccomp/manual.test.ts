import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { ERRNO } from '../../src/seccomp/errno.ts'
import { keptSets, setsWithoutNamespaces } from '../../src/seccomp/filter.ts'
import { setTable } from '../../src/seccomp/manual.ts'
import { PROFILES, type RuleSet, SETS } from '../../src/seccomp/rules.ts'
import { MAX_SYSCALL, SYSCALL_NAMES } from '../../src/seccomp/syscalls.ts'

const manual = await readFile(new URL('../../docs/reference/seccomp.md', import.meta.url), 'utf8')
const between = (start: RegExp, end: string) => manual.split(start)[1]?.split(end)[0]?.trim()

describe('docs/reference/seccomp.md', () => {
  test('has the table of sets as the code has it', () => {
    expect(between(/<!-- sets:.*-->/, '<!-- end of sets -->')).toBe(setTable())
  })

  test.each(Object.entries(PROFILES))('says of the profile %s what the code says', (name, { meaning }) => {
    expect(manual).toContain(`| \`${name}\` | ${meaning} |`)
  })

  test('names the largest known number and every error that a file may ask for', () => {
    expect(manual).toContain(`up to ${MAX_SYSCALL},`)
    expect(Object.keys(ERRNO).filter((name) => !between(/Errors: /, '\n\n')?.includes(name))).toEqual([])
  })
})

describe('the sets', () => {
  const sets: readonly (readonly [string, RuleSet])[] = Object.entries(SETS)

  test.each(sets)('%s names only calls that exist', (_, { refusals }) => {
    const unknown = refusals.flatMap(({ names }) => names).filter((name) => !SYSCALL_NAMES.includes(name))
    expect(unknown).toEqual([])
  })

  test('are each used by a profile, and by each only once', () => {
    const used = Object.values(PROFILES).map((profile): readonly string[] => profile.sets)
    const kept: readonly string[] = [...keptSets({ isRoot: true }), ...setsWithoutNamespaces({ hasNetwork: false })]
    expect(used.map((names) => names.length)).toEqual(used.map((names) => new Set(names).size))
    expect(Object.keys(SETS).filter((name) => ![...used, kept].some((names) => names.includes(name)))).toEqual([])
  })
})
