import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { ERRNO } from '../../src/seccomp/errno.ts'
import { keptSets, setsWithoutNamespaces } from '../../src/seccomp/filter.ts'
import { PROFILES, type RuleSet, SETS } from '../../src/seccomp/rules.ts'
import { MAX_SYSCALL, SYSCALL_NAMES } from '../../src/seccomp/syscalls.ts'
import { expectFile, withPart } from '../support/generated.ts'
import { setList } from './set-list.ts'

const manual = await readFile(new URL('../../docs/reference/seccomp.md', import.meta.url), 'utf8')

describe('docs/reference/seccomp.md', () => {
  test('has the list of sets as the code has it, in the page of the internals', () => {
    expectFile('docs/internals/seccomp.md', (text) => withPart(text, 'sets', setList()))
  })

  test.each(Object.entries(PROFILES))('says of the profile %s what the code says', (name, { meaning }) => {
    expect(manual).toContain(`| \`${name}\` | ${meaning} |`)
  })

  test('names the largest known number and every error that a file may ask for', () => {
    expect(manual).toContain(`up to ${MAX_SYSCALL},`)
    const errors = manual.split('Errors: ')[1]?.split('\n\n')[0] ?? ''
    expect(Object.keys(ERRNO).filter((name) => !errors.includes(name))).toEqual([])
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
