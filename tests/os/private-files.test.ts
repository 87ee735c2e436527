import { execFileSync } from 'node:child_process'
import { chmodSync, linkSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { dropOldest, isOwnDirectory, readPrivateFile, writePrivateFile } from '../../src/os/private-files.ts'
import { temporaryDirectory } from '../support/directory.ts'

const uid = process.getuid?.() ?? -1
async function privateDirectory(): Promise<string> {
  const directory = join(await temporaryDirectory(), 'private')
  mkdirSync(directory, { mode: 0o700 })
  return directory
}

test('what was written is read, and only the owner may', async () => {
  const directory = await privateDirectory()
  expect(writePrivateFile({ directory, name: 'a', uid }, 'text')).toBe(true)
  expect(writePrivateFile({ directory, name: 'a', uid }, 'more')).toBe(true)
  expect(readPrivateFile(join(directory, 'a'), { uid, most: 4 })?.toString()).toBe('more')
  expect(statSync(join(directory, 'a')).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual(['a'])
})

describe('a file is not believed', () => {
  test.each<[string, (file: string) => void]>([
    ['that others may read', (file) => chmodSync(file, 0o644)],
    ['with a second name', (file) => linkSync(file, `${file}2`)],
    ['that is too long', (file) => writeFileSync(file, 'x'.repeat(11))],
  ])('%s', async (_, spoil) => {
    const directory = await privateDirectory()
    const file = join(directory, 'a')
    writePrivateFile({ directory, name: 'a', uid }, 'text')
    spoil(file)
    expect(readPrivateFile(file, { uid, most: 10 })).toBeUndefined()
  })

  test('of another user, behind a link, or that is a directory or a FIFO, which is not waited for', async () => {
    const directory = await privateDirectory()
    writePrivateFile({ directory, name: 'a', uid }, 'text')
    symlinkSync('a', join(directory, 'link'))
    execFileSync('mkfifo', ['-m', '600', join(directory, 'fifo')])
    expect(readPrivateFile(join(directory, 'a'), { uid: uid + 1, most: 10 })).toBeUndefined()
    for (const name of ['link', 'fifo', '.'])
      expect(readPrivateFile(join(directory, name), { uid, most: 10 })).toBeUndefined()
  })
})

test('nothing is written to a directory that others may read, that is missing, or that cannot be replaced into', async () => {
  const directory = await privateDirectory()
  mkdirSync(join(directory, 'taken'))
  expect(writePrivateFile({ directory, name: 'taken', uid }, 'text')).toBe(false)
  chmodSync(directory, 0o755)
  expect(isOwnDirectory(directory, uid)).toBe(false)
  expect(isOwnDirectory(directory, uid, 0o022)).toBe(true)
  expect(writePrivateFile({ directory, name: 'a', uid }, 'text')).toBe(false)
  expect(writePrivateFile({ directory: join(directory, 'none'), name: 'a', uid }, 'text')).toBe(false)
  expect(readdirSync(directory)).toEqual(['taken'])
})

test('the oldest files go', async () => {
  const directory = await privateDirectory()
  for (const [age, name] of ['new', 'old', 'older', 'other'].entries()) {
    writeFileSync(join(directory, name), '')
    utimesSync(join(directory, name), 1_000 - age, 1_000 - age)
  }
  dropOldest(directory, 1, (name) => name !== 'other')
  expect(readdirSync(directory).toSorted()).toEqual(['new', 'other'])
})
