import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { dirSync } from 'tmp-promise'
import { describe, expect, onTestFinished, test } from 'vitest'
import { exactWords, readHandover, wordsFrom } from '../../src/cli/call.ts'

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

  test('arrive exactly in a real process, without what the script puts before them', () => {
    const directory = dirSync({ unsafeCleanup: true, prefix: 'llm-do-call-' })
    onTestFinished(() => directory.removeCallback())
    const script = join(directory.name, 'words.mjs')
    buildSync({
      stdin: {
        contents: `import { readCall } from './call.ts'
          process.stdout.write(JSON.stringify(readCall().bytes.map((word) => Buffer.from(word).toString('hex'))))`,
        resolveDir: join(import.meta.dirname, '../../src/cli'),
      },
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile: script,
    })
    // Only a shell can make such a word: node passes on nothing but UTF-8.
    const words = `exec "$0" "$1" =-- $'=f\\374r' = =end`
    const env = { ...process.env, LLM_DO_CALL: 'argv', LLM_DO_DIRECTORY: '/' }
    const printed = execFileSync('bash', ['-c', words, process.execPath, script], { env })
    expect(JSON.parse(printed.toString())).toEqual(['2d2d', latin1.toString('hex'), '', '656e64'])
  })
})

describe('what the client hands over', () => {
  test('is words, then variables, of which the first of a name counts', () => {
    const call = readHandover(commandLine('-1', '7', '2', '4', 'exec', '', 'A=1', 'B=x=y\n', 'A=2', 'no variable'))
    expect(call.text).toEqual(['exec', ''])
    expect(call.env).toEqual({ A: '1', B: 'x=y\n' })
    expect([call.outcome, call.parent]).toEqual([undefined, 7])
  })
  test('keeps the bytes of words that are not UTF-8', () => {
    expect(readHandover(commandLine('-1', '7', '1', '0', latin1)).bytes).toEqual([latin1])
  })
  test('names the descriptor of an outcome', () => {
    expect(readHandover(commandLine('8', '7', '1', '0', 'exec')).outcome).toBe(8)
  })
  test('knows no variable that the caller has not', () => {
    expect(readHandover(commandLine('-1', '7', '0', '0')).env['constructor']).toBeUndefined()
  })
  test('is refused when a part of it is missing', () => {
    expect(() => readHandover(commandLine('-1', '7', '2', '1', 'exec', 'true'))).toThrow(
      'expected 2 words and 1 variables',
    )
  })
})
