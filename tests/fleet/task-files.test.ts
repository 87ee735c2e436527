/** The files of a task become an archive: its regular files, and nothing that a link leads to. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packChanges, stampFiles } from '../../src/fleet/task-files.ts'
import { TaskPlaces } from '../../src/fleet/task-places.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { namesIn } from './archives.ts'

test('only files that were made or changed are packed, no links and nothing behind them', async () => {
  const place = await temporaryDirectory()
  const directory = join(place, 'work')
  mkdirSync(join(directory, 'sub'), { recursive: true })
  writeFileSync(join(place, 'secret'), 'outside')
  for (const name of ['same', 'changed', 'sub/same']) writeFileSync(join(directory, name), name)
  const before = await stampFiles(directory)
  writeFileSync(join(directory, 'changed'), 'other')
  writeFileSync(join(directory, 'sub/new'), 'new')
  symlinkSync('../secret', join(directory, 'link'))
  symlinkSync('..', join(directory, 'up'))
  execFileSync('mkfifo', [join(directory, 'fifo')])
  const { zip } = await packChanges(directory, before)
  expect(await namesIn(zip)).toEqual(['changed', 'sub/new'])
})

test('a directory without changes makes no archive', async () => {
  const directory = await temporaryDirectory()
  writeFileSync(join(directory, 'same'), '')
  expect(await packChanges(directory, await stampFiles(directory))).toEqual({ left: [] })
})

test('a file that cannot be packed is left out and named, the others are packed', async () => {
  const directory = await temporaryDirectory()
  for (const name of ['C:foo', 'a\\b', 'good', 'small', 'z']) writeFileSync(join(directory, name), 'xx')
  writeFileSync(Buffer.from(`${directory}/\xff`, 'latin1'), 'xx')
  truncateSync(join(directory, 'good'), 3)
  writeFileSync(join(directory, 'huge'), '')
  truncateSync(join(directory, 'huge'), 10 * 1024 ** 3)
  const packed = await packChanges(directory, new Map(), { bytes: 5, files: 2 })
  expect(await namesIn(packed.zip)).toEqual(['good', 'small'])
  expect(packed.left).toEqual([
    'C:foo: no archive can hold this name',
    'a\\b: no archive can hold this name',
    'huge: more than 5 bytes of changed files',
    'z: more than 2 changed files',
    '\ufffd: its name is not UTF-8',
  ])
})

test('a directory of a task is fresh for each, also after one that nobody may enter', async () => {
  const parent = await temporaryDirectory()
  const places = new TaskPlaces(parent)
  const inodes: bigint[] = []
  for (const mode of [0, 0o755])
    await places.use(async ({ work, archive }) => {
      const { ino, mode: own } = statSync(work, { bigint: true })
      inodes.push(ino)
      expect(Number(own) & 0o7777).toBe(0o755)
      expect(readdirSync(parent)).toEqual(['task-1'])
      expect(readdirSync(work)).toEqual([])
      writeFileSync(archive, '')
      mkdirSync(join(work, 'closed/inner'), { recursive: true })
      for (const name of ['closed/inner', 'closed', '']) chmodSync(join(work, name), mode)
    })
  expect(readdirSync(parent)).toEqual([])
  expect(inodes).toHaveLength(2)
})

test('two tasks at once have two directories, and a place that was left is used again', async () => {
  const parent = await temporaryDirectory()
  const places = new TaskPlaces(parent)
  const names = await places.use(({ work: outer }) => places.use(async ({ work: inner }) => [outer, inner]))
  expect(new Set(names).size).toBe(2)
  await places.use(async ({ work }) => expect(names).toContain(work))
})
