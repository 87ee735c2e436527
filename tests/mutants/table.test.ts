/** Keeps the table of `make mutants` true: each replaced text is once in its file, and each test is in `make test`. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

interface Mutant {
  readonly name: string
  /** The promise that it breaks. */
  readonly breaks: string
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[]
  readonly test: { readonly project: string; readonly file: string; readonly name: string }
}

interface Table {
  readonly allMutants: () => readonly Mutant[]
  readonly readMutants: (text: string) => readonly Mutant[]
}

const { allMutants, readMutants } = (await import(join(ROOT, 'scripts/mutants-table.mjs'))) as Table
const rows = allMutants()

test('there are at least 250, each with its own name', () => {
  expect(rows.length).toBeGreaterThanOrEqual(250)
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
})

test.each(rows)('$name replaces what is there once, and names a test that is there', ({ edits, test: noticed }) => {
  expect(existsSync(join(ROOT, noticed.file)), noticed.file).toBe(true)
  expect(noticed.file, 'make test leaves deep files out').not.toContain('.deep.')
  for (const { file, find, replace } of edits) {
    expect(readFileSync(join(ROOT, file), 'utf8').split(find).length - 1, `${file}: ${find}`).toBe(1)
    expect(replace).not.toBe(find)
  }
})

test('a row is read as it is written', () => {
  const row =
    '    x (a (b) c): no: wall\n      if ([-a-]{+b+}) c[-d\n      -]\n    & [-g-]h\n    & z.c\n        {+e+}f[0]'
  expect(readMutants(`# why\na.c o.test.ts\n  t.system.test.ts\n${row}`)).toEqual([
    {
      name: 'x',
      breaks: 'no: wall',
      edits: [
        { file: 'a.c', find: 'if (a) cd\n', replace: 'if (b) c' },
        { file: 'a.c', find: 'gh', replace: 'h' },
        { file: 'z.c', find: '  f[0]', replace: '  ef[0]' },
      ],
      test: { project: 'system', file: 't.system.test.ts', name: 'a (b) c' },
    },
  ])
  expect(() => readMutants('a.c t.test.ts\n    no row')).toThrow('line 2')
})
