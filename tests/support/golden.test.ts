import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { temporaryDirectory } from './directory.ts'
import { compareWithGolden } from './golden.ts'
import { filesBelow, unusedOf } from './unused-goldens.ts'

afterEach(() => void vi.unstubAllEnvs())

test('a golden file that does not exist fails and says how to make it', async () => {
  vi.stubEnv('LLM_DO_GOLDEN', '')
  const comparison = compareWithGolden('one', { name: 'b.err', directory: await temporaryDirectory() })
  expect(comparison.pass).toBe(false)
  expect(comparison.message()).toBe('tests/golden/b.err does not exist (hint: make golden, then review it)')
})

test('golden files that no test used are found, in folders too', async () => {
  const directory = await temporaryDirectory()
  mkdirSync(join(directory, 'deep'))
  for (const name of ['a.bwrap', 'deep/b.err', 'deep/c.err']) writeFileSync(join(directory, name), '')
  expect(unusedOf(filesBelow(directory), new Set(['a.bwrap', 'deep/c.err']))).toEqual(['deep/b.err'])
})
