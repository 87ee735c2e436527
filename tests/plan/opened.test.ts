import { describe, expect, test } from 'vitest'
import { changedWarnings, openedPaths } from '../../src/plan/opened.ts'
import type { PlannedZone } from '../../src/plan/plan.ts'
import { PROTECTED_NAMES } from '../../src/policy/protected.ts'
import { plannedZone } from '../backends/plans.ts'

const rw = (source: string, more: Partial<PlannedZone> = {}) =>
  plannedZone({ source, target: '/z', mode: 'rw', ...more })
const pathsOf = (protectNot: readonly string[], zones: readonly PlannedZone[]) =>
  openedPaths({ policy: { protectNot }, zones, homes: ['/home/ann'] }).map(({ path }) => path)

describe('Opened names', () => {
  test('are looked for at the root of each writable zone and in homes', () => {
    expect(pathsOf(['.vscode'], [rw('/p'), rw('/home')])).toEqual(['/p/.vscode', '/home/.vscode', '/home/ann/.vscode'])
    expect(pathsOf(['.bashrc'], [rw('/p'), rw('/home')])).toEqual(['/home/ann/.bashrc'])
  })

  test('are not looked for in read-only zones, in files, nor when nothing is opened', () => {
    expect(pathsOf(['*'], [plannedZone({ source: '/p', target: '/z' }), rw('/f', { kind: 'file' })])).toEqual([])
    expect(pathsOf([], [rw('/p')])).toEqual([])
  })

  test('of git directories are single names, or all of them', () => {
    expect(pathsOf(['.git/config'], [rw('/p')])).toEqual(['/p/.git/config'])
    expect(pathsOf(['.git'], [rw('/p')])).toContain('/p/.git/hooks')
  })

  test('are all of them under *', () => {
    const ofZones = PROTECTED_NAMES.filter(({ where }) => where === 'zone').map(({ name }) => `/p/${name}`)
    expect(pathsOf(['*'], [rw('/p')])).toEqual(expect.arrayContaining(ofZones))
  })
})

describe('The warning of a change', () => {
  const opened = [
    { path: '/p/.vscode', tool: 'Visual Studio Code' },
    { path: '/p/.envrc', tool: 'direnv' },
  ]
  const warningsFor = (before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>) =>
    changedWarnings({ opened, before: new Map(Object.entries(before)), after: new Map(Object.entries(after)) })

  test.each([
    ['that appeared', {}, { '/p/.envrc': '1' }],
    ['that changed', { '/p/.envrc': '1' }, { '/p/.envrc': '2' }],
    ['that went away', { '/p/.envrc': '1' }, {}],
  ])('names the file %s and the program', (_title, before, after) => {
    expect(warningsFor(before as never, after as never)).toEqual([
      'the command changed /p/.envrc, which direnv may run or obey',
    ])
  })

  test('names what is in a directory instead of the directory', () => {
    const before = { '/p/.vscode': '1' }
    expect(warningsFor(before, { '/p/.vscode': '2', '/p/.vscode/tasks.json': '1' })).toEqual([
      'the command changed /p/.vscode/tasks.json, which Visual Studio Code may run or obey',
    ])
  })

  test('is none for what stayed as it was', () => {
    expect(warningsFor({ '/p/.envrc': '1' }, { '/p/.envrc': '1' })).toEqual([])
  })

  test('counts what is beyond five', () => {
    const after = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`/p/.vscode/${index}`, '1']))
    expect(warningsFor({}, after)).toHaveLength(6)
    expect(warningsFor({}, after).at(-1)).toBe(
      'the command changed 3 more files that programs of the host may run or obey',
    )
  })
})
