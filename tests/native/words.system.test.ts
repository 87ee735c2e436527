/** Command lines as the client divides them, compared with src/launch-cache/cache-key.ts: what is divided otherwise has another key, or runs another command. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { hasBash } from '../../src/host/program.ts'
import { divisionOf } from '../../src/launch-cache/cache-key.ts'
import { linesOfWords } from '../launch-cache/lines-of-words.ts'
import { driver } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'

const ended = (words: readonly (string | number)[]): string => words.map((word) => `${word}\0`).join('')

function printed(words: readonly string[]): string {
  const division = divisionOf(words, hasBash())
  if (division === undefined) return ended(['none'])
  const { options, command, script = '' } = division
  return ended([options.length, script, command.length, ...command])
}

describeWith('gcc', 'the client', () => {
  test('divides every command line as node does', async () => {
    const lines = linesOfWords()
    const { stdout } = await execa(driver('native/words'), {
      input: ended(lines.flatMap((line) => [line.length, ...line])),
    })
    expect(stdout).toBe(lines.map(printed).join(''))
  })
})
