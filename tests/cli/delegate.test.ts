import { chmodSync, linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dirSync } from 'tmp-promise'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findNext } from '../../src/cli/delegate.ts'

let directory: ReturnType<typeof dirSync>
let script: string
beforeEach(() => {
  directory = dirSync({ unsafeCleanup: true, prefix: 'llm-do-forward-' })
  for (const name of ['ours/bin', 'ours/dist', 'links', 'other', 'dead'])
    mkdirSync(join(directory.name, name), { recursive: true })
  script = join(directory.name, 'ours/dist/cli.cjs')
  program('ours/dist/cli.cjs')
  program('ours/bin/llm-do')
})
afterEach(() => directory.removeCallback())

function program(path: string): string {
  const file = join(directory.name, path)
  writeFileSync(file, '#!/bin/sh\n')
  chmodSync(file, 0o755)
  return file
}

function next(path: readonly string[], more: NodeJS.ProcessEnv = {}) {
  return findNext(script, { env: more, path: path.map((part) => join(directory.name, part)).join(':') })
}

test('the first llm-do on PATH that is not ourselves gets the words', () => {
  const other = program('other/llm-do')
  expect(next(['ours/bin', 'other'])?.file).toBe(other)
})

test.each([
  ['a symbolic link to us', (link: string) => symlinkSync(join(directory.name, 'ours/bin/llm-do'), link)],
  ['a hard link to us', (link: string) => linkSync(join(directory.name, 'ours/bin/llm-do'), link)],
  ['a directory', (link: string) => mkdirSync(link)],
  ['a file that cannot be executed', (link: string) => writeFileSync(link, '')],
])('%s is passed over', (_, make) => {
  make(join(directory.name, 'links/llm-do'))
  expect(next(['links'])).toBeUndefined()
})

test('two installations never forward to each other for ever', () => {
  const other = program('other/llm-do')
  const first = next(['other'])
  expect(first?.file).toBe(other)
  const env = first?.env ?? {}
  expect(findNext(other, { env, path: join(directory.name, 'ours/bin') })).toBeUndefined()
})

test('a relative entry of PATH is never searched', () => {
  program('other/llm-do')
  expect(findNext(script, { env: {}, path: `:.:${''}` })).toBeUndefined()
})
