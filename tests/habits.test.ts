/** The checks of how we write: sentences (scripts/plain-english.mjs) and commit messages (scripts/hooks/commit-msg). */
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newDirectory } from './support/directory.ts'

const ROOT = join(import.meta.dirname, '..')

interface Lint {
  readonly placesOf: (file: string, text: string) => readonly { readonly line: number; readonly what: string }[]
}
const { placesOf } = (await import(join(ROOT, 'scripts/plain-english.mjs'))) as Lint

// In parts, so that the lint does not take the examples for comments of this file.
const [LINE, OPEN, DOC] = ['/'.repeat(2), `/${'*'}`, `/${'**'}`]

test.each<[string, string, readonly [number, string][]]>([
  ['a.ts', `const a = 1 ${LINE} What it is\n`, [[1, 'What']]],
  ['a.ts', `\n${DOC}\n * A file that\n * nobody reads.\n */\n`, [[2, 'nobody']]],
  ['a.ts', 'const a = \'nobody\' // `nobody`, "nobody"\n', []],
  ['a.c', `${OPEN} Whose file it is. */ ${LINE} What\n`, [[1, 'Whose']]],
  ['a.md', 'It goes on.\n```\nnobody\n```\n`nobody`\n', [[1, 'goes on']]],
  ['a.md', `${'x'.repeat(121)}\n`, [[1, '121 characters']]],
  ['a.yaml', '# Those of others\nkey: "# What"\n', [[1, 'Those']]],
])('hard sentences of %s %j are found: %j', (file, text, expected) => {
  expect(placesOf(file, text).map(({ line, what }) => [line, what])).toEqual(expected)
})

test('a commit message has a subject of a room and a verb, and a body above 20 changed lines', async () => {
  const { path, remove } = await newDirectory()
  const message = join(path, 'message')
  const git = (...words: string[]) => execFileSync('git', words, { cwd: path, stdio: 'ignore' })
  const check = (text: string): boolean => {
    writeFileSync(message, text)
    return spawnSync(join(ROOT, 'scripts/hooks/commit-msg'), [message], { cwd: path }).status === 0
  }
  git('init')
  expect(check('cow: Refuse a layer that is in use\n')).toBe(true)
  expect(check('Refuse a layer\n')).toBe(false)
  expect(check(`cow: ${'X'.repeat(68)}\n`)).toBe(false)
  writeFileSync(join(path, 'file'), 'line\n'.repeat(21))
  git('add', 'file')
  expect(check('cow: Refuse a layer\n\n# a comment\n')).toBe(false)
  expect(check('cow: Refuse a layer\n\nIt was lost.\n')).toBe(true)
  await remove()
})
