/** Archives of strangers: what is in one is below the directory, or it is refused and nothing is outside of it. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { ARCHIVE_BOUNDS, ArchiveError, receiveArchive, unpack } from '../../src/fleet/unpack.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { archiveOf, type Member } from './archives.ts'

async function unpacked(archive: Buffer, bounds = ARCHIVE_BOUNDS) {
  const place = await temporaryDirectory()
  const [file, directory] = [join(place, 'a.zip'), join(place, 'outer/inner')]
  await mkdir(directory, { recursive: true })
  writeFileSync(file, archive)
  const error = await unpack(file, directory, bounds).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const outside = [...readdirSync(place), ...readdirSync(join(place, 'outer'))].toSorted()
  return { directory, error, outside }
}

const NOTHING_ELSE = ['a.zip', 'inner', 'outer']

test('files and directories are unpacked, and of a mode only who may execute it', async () => {
  const archive = archiveOf([
    { name: 'src/', mode: 0o040777 },
    { name: 'src/a.txt', content: 'a' },
    { name: 'run.sh', content: '#!/bin/sh\n', mode: 0o106777 },
    { name: 'deep/er/\u00e9', content: 'e' },
  ])
  const { directory, error, outside } = await unpacked(archive)
  expect(error).toBeUndefined()
  expect(outside).toEqual(NOTHING_ELSE)
  expect(readFileSync(join(directory, 'deep/er/\u00e9'), 'utf8')).toBe('e')
  expect(statSync(join(directory, 'run.sh')).mode & 0o7100).toBe(0o100)
  expect(statSync(join(directory, 'src/a.txt')).mode & 0o7111).toBe(0)
})

const zeros = (bytes: number): Buffer => Buffer.alloc(bytes)
const small = { ...ARCHIVE_BOUNDS, bytes: 100_000, entries: 50, ratio: 10, ratioFromBytes: 20_000 }

test.each<{ what: string; members: readonly Member[]; entries?: number; says: RegExp }>([
  { what: 'a way up', members: [{ name: '../../up', content: 'x' }], says: /relative path|cannot be used/ },
  {
    what: 'a way up in the middle',
    members: [{ name: 'a/../../up', content: 'x' }],
    says: /relative path|cannot be used/,
  },
  {
    what: 'an absolute name',
    members: [{ name: '/tmp/llm-do-absolute', content: 'x' }],
    says: /absolute|cannot be used/,
  },
  { what: 'a backslash', members: [{ name: '..\\up', content: 'x' }], says: /invalid|cannot be used/ },
  { what: 'a NUL', members: [{ name: 'a\0b', content: 'x' }], says: /cannot be used/ },
  {
    what: 'a name that is not UTF-8',
    members: [{ name: Buffer.from('\xff', 'latin1'), content: 'x' }],
    says: /cannot be used/,
  },
  {
    what: 'a name that is not UTF-8 and does not say that it is',
    members: [{ name: Buffer.from('\xff\xfe', 'latin1'), content: 'x', flags: 0 }],
    says: /not UTF-8/,
  },
  { what: 'as many files as its end can declare', members: [{ name: 'a' }], entries: 0xfffe, says: /more than 50/ },
  {
    what: 'a link among the directories',
    members: [
      { name: 'l/', mode: 0o120777 },
      { name: 'l/up', content: 'x' },
    ],
    says: /neither/,
  },
  { what: 'an empty name', members: [{ name: '', content: 'x' }], says: /cannot be used/ },
  { what: 'a dot', members: [{ name: './a', content: 'x' }], says: /cannot be used/ },
  { what: 'a name that is too long', members: [{ name: 'n'.repeat(256), content: 'x' }], says: /cannot be used/ },
  { what: 'a symbolic link', members: [{ name: 'l', content: '/etc/passwd', mode: 0o120777 }], says: /neither/ },
  {
    what: 'a file through a link',
    members: [
      { name: 'l', content: '..', mode: 0o120777 },
      { name: 'l/up', content: 'x' },
    ],
    says: /neither/,
  },
  { what: 'a device', members: [{ name: 'd', mode: 0o020666 }], says: /neither/ },
  { what: 'a FIFO', members: [{ name: 'f', mode: 0o010666 }], says: /neither/ },
  { what: 'a socket', members: [{ name: 's', mode: 0o140666 }], says: /neither/ },
  {
    what: 'two files of one name',
    members: [
      { name: 'a', content: '1' },
      { name: 'a', content: '2' },
    ],
    says: /two files/,
  },
  {
    what: 'a file that is a directory',
    members: [{ name: 'a', content: '1' }, { name: 'a/b' }],
    says: /file and a directory/,
  },
  {
    what: 'a directory that is a file',
    members: [{ name: 'a/b' }, { name: 'a', content: '1' }],
    says: /^"a" is a file and a directory$/,
  },
  {
    what: 'more bytes than are allowed',
    members: [{ name: 'a', content: Buffer.from([...Array(150_000).keys()]) }],
    says: /more than is allowed/,
  },
  { what: 'a bomb of one file', members: [{ name: 'a', content: zeros(50_000) }], says: /more than is allowed/ },
  {
    what: 'a bomb of many files',
    members: Array.from({ length: 40 }, (_, at) => ({ name: `a${at}`, content: zeros(5_000) })),
    says: /more than is allowed/,
  },
  {
    what: 'a bomb that declares less',
    members: [{ name: 'a', content: zeros(50_000), declaredBytes: 10 }],
    says: /too many bytes|more than/,
  },
  {
    what: 'too many files',
    members: Array.from({ length: 51 }, (_, at) => ({ name: `a${at}` })),
    says: /more than 50/,
  },
  { what: 'directories that names imply', members: [{ name: `${'d/'.repeat(60)}a` }], says: /more than 50/ },
  {
    what: 'more files than it says',
    members: Array.from({ length: 3 }, () => ({ name: 'a' })),
    entries: 60_000,
    says: /more than 50/,
  },
])('$what is refused', async ({ members, entries, says }) => {
  const { error, outside } = await unpacked(archiveOf(members, entries), small)
  expect(error).toBeInstanceOf(ArchiveError)
  expect((error as Error).message).toMatch(says)
  expect(outside).toEqual(NOTHING_ELSE)
})

test('a million files that its ZIP64 end declares are refused before anything is written', async () => {
  const { directory, error } = await unpacked(archiveOf([{ name: 'a', content: 'x' }], 1_000_000))
  expect((error as Error).message).toMatch(/more than 50000/)
  expect(readdirSync(directory)).toEqual([])
})

test('the same bounds let honest files pass', async () => {
  const members = Array.from({ length: 40 }, (_, at) => ({ name: `d/a${at}`, content: `file ${at}` }))
  expect((await unpacked(archiveOf(members), small)).error).toBeUndefined()
})

test('names with line breaks and escapes, and names that differ in their case, are names', async () => {
  const names = ['a\nb', '\u001b[2Jc', 'Case', 'case', '\u00e9']
  // The last one is not marked as UTF-8, as many archivers leave it.
  const members = names.map((name) => ({ name, content: name, ...(name === '\u00e9' && { flags: 0 }) }))
  const { directory, error, outside } = await unpacked(archiveOf(members))
  expect(error).toBeUndefined()
  expect(outside).toEqual(NOTHING_ELSE)
  expect(readdirSync(directory).toSorted()).toEqual(names.toSorted())
  for (const name of names) expect(readFileSync(join(directory, name), 'utf8')).toBe(name)
})

test('what a name would do to a terminal is not in the message', async () => {
  const { error } = await unpacked(archiveOf([{ name: '../\u001b[2J\n', content: 'x' }]))
  expect(error).toBeInstanceOf(ArchiveError)
  expect((error as Error).message).not.toMatch(/[\u001b\n]/)
})

test('what is no archive is refused', async () => {
  expect((await unpacked(Buffer.from('PK no'))).error).toBeInstanceOf(ArchiveError)
})

test('an archive that does not end is not received', async () => {
  async function* endless() {
    for (;;) yield Buffer.alloc(1000)
  }
  const file = join(await temporaryDirectory(), 'a.zip')
  await expect(receiveArchive(endless(), file, 10_000)).rejects.toBeInstanceOf(ArchiveError)
  expect(statSync(file, { throwIfNoEntry: false })?.size ?? 0).toBeLessThanOrEqual(10_000)
})

test('the archives are attacks: who joins names without a look writes outside of the directory', async () => {
  const place = await temporaryDirectory()
  const directory = join(place, 'outer/inner')
  await mkdir(directory, { recursive: true })
  const archive = archiveOf([{ name: '../../up', content: 'x' }])
  const zip = await fromBufferPromise(archive, { lazyEntries: true, decodeStrings: false })
  for await (const { fileName } of zip.eachEntry()) writeFileSync(join(directory, fileName.toString()), 'x')
  expect(readdirSync(place)).toEqual(['outer', 'up'])
})
