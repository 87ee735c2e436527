/** One login for a repository, and none for what only says that it belongs to one. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { lookForWorktree } from '../../src/host/linked-worktree.ts'
import { projectOf } from '../../src/run/home-project.ts'
import { temporaryDirectory } from '../support/directory.ts'

const uid = process.getuid?.() ?? -1

test('all directories and linked worktrees of a repository have its home, and nothing else has', async () => {
  const base = await temporaryDirectory()
  const at = (path: string) => join(base, path)
  const git = (...words: readonly string[]) => execa('git', ['-C', at('main'), ...words])
  for (const path of ['main/sub/deep', 'main/module', 'main/inner', 'other', 'home/project'])
    mkdirSync(at(path), { recursive: true })
  await git('init', '-q')
  await git('-c', 'user.name=a', '-c', 'user.email=a@b.c', 'commit', '-q', '--allow-empty', '-m', 'x')
  await git('worktree', 'add', '-q', at('linked'))
  await execa('git', ['init', '-q', at('main/inner')])
  await execa('git', ['init', '-q', at('home')])
  writeFileSync(at('main/module/.git'), `gitdir: ${at('main/.git/modules/module')}\n`)
  writeFileSync(at('other/.git'), `gitdir: ${at('main/.git/worktrees/linked')}\n`)
  const project = (path: string, caller = { uid, home: at('home') }) =>
    projectOf(at(path), lookForWorktree(at(path), uid), caller)
  expect(['main', 'main/sub', 'main/sub/deep', 'linked'].map((path) => project(path))).toEqual(
    Array(4).fill(at('main')),
  )
  for (const path of ['main/inner', 'main/module', 'other', 'home/project']) expect(project(path)).toBe(at(path))
  expect(project('main/sub', { uid: uid + 1, home: '' })).toBe(at('main/sub'))
})
