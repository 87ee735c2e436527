import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
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
  test.each<[title: string, spoil: (file: string) => void]>([
    ['from a directory that others may enter', (file) => chmodSync(dirname(file), 0o755)],
    ['from a file that was cut', (file) => truncateSync(file, statSync(file).size - 3)],
    ['from a file with another key', (file) => writeFileSync(file, JSON.stringify({ key: 'other', value }))],
  ])('%s', (_title, spoil) => {
    remember(inputs(), value)
    expect(recall(inputs())).toEqual(value)
    spoil(fileOf(inputs().directory))
    expect(recall(inputs())).toBeUndefined()
  })

  test('from a directory that is a link', () => {
    mkdirSync(join(site.root, 'real'), { mode: 0o700 })
    symlinkSync('real', join(site.root, 'link'))
    remember(inputs('key', join(site.root, 'link')), value)
    expect(readdirSync(join(site.root, 'real'))).toEqual([])
  })
})

test.each([
  ['once', '', true, 1],
  ['again when something was lacking: it may have been by chance', 'no process may be moved there (EAGAIN)', true, 2],
  ['again when it holds no more', '', false, 2],
])('What takes long to find is found %s', async (_title, lacking, holds, times) => {
  const finds: object[] = []
  const find = async () => {
    finds.push({ lacking })
    return { lacking }
  }
  const isLasting = (found: { readonly lacking: string }) => found.lacking === ''
  for (const _ of [1, 2])
    expect(await recallOrFind(inputs(), { find, isLasting, holds: () => holds })).toEqual({ lacking })
  expect(finds).toHaveLength(times)
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
