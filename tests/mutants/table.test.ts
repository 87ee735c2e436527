/** Keeps the table of `make mutants` true: each replaced text is once in its file, and each test is in `make test`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const ROOT = join(import.meta.dirname, '../..')

interface Mutant {
  readonly name: string
  /** What no longer holds with it. */
  readonly breaks: string
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[]
  readonly test: {
    readonly project: 'unit' | 'system'
    readonly file: string
    readonly name: string
    readonly as?: 'root'
  }
}

const rows = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith('.yaml'))
  .flatMap((name) => parse(readFileSync(join(import.meta.dirname, name), 'utf8')) as readonly Mutant[])

test('there are at least 250, each with its own name', () => {
  expect(rows.length).toBeGreaterThanOrEqual(250)
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
})

test.each(rows)(
  '$name replaces what is there once, and names a test that is there',
  ({ breaks, edits, test: noticed }) => {
    expect(breaks).not.toBe('')
    expect(existsSync(join(ROOT, noticed.file)), noticed.file).toBe(true)
    expect(noticed.file, 'make test leaves deep files out').not.toContain('.deep.')
    for (const { file, find, replace } of edits) {
      expect(readFileSync(join(ROOT, file), 'utf8').split(find).length - 1, `${file}: ${find}`).toBe(1)
      expect(replace).not.toBe(find)
    }
  },
)
