import { expect, test } from 'vitest'
import { changes, withLists } from './changes.ts'

const text = (words: string): string => words.replaceAll(' ', '\n')

test.each([
  ['nothing of equal texts', 'a b', 'a b', []],
  ['a replaced line behind the line before it', 'a b c', 'a x c', ['  a', '- b', '+ x']],
  ['a line that is added at the start', 'b', 'a b', ['+ a']],
  ['a line that is removed at the end', 'a b c', 'a b', ['  b', '- c']],
  ['lines that changed places', 'a b c', 'a c b', ['  a', '- b', '  c', '+ b']],
  ['each group behind the line before it', 'a b c d e', 'a c d x e', ['  a', '- b', '  d', '+ x']],
])('changes are %s', (_what, from, to, expected) => {
  expect(changes(text(from), text(to)).split('\n').slice(0, -1)).toEqual(expected)
})

test('lists share lines, as far as they fit, and no word is lost', () => {
  const lines = ['a x', 'a y', 'b x', '"1"', '"2"', '', `a ${'z'.repeat(140)}`, 'a x']
  const gathered = withLists(lines, (line) => /^[a"]/.test(line))
  expect(gathered).toEqual(['a x y', 'b x', '"1" "2"', '', lines[6], 'a x'])
})
