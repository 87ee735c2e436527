/** A `.git` file alone shows nothing: the repository has to know of the checkout. */
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { lookForWorktree } from '../../src/host/linked-worktree.ts'

const UID = process.getuid?.() ?? -1
let base = ''
const at = (...words: string[]): string => join(base, ...words)
const own = (...words: string[]): string => at('main/.git/worktrees/wt', ...words)

/** The files of `git worktree add ../wt`. */
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'llm-do-worktree-')))
  for (const directory of ['main/.git/objects', 'main/.git/refs', 'main/.git/worktrees/wt', 'wt/sub'])
    mkdirSync(at(directory), { recursive: true })
  writeFileSync(at('main/.git/HEAD'), 'ref: refs/heads/main\n')
  writeFileSync(own('gitdir'), `${at('wt/.git')}\n`)
  writeFileSync(own('commondir'), '../..\n')
  writeFileSync(at('wt/.git'), `gitdir: ${own()}\n`)
})
afterEach(() => rmSync(base, { recursive: true }))

const found = (directory = at('wt')) => lookForWorktree(directory, UID).worktree

describe('The repository of a linked worktree', () => {
  test('is found from its root and below it, with the files that say so', () => {
    const worktree = { root: at('wt'), common: at('main/.git') }
    expect(lookForWorktree(at('wt'), UID)).toEqual({
      worktree,
      read: [at('wt/.git'), own('gitdir'), own('commondir')],
      missing: [],
    })
    expect(found(at('wt/sub'))).toEqual(worktree)
  })

  test('is found by relative names, as newer versions of git write them', () => {
    writeFileSync(at('wt/.git'), 'gitdir: ../main/.git/worktrees/wt\n')
    writeFileSync(own('gitdir'), '../../../../wt/.git\n')
    expect(found()?.common).toBe(at('main/.git'))
  })

  test('is not there in an ordinary repository, nor without one', () => {
    expect(lookForWorktree(at('main'), UID)).toEqual({ read: [], missing: [] })
    expect(lookForWorktree(at('main/.git'), UID)).toEqual({ repository: at('main'), read: [], missing: [] })
    expect(found(at())).toBeUndefined()
  })

  /** Puts it elsewhere and a link in its place. */
  const link = (path: string) => {
    renameSync(path, at('real'))
    symlinkSync(at('real'), path)
  }
  test.each<[title: string, change: () => void]>([
    ['a directory that is no repository', () => writeFileSync(at('wt/.git'), `gitdir: ${at('wt/sub')}\n`)],
    ['a repository itself', () => writeFileSync(at('wt/.git'), `gitdir: ${at('main/.git')}\n`)],
    ['a worktree that is another directory’s', () => writeFileSync(own('gitdir'), `${at('other/.git')}\n`)],
    ['a worktree of another common directory', () => writeFileSync(own('commondir'), '../../..\n')],
    ['a record without a way back', () => rmSync(own('gitdir'))],
    ['a record that is a link', () => link(own('gitdir'))],
    ['a place behind a link', () => link(at('main'))],
    ['a place of another form', () => rmSync(at('main/.git/objects'), { recursive: true })],
    ['objects that are a link', () => link(at('main/.git/objects'))],
    ['more than one line', () => writeFileSync(at('wt/.git'), `gitdir: ${own()}\ngitdir: /\n`)],
    ['a link in the place of the file', () => link(at('wt/.git'))],
  ])('is not %s', (_title, change) => {
    change()
    expect(found()).toBeUndefined()
  })

  test('is no directory above the checkout, which holds more than a repository', () => {
    mkdirSync(at('objects'))
    mkdirSync(at('refs'))
    mkdirSync(at('worktrees/wt'), { recursive: true })
    writeFileSync(at('HEAD'), 'ref: refs/heads/main\n')
    writeFileSync(at('worktrees/wt/gitdir'), `${at('wt/.git')}\n`)
    writeFileSync(at('worktrees/wt/commondir'), '../..\n')
    writeFileSync(at('wt/.git'), `gitdir: ${at('worktrees/wt')}\n`)
    expect(found()).toBeUndefined()
  })

  test('is not taken from a checkout of another user', () => {
    expect(lookForWorktree(at('wt'), UID + 1).worktree).toBeUndefined()
  })

  test('that is lost names the files that would bring it back', () => {
    rmSync(own('gitdir'))
    const { read, missing } = lookForWorktree(at('wt'), UID)
    expect({ read, missing }).toEqual({ read: [at('wt/.git'), own('commondir')], missing: [own('gitdir')] })
  })
})

describe('What git has to see', () => {
  const submodule = (gitdir: string): string | undefined => {
    mkdirSync(at('main/mod'), { recursive: true })
    writeFileSync(at('main/mod/.git'), `gitdir: ${gitdir}\n`)
    return lookForWorktree(at('main/mod'), UID).repository
  }

  test('is the project above a submodule', () => {
    expect(submodule('../.git/modules/mod')).toBe(at('main'))
    expect(submodule(at('main/.git/modules/mod'))).toBe(at('main'))
  })

  test('is never a directory elsewhere that the file names', () => {
    expect(submodule('/etc/.git/modules/mod')).toBeUndefined()
    expect(submodule(at('wt/.git/modules/mod'))).toBeUndefined()
  })
})
