import { chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeDirectories } from '../../src/os/make-directories.ts'
import { temporaryDirectory } from '../support/directory.ts'

test('a directory is made with those above it, each with the mode that is asked for', async () => {
  const root = await temporaryDirectory()
  makeDirectories(join(root, 'a/b/c'), 0o700)
  for (const path of ['a', 'a/b', 'a/b/c']) expect((await stat(join(root, path))).mode & 0o7777).toBe(0o700)
})

test('what is there stays as it is', async () => {
  const root = await temporaryDirectory()
  await mkdir(join(root, 'a'))
  await chmod(join(root, 'a'), 0o750)
  await writeFile(join(root, 'file'), 'text')
  makeDirectories(join(root, 'a'), 0o700)
  makeDirectories(join(root, 'file'))
  expect((await stat(join(root, 'a'))).mode & 0o7777).toBe(0o750)
  expect((await stat(join(root, 'file'))).isFile()).toBe(true)
})

test.each([
  ['in /proc, where no directory can be made', '/proc/nosuch/deep/er', /ENOENT|EPERM|EACCES/],
  ['below a file', '/proc/self/status/a/b', /ENOTDIR/],
])('it is an error %s, and not a wait for ever', (_where, path, why) => {
  expect(() => makeDirectories(path)).toThrow(expect.objectContaining({ code: expect.stringMatching(why) }))
})
