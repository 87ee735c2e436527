import { expect, test } from 'vitest'
import { readCommandLine } from '../../src/cli/exec-arguments.ts'
import { divisionOf } from '../../src/launch-cache/cache-key.ts'
import { linesOfWords } from './lines-of-words.ts'

/** Options and command according to the full parser; undefined where it refuses the line. */
function parsed(words: readonly string[]) {
  try {
    return readCommandLine(words, true)
  } catch {
    return undefined
  }
}

test('where the client tells the command of a line, the full parser takes the same one, or refuses the line', () => {
  const lines = linesOfWords()
  const told = lines.flatMap((words) => {
    const [division, whole] = [divisionOf(words, true), parsed(words)]
    return division === undefined || whole === undefined || whole.command.length === 0
      ? []
      : [{ words, division, whole }]
  })
  expect(told.length).toBeGreaterThan(lines.length / 4)
  expect(
    told.map(({ words, division: { command, script, options } }) => [words, command, script, options.length]),
  ).toEqual(told.map(({ words, whole: { command, script, optionsEnd } }) => [words, command, script, optionsEnd]))
})
