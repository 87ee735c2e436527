/** The changes that are applied, the protected ones among them, and their display. */
import { describe, expect, test } from 'vitest'
import { parseChanges, type RawChange, rawOf, shownChange } from '../../src/cow/change.ts'
import { choiceBytes, choose } from '../../src/cow/choice.ts'
import { type ProtectedZone, protectionOf } from '../../src/cow/protected.ts'
import { parseRecord } from '../../src/cow/record.ts'

const raw = (kind: RawChange['kind'], path: string, more: Partial<RawChange> = {}): RawChange => ({
  zone: 0,
  kind,
  type: 'file',
  mode: '644',
  modeBefore: '644',
  modeApplied: '644',
  size: 1,
  conflict: false,
  nested: false,
  isPrivileged: false,
  path,
  other: '',
  ...more,
})
const directory = { type: 'directory' } as const
const ZONE: ProtectedZone = { protect: ['.envrc', '.github/workflows'], gitOpen: [] }
const ZONES = [{ source: '/host/project', target: '/workspace' }]

const chosenOf = (changes: readonly RawChange[], paths: readonly string[] = []) => {
  const isProtected = protectionOf(changes, [ZONE])
  const choice = choose({ changes, zones: ZONES, paths, isProtected, force: false })
  return {
    ...choice,
    chosen: choice.chosen.map(({ path }) => path),
    protectedOnes: choice.protectedOnes.map(({ path }) => path),
  }
}

describe('a protected change', () => {
  const PROTECTED: readonly (readonly [string, RawChange])[] = [
    ['a protected name', raw('added', '.envrc')],
    ['below a protected name', raw('modified', '.github/workflows/ci.yml')],
    ['configuration of git', raw('modified', '.git/config')],
    ['a hook of git', raw('added', '.git/hooks/pre-commit')],
    ['a hook of git in a deep repository', raw('added', 'a/b/.git/hooks/pre-commit')],
    ['another object store', raw('added', '.git/objects/info/alternates')],
    ['a new repository', raw('added', 'a/.git', directory)],
    ['a file that leads to a repository', raw('modified', 'a/.git')],
    ['a new submodule', raw('added', '.git/modules/x', directory)],
    ['configuration of a submodule', raw('modified', '.git/modules/x/config')],
    ['configuration of a nested submodule', raw('modified', '.git/modules/x/modules/y/config')],
    ['the mode of a repository', raw('mode', 'a/.git', directory)],
    ['a set-id program', raw('mode', 'tool', { isPrivileged: true })],
    ['removal of a repository', raw('deleted', '.git', directory)],
    ['a link above a protected name', raw('added', '.github', { type: 'symlink', other: 'template' })],
    ['a link that leads elsewhere above a protected name', raw('symlink', '.github', { type: 'symlink', other: 'x' })],
    ['a link in place of what was above a protected name', raw('type', '.github', { type: 'symlink', other: 'x' })],
    ['a directory renamed to above a protected name', raw('renamed', '.github', { ...directory, other: 'template' })],
    ['a directory renamed to a protected name', raw('renamed', '.github/workflows', { ...directory, other: 'x' })],
    ['a link above a closed name of git', raw('added', '.git/info', { type: 'symlink', other: '../x' })],
    [
      'a directory renamed to above a closed name of git',
      raw('renamed', '.git/objects/info', { ...directory, other: 'x' }),
    ],
  ]
  test.each(PROTECTED)('is %s', (_, change) => expect(protectionOf([change], [ZONE])(change)).toBe(true))

  const OPEN: readonly (readonly [string, RawChange])[] = [
    ['an object of git', raw('added', '.git/objects/ab/cd')],
    ['a reference of git', raw('modified', '.git/refs/heads/main')],
    ['the index of git', raw('modified', '.git/index')],
    ['the head of a submodule', raw('modified', '.git/modules/x/HEAD')],
    ['a name that only begins alike', raw('added', '.envrc.example')],
    ['a file beside what is protected', raw('added', '.github/CODEOWNERS')],
    ['a file called config elsewhere', raw('modified', 'config')],
    ['a new directory above a protected name', raw('added', '.github', directory)],
    ['a link beside a protected name', raw('added', '.git/hook', { type: 'symlink', other: 'x' })],
    [
      'a directory renamed to beside a protected name',
      raw('renamed', '.github/x', { ...directory, other: 'template' }),
    ],
  ]
  test.each(OPEN)('is not %s', (_, change) => expect(protectionOf([change], [ZONE])(change)).toBe(false))

  test('is one to a repository by another name, which git would take for one', () => {
    const changes = [raw('git', 'bare'), raw('modified', 'bare/config'), raw('modified', 'bare/packed-refs')]
    expect(changes.slice(1).map(protectionOf(changes, [ZONE]))).toEqual([true, false])
  })

  test('is what makes a directory a repository, whose configuration came before', () => {
    const names = ['HEAD', 'commondir', 'description', 'objects', 'refs', 'refs/heads']
    const added = names.map((name) => raw('added', `d/${name}`))
    const judged = (marker: RawChange) => added.map(protectionOf([marker, ...added], [ZONE]))
    expect(judged(raw('new-git', 'd'))).toEqual([true, true, false, true, true, true])
    // Control: in one that was there before, all but the closed names are the command's.
    expect(judged(raw('git', 'd'))).toEqual([false, true, false, false, false, false])
  })

  test('is the removal of what is not renamed', () => {
    const changes = [
      raw('renamed', '.github', { ...directory, other: 'template' }),
      raw('deleted', 'template', directory),
      raw('deleted', 'template/workflows', { ...directory, nested: true }),
      raw('deleted', 'template2', directory),
    ]
    expect(changes.map(protectionOf(changes, [ZONE]))).toEqual([true, true, true, false])
  })

  test('is the removal of a directory that holds one', () => {
    const changes = [
      raw('deleted', '.github', directory),
      raw('deleted', '.github/workflows', { ...directory, nested: true }),
    ]
    expect(changes.map(protectionOf(changes, [ZONE]))).toEqual([true, true])
  })

  test('is none where the policy has opened it', () => {
    const open = { protect: [], gitOpen: undefined }
    expect(protectionOf([], [open])(raw('modified', '.git/config'))).toBe(false)
  })

  test('is every one to a zone that the record does not have', () => {
    expect(protectionOf([], [ZONE])(raw('modified', 'file', { zone: 1 }))).toBe(true)
  })
})

describe('of the changes', () => {
  const CHANGES = [
    raw('modified', 'file'),
    raw('added', 'new', directory),
    raw('added', 'new/deep', directory),
    raw('added', 'new/deep/one'),
    raw('added', 'new/.git', directory),
    raw('added', 'new/.git/HEAD'),
    raw('added', 'pipe', { type: 'other' }),
    raw('modified', 'both', { conflict: true }),
  ]

  test('all are applied but what is protected, with what came with it, and what is special', () => {
    const { chosen, protectedOnes, special, conflicts } = chosenOf(CHANGES)
    expect(chosen).toEqual(['file', 'new', 'new/deep', 'new/deep/one', 'both'])
    expect([protectedOnes, special.length, conflicts.map(({ path }) => path)]).toEqual([['new/.git'], 1, ['both']])
  })

  test('a named one comes with the new directories above it', () => {
    expect(chosenOf(CHANGES, ['new/deep/one']).chosen.toSorted()).toEqual(['new', 'new/deep', 'new/deep/one'])
  })

  test('what is named may be protected, and brings what is in it', () => {
    expect(chosenOf(CHANGES, ['new/.git']).chosen.toSorted()).toEqual(['new', 'new/.git', 'new/.git/HEAD'])
  })

  test('a directory that is named does not name what is protected in it', () => {
    const changes = [raw('modified', '.git/config'), raw('modified', '.git/index')]
    expect(chosenOf(changes, ['.git']).chosen).toEqual(['.git/index'])
  })

  test.each(['file', './file', '/host/project/file'])('one can be named %s', (path) => {
    expect(chosenOf(CHANGES, [path]).chosen).toEqual(['file'])
  })

  test.each(['missing', '/host/other/file', '../file'])('none is called %s', (path) => {
    expect(chosenOf(CHANGES, [path]).unknown).toEqual([path])
  })
})

test('a choice is words of bytes, so a name need not be text', () => {
  expect(Buffer.from(choiceBytes([raw('added', '\xff\n')], true)).toString('latin1')).toBe('0\0y\0\xff\n\0')
  expect(Buffer.from(choiceBytes([raw('new-git', 'd')], true)).toString()).toBe('0\0g\0d\0')
})

describe('an answer of the helper', () => {
  test('is read word by word, whatever is in a name', () => {
    const words = [
      '0',
      'added',
      'file',
      '644',
      '',
      '600',
      '3',
      '',
      'a\nb',
      '',
      '1',
      'deleted',
      'directory',
      '755',
      '755',
      '755',
      '0',
      'cn',
      'd',
      '',
    ]
    const changes = parseChanges(Buffer.from(words.map((word) => `${word}\0`).join(''), 'latin1'))
    expect(changes).toMatchObject([
      { zone: 0, kind: 'added', path: 'a\nb', modeApplied: '600', size: 3, conflict: false },
      { zone: 1, kind: 'deleted', conflict: true, nested: true },
    ])
  })

  const shown = (change: RawChange) => shownChange(change, { zones: ZONES, isProtected: () => false })

  test('shows bytes that are no text', () => {
    expect(shown(raw('added', '\xff'))).toMatchObject({ path: '\ufffd', bytes: '/w==' })
    expect(shown(raw('added', rawOf('\u00e4')))).not.toHaveProperty('bytes')
  })

  const LINKS: readonly (readonly [string, string, boolean])[] = [
    ['l', 'file', false],
    ['d/l', '../file', false],
    ['d/l', '../../file', true],
    ['l', '..', true],
    ['l', 'd/../../x', true],
    ['notes', 'up/up/../../etc/passwd', true],
    ['l', '/etc/passwd', true],
    ['l', '/host/project/file', false],
    ['l', '/host/project/../other', true],
    ['l', '/host/projects', true],
  ]
  test.each(LINKS)('says whether %s -> %s leads out', (path, other, leads) => {
    expect(shown(raw('added', path, { type: 'symlink', other })).outside ?? false).toBe(leads)
  })
})

test('a record names zones with what is protected in them', () => {
  const words = [
    ...[
      'llm-do-launch-2',
      'profile',
      'ci',
      'zone',
      '/a',
      '/w',
      'cow',
      '1',
      '2',
      'closed',
      'protect',
      '/a',
      '/w',
      '.envrc',
    ],
    ...[
      'git',
      '/a',
      '/w',
      'config hooks',
      'zone',
      '/b',
      '/x',
      'cow',
      '1',
      '3',
      'closed',
      'keep',
      '1000',
      'since',
      '5',
      '250000000',
      'boot',
      'b00t',
      'end',
      '',
    ],
  ]
  expect(parseRecord(Buffer.from(words.join('\0')))).toEqual({
    profile: 'ci',
    sinceMs: 5250,
    keepMs: 1000,
    boot: 'b00t',
    isCopy: false,
    zones: [
      { source: '/a', target: '/w', protect: ['.envrc'], gitOpen: ['config', 'hooks'] },
      { source: '/b', target: '/x', protect: [], gitOpen: undefined },
    ],
  })
  expect(parseRecord(Buffer.from('nonsense\0end\0'))).toBeUndefined()
  expect(parseRecord(Buffer.from('llm-do-launch-2\0zone\0'))).toBeUndefined()
})
