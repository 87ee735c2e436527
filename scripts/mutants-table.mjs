// Reads tests/mutants/*.txt, the table of `make mutants`. Indentation says what a line is:
//
//   src/where/it/is.ts tests/where/it/is.test.ts          the source that is broken, the file of the test that must fail then
//       NAME (part of the test's title): what it breaks   without parentheses, any test of the file
//         unchanged text [-removed-]{+added+} more text   as in `git diff --word-diff`; several lines are one text, which the source has once
//       & text of the same source                         one more edit of the same row
//       & src/another.ts                                  one more edit of the same row follows, in another source
//     tests/another.test.ts                               rows of the same source and another test follow
//
// A line that begins with # is a comment. Everything is text: nothing is quoted or escaped.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './test/programs.mjs'

const CHANGED = /\[-(.*?)-\](?:\{\+(.*?)\+\})?|\{\+(.*?)\+\}/gs

/** The text of an edit before and after. */
const sides = (text) => ({
  find: text.replace(CHANGED, (_, removed = '') => removed),
  replace: text.replace(CHANGED, (_, _removed, instead = '', added = instead) => added),
})

/** Units of the native code run outside of vitest. */
function projectOf(test) {
  if (test.endsWith('.c')) return 'native'
  return test.endsWith('.system.test.ts') ? 'system' : test.endsWith('.sweep.test.ts') ? 'sweep' : 'unit'
}

/** @throws Error with the number of a line that is none of a table's */
export function readMutants(text) {
  const rows = []
  let source, test
  for (const [index, line] of text.split('\n').entries()) {
    const [, indent, rest] = /^( {0,6})(.*)$/.exec(line)
    if (rest === '' || line.startsWith('#')) continue
    const row = rows.at(-1)
    const head = /^(?<name>[a-z0-9-]+)(?: \((?<title>.*?)\))?: (?<breaks>.+)$/.exec(rest)
    if (indent.length === 0 && /^[\w./-]+( [\w./-]+)?$/.test(rest)) [source, test] = rest.split(' ')
    else if (indent.length === 2) test = rest
    else if (indent.length === 4 && rest.startsWith('& '))
      row.edits.push(
        /^& [\w./-]+$/.test(rest) ? { file: rest.slice(2), lines: [] } : { file: source, lines: [rest.slice(2)] },
      )
    else if (indent.length === 4 && head !== null) {
      const { name, title = '', breaks } = head.groups
      const project = projectOf(test)
      rows.push({ name, breaks, edits: [{ file: source, lines: [] }], test: { project, file: test, name: title } })
    } else if (indent.length === 6) row.edits.at(-1).lines.push(rest)
    else throw new Error(`line ${index + 1}: expected a file, NAME (TITLE): TEXT, or an edit, got ${line}`)
  }
  return rows.map((row) => ({
    ...row,
    edits: row.edits.map(({ file, lines }) => ({ file, ...sides(lines.join('\n')) })),
  }))
}

/** Every row of the table. */
export function allMutants() {
  const directory = join(checkout, 'tests/mutants')
  return readdirSync(directory)
    .filter((name) => name.endsWith('.txt'))
    .flatMap((name) => readMutants(readFileSync(join(directory, name), 'utf8')))
}
