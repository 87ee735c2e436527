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

/** The fault of an archive, its members, the message, and the number of members that its end declares. */
type Refused = [what: string, members: readonly Member[], says?: RegExp, entries?: number]

const file = (name: string | Buffer, content: string | Buffer = 'x'): Member => ({ name, content })
const many = (count: number, member: (at: number) => Member) => Array.from({ length: count }, (_, at) => member(at))
const link = (name: string, content = ''): Member => ({ name, content, mode: 0o120777 })
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

const REFUSED: Refused[] = [
  ['a way up', [file('../../up')], /relative path|cannot be used/],
  ['a way up in the middle', [file('a/../../up')], /relative path|cannot be used/],
  ['an absolute name', [file('/tmp/llm-do-absolute')], /absolute|cannot be used/],
  ['a backslash', [file('..\\up')], /invalid|cannot be used/],
  ['a NUL', [file('a\0b')]],
  ['a name that is not UTF-8', [file(bytes('\xff'))]],
  ['a name that is not UTF-8 and does not say that it is', [{ ...file(bytes('\xff\xfe')), flags: 0 }], /not UTF-8/],
  ['as many files as its end can declare', [{ name: 'a' }], /more than 50/, 0xfffe],
  ['a link among the directories', [link('l/'), file('l/up')], /neither/],
  ['an empty name', [file('')]],
  ['a dot', [file('./a')]],
  ['a name that is too long', [file('n'.repeat(256))]],
  ['a symbolic link', [link('l', '/etc/passwd')], /neither/],
  ['a file through a link', [link('l', '..'), file('l/up')], /neither/],
  ['a device', [{ name: 'd', mode: 0o020666 }], /neither/],
  ['a FIFO', [{ name: 'f', mode: 0o010666 }], /neither/],
  ['a socket', [{ name: 's', mode: 0o140666 }], /neither/],
  ['two files of one name', [file('a', '1'), file('a', '2')], /two files/],
  ['a file that is a directory', [file('a', '1'), { name: 'a/b' }], /file and a directory/],
  ['a directory that is a file', [{ name: 'a/b' }, file('a', '1')], /^"a" is a file and a directory$/],
  ['more bytes than are allowed', [file('a', Buffer.from([...Array(150_000).keys()]))], /more than is allowed/],
  ['a bomb of one file', [file('a', zeros(50_000))], /more than is allowed/],
  ['a bomb of many files', many(40, (at) => file(`a${at}`, zeros(5_000))), /more than is allowed/],
  ['a bomb that declares less', [{ ...file('a', zeros(50_000)), declaredBytes: 10 }], /too many bytes|more than/],
  ['too many files', many(51, (at) => ({ name: `a${at}` })), /more than 50/],
  ['directories that names imply', [{ name: `${'d/'.repeat(60)}a` }], /more than 50/],
  ['more files than it says', many(3, () => ({ name: 'a' })), /more than 50/, 60_000],
]

test.each(REFUSED)('%s is refused', async (_, members, says = /cannot be used/, entries = undefined) => {
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
