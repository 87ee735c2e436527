/** Command lines as the client divides them, compared with src/launch-cache/cache-key.ts: what is divided otherwise has another key, or runs another command. */
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { hasBash } from '../../src/host/program.ts'
import { divisionOf } from '../../src/launch-cache/cache-key.ts'
import { linesOfWords } from '../launch-cache/lines-of-words.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

const ROOT = join(import.meta.dirname, '../..')
const SOURCES = [
  join(ROOT, 'tests/native/words.c'),
  ...['client/call', 'client/program', 'client/utf8', 'lib/launch-cache', 'lib/launch-file', 'lib/seal'].map((name) =>
    join(ROOT, `native/${name}.c`),
  ),
]
const FLAGS = ['-g', '-Wall', '-Wextra', '-Werror', '-D_GNU_SOURCE=', '-DLLM_DO_VERSION=0', `-I${join(ROOT, 'native')}`]
const SANITIZED = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all']

const built = { program: '' }

const ended = (words: readonly (string | number)[]): string => words.map((word) => `${word}\0`).join('')

function printed(words: readonly string[]): string {
  const division = divisionOf(words, hasBash())
  if (division === undefined) return ended(['none'])
  const { options, command, script = '' } = division
  return ended([options.length, script, command.length, ...command])
}

describeWith('gcc', 'the client', () => {
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    built.program = join(path, 'words')
    await execa('gcc', [...FLAGS, ...SANITIZED, '-o', built.program, ...SOURCES])
    return remove
  })

  test('divides every command line as node does', async () => {
    const lines = linesOfWords()
    const { stdout } = await execa(built.program, { input: ended(lines.flatMap((line) => [line.length, ...line])) })
    expect(stdout).toBe(lines.map(printed).join(''))
  })
})
