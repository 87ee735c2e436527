import { describe, expect, test } from 'vitest'
import { guardedOf } from '../../src/backends/launch-status.ts'
import { guardWarnings, protectedHints } from '../../src/report/protected.ts'
import { planFor, plannedZone } from '../backends/plans.ts'

const hintsFor = (source: string, protect: readonly string[], path: string) =>
  protectedHints(
    {
      attempts: { count: 1, first: [{ path, aside: '', gone: false }] },
      setId: { count: 0, first: [] },
      configLocked: false,
    },
    planFor('namespace', {
      engine: 'unshare',
      zones: [plannedZone({ source, target: '/z', mode: 'rw', protect, git: { open: [] } })],
    }),
  )

describe('The hint after a run that was stopped names the flag', () => {
  test.each([
    ['of a name at the root of a zone', '/p', ['.vscode'], '/p/.vscode', '.vscode'],
    ['of a name below a directory that was made', '/p', ['.github/workflows'], '/p/.github', '.github/workflows'],
    ['of a name in a home that is in the zone', '/home', ['ann/.bashrc'], '/home/ann/.bashrc', '.bashrc'],
    ['of a longer name before a shorter one', '/home', ['ann/.config/git'], '/home/ann/.config/git', '.config/git'],
    [
      'of the whole name where the zone is a part of it',
      '/p/.github',
      ['workflows'],
      '/p/.github/workflows',
      '.github/workflows',
    ],
    ['of git directories', '/p', ['.vscode'], '/p/a/.git', '.git'],
    ['of one name in git directories', '/p', ['.vscode'], '/p/a/.git/hooks', '.git/hooks'],
  ])('%s', (_title, source, protect, path, name) => {
    const [first, ...others] = hintsFor(source, protect, path)
    expect(others).toEqual([`to let it end and decide by llm-do apply, in the place of --rw: --cow ${source}:/z`])
    expect([first]).toEqual([`to allow it: --protect-not ${name}`])
  })

  test('but for what the policy itself protects, which no flag opens', () => {
    expect(hintsFor('/p', ['secret'], '/p/secret')).toEqual([])
  })
})

test('a guard without notices of the kernel is a warning', () => {
  const { guarded } = guardedOf({ unwatched: true })
  expect(guardWarnings(guarded)).toEqual([expect.stringContaining('looked for by time alone')])
  expect(guardWarnings(guardedOf({}).guarded)).toEqual([])
})
