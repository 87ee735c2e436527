import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { dirSync } from 'tmp-promise'
import { describe, expect, onTestFinished, test } from 'vitest'
import { exactWords, wordsFrom } from '../../src/cli/argv.ts'

const commandLine = (...words: readonly (string | Uint8Array)[]) =>
  Buffer.concat(words.flatMap((word) => [Buffer.from(word as string), Buffer.from([0])]))
const latin1 = Buffer.from([0x66, 0xfc, 0x72])

describe('the words of the command line', () => {
  test('that are UTF-8 need no bytes, a typed U+FFFD included', () => {
    expect(exactWords(['a', '', '\ufffd'], commandLine('node', 'cli.js', 'a', '', '\ufffd'))).toEqual({
      text: ['a', '', '\ufffd'],
    })
  })
  test('that are not UTF-8 keep theirs', () => {
    const words = exactWords(['cat', 'f\ufffdr'], commandLine('node', '--flag', 'cli.js', 'cat', latin1))
    expect(words.bytes?.map((word) => Buffer.from(word))).toEqual([Buffer.from('cat'), latin1])
    expect(wordsFrom(words, 1).bytes?.map((word) => Buffer.from(word))).toEqual([latin1])
  })
  test('are believed as node gave them when the kernel shows fewer', () => {
    expect(exactWords(['a', '\ufffd'], commandLine('a'))).toEqual({ text: ['a', '\ufffd'] })
  })

  test('arrive exactly in a real process', () => {
    const directory = dirSync({ unsafeCleanup: true, prefix: 'llm-do-argv-' })
    onTestFinished(() => directory.removeCallback())
    const script = join(directory.name, 'words.mjs')
    buildSync({
      stdin: {
        contents: `import { readWords } from './argv.ts'
          process.stdout.write(JSON.stringify(readWords().bytes.map((word) => Buffer.from(word).toString('hex'))))`,
        resolveDir: join(import.meta.dirname, '../../src/cli'),
      },
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile: script,
    })
    // Only a shell can make such a word: node passes on nothing but UTF-8.
    const printed = execFileSync('bash', ['-c', `exec "$0" "$1" -- $'f\\374r' '' end`, process.execPath, script])
    expect(JSON.parse(printed.toString())).toEqual(['2d2d', latin1.toString('hex'), '', '656e64'])
  })
})
