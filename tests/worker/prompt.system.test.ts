/** The question on a real terminal: a pseudo-terminal of script(1), and no terminal at all. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { build } from 'esbuild'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { newDirectory } from '../support/directory.ts'

const PROMPT = path.join(import.meta.dirname, '..', '..', 'src', 'worker', 'prompt.ts')
const asker = { program: '', reply: '' }

/** A program that asks and writes the answer to a file. */
beforeAll(async () => {
  const { path: directory } = await newDirectory()
  asker.program = path.join(directory, 'asker.mjs')
  asker.reply = path.join(directory, 'answer')
  const contents = `import { askOnTerminal } from ${JSON.stringify(PROMPT)}
    import { writeFileSync } from 'node:fs'
    writeFileSync(${JSON.stringify(asker.reply)}, String(await askOnTerminal('may it? ')))`
  const stdin = { contents, resolveDir: directory }
  const form = { bundle: true, platform: 'node', format: 'esm', logLevel: 'silent' } as const
  await build({ stdin, outfile: asker.program, ...form })
})

test.each([
  ['what\ns\n', 'session'],
  ['1\n2\n3\n4\n5\ny\n', 'no'],
])('%j typed at a terminal is %s, and a pipe on stdin answers nothing', async (typed, expected) => {
  const command = `${process.execPath} ${asker.program} < /dev/null`
  const { stdout } = await execa('script', ['-qec', command, '/dev/null'], { input: typed, timeout: 60_000 })
  expect(stdout).toContain('may it? ')
  expect(await readFile(asker.reply, 'utf8')).toBe(expected)
})

test('the question has no answer without a terminal, whatever stdin says', async () => {
  await execa('setsid', ['-w', process.execPath, asker.program], { input: 'y\n', timeout: 60_000 })
  expect(await readFile(asker.reply, 'utf8')).toBe('undefined')
})
