import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { cacheDirectory, recall, recallOrFind, remember } from '../../src/host/boot-cache.ts'

const uid = process.getuid?.() ?? 0
const value = { works: true }
const site: { root: string } = { root: '' }
const inputs = (
  key = 'key',
  directory = join(site.root, 'llm-do'),
): { directory: string; key: string; uid: number } => ({ directory, key, uid })
const fileOf = (directory: string): string => join(directory, readdirSync(directory)[0] ?? 'none')

beforeEach(() => {
  site.root = mkdtempSync(join(tmpdir(), 'llm-do-cache-'))
})
afterEach(() => rmSync(site.root, { recursive: true, force: true }))

describe('What was remembered', () => {
  test('is recalled under the same key and no other', () => {
    remember(inputs(), value)
    expect(recall(inputs())).toEqual(value)
    expect(recall(inputs('other'))).toBeUndefined()
  })

  test('is private to the user', () => {
    remember(inputs(), value)
    const { directory } = inputs()
    expect([statSync(directory).mode & 0o777, statSync(fileOf(directory)).mode & 0o777]).toEqual([0o700, 0o600])
  })

  test('leaves no temporary file, and no more than thirty-two', () => {
    for (let index = 0; index < 40; index++) remember(inputs(`key-${index}`), value)
    expect(readdirSync(inputs().directory).filter((name) => !/^facts-[0-9a-f]{16}\.json$/.test(name))).toEqual([])
    expect(readdirSync(inputs().directory)).toHaveLength(32)
  })
})

describe('Nothing is recalled', () => {
  test.each<[title: string, spoil: (directory: string) => void]>([
    ['from a directory that others may enter', (directory) => chmodSync(directory, 0o755)],
    ['from a file that others may write', (directory) => chmodSync(fileOf(directory), 0o666)],
    [
      'from a file that was cut',
      (directory) => writeFileSync(fileOf(directory), readFileSync(fileOf(directory), 'utf8').slice(0, -3)),
    ],
    [
      'from a file with another key',
      (directory) => writeFileSync(fileOf(directory), JSON.stringify({ key: 'other', value })),
    ],
    [
      'from a file that is too large',
      (directory) => writeFileSync(fileOf(directory), JSON.stringify({ key: 'key', value, more: 'x'.repeat(70_000) })),
    ],
    [
      'through a symbolic link',
      (directory) => {
        const file = fileOf(directory)
        const copy = join(site.root, 'copy')
        writeFileSync(copy, readFileSync(file), { mode: 0o600 })
        rmSync(file)
        symlinkSync(copy, file)
      },
    ],
    [
      'from a FIFO, and nothing waits for it',
      (directory) => {
        const file = fileOf(directory)
        rmSync(file)
        execFileSync('mkfifo', ['-m', '600', file])
      },
    ],
  ])('%s', (_title, spoil) => {
    remember(inputs(), value)
    expect(recall(inputs())).toEqual(value)
    spoil(inputs().directory)
    expect(recall(inputs())).toBeUndefined()
  })

  test('of another user', () => {
    remember(inputs(), value)
    expect(recall({ ...inputs(), uid: uid + 1 })).toBeUndefined()
  })

  test('from a directory that is a link', () => {
    mkdirSync(join(site.root, 'real'), { mode: 0o700 })
    symlinkSync('real', join(site.root, 'link'))
    remember(inputs('key', join(site.root, 'link')), value)
    expect(readdirSync(join(site.root, 'real'))).toEqual([])
  })
})

describe('What takes long to find', () => {
  /** How often it was looked for in two questions. */
  const countFinds = async (
    found: { readonly lacking: string },
    { holds = true, cache = inputs() } = {},
  ): Promise<number> => {
    const times: number[] = []
    const sought = {
      find: async () => {
        times.push(1)
        return found
      },
      isLasting: ({ lacking }: typeof found) => lacking === '',
      holds: () => holds,
    }
    expect(await recallOrFind(cache, sought)).toEqual(found)
    expect(await recallOrFind(cache, sought)).toEqual(found)
    return times.length
  }

  test('is found once', async () => {
    expect(await countFinds({ lacking: '' })).toBe(1)
  })

  test('is looked for again when something was lacking: it may have been by chance', async () => {
    expect(await countFinds({ lacking: 'no process may be moved there (EAGAIN)' })).toBe(2)
  })

  test('is looked for again when it holds no more', async () => {
    expect(await countFinds({ lacking: '' }, { holds: false })).toBe(2)
  })
})

test.each<[title: string, directory: () => string]>([
  ['is a file', () => '/dev/null/llm-do'],
  ['is read-only', () => '/proc/llm-do'],
  ['is full', () => '/dev/full/llm-do'],
])('A place for the cache that %s is not used, without a complaint', (_title, directory) => {
  remember(inputs('key', directory()), value)
  expect(recall(inputs('key', directory()))).toBeUndefined()
})

test.each<[Record<string, string>, string | undefined]>([
  [{ XDG_CACHE_HOME: '/c', HOME: '/h' }, '/c/llm-do'],
  [{ XDG_CACHE_HOME: 'relative', HOME: '/h' }, '/h/.cache/llm-do'],
  [{ HOME: '/h' }, '/h/.cache/llm-do'],
  [{ HOME: '' }, undefined],
  [{}, undefined],
])('The cache of %j is %s', (env, expected) => {
  expect(cacheDirectory(env)).toBe(expected)
})
