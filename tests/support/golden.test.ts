import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { temporaryDirectory } from './directory.ts'
import { compareWithGolden } from './golden.ts'
import { filesBelow, unusedOf } from './unused-goldens.ts'

afterEach(() => void vi.unstubAllEnvs())

test('a text that differs by one byte fails and shows both', async () => {
  vi.stubEnv('LLM_DO_GOLDEN', '')
  const directory = await temporaryDirectory()
  writeFileSync(join(directory, 'a.bwrap'), 'one\n')
  expect(compareWithGolden('one', { name: 'a.bwrap', directory })).toMatchObject({
    pass: false,
    actual: 'one',
    expected: 'one\n',
  })
})

test('a golden file that does not exist fails and says how to make it', async () => {
  vi.stubEnv('LLM_DO_GOLDEN', '')
  const comparison = compareWithGolden('one', { name: 'b.err', directory: await temporaryDirectory() })
  expect(comparison.pass).toBe(false)
  expect(comparison.message()).toBe('tests/golden/b.err does not exist (hint: make golden, then review it)')
})

test('golden files are written on demand only', async () => {
  vi.stubEnv('LLM_DO_GOLDEN', 'write')
  const directory = await temporaryDirectory()
  expect(compareWithGolden('new\n', { name: 'deep/c.plan.json', directory }).pass).toBe(true)
  expect(readFileSync(join(directory, 'deep/c.plan.json'), 'utf8')).toBe('new\n')
})

test('golden files that no test used are found, in folders too', async () => {
  const directory = await temporaryDirectory()
  mkdirSync(join(directory, 'deep'))
  for (const name of ['a.bwrap', 'deep/b.err', 'deep/c.err']) writeFileSync(join(directory, name), '')
  expect(unusedOf(filesBelow(directory), new Set(['a.bwrap', 'deep/c.err']))).toEqual(['deep/b.err'])
})
