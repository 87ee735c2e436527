/** The question on a real terminal: a pseudo-terminal of script(1), and no terminal at all. */
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { build } from 'esbuild'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'

const PROMPT = path.join(import.meta.dirname, '..', '..', 'src', 'worker', 'prompt.ts')

/** A program that asks and writes the answer to a file. */
async function asker(): Promise<{ readonly program: string; readonly reply: () => Promise<string> }> {
  const directory = await temporaryDirectory()
  const [entry, program, file] = ['entry.ts', 'asker.mjs', 'answer'].map((name) => path.join(directory, name)) as [
    string,
    string,
    string,
  ]
  await writeFile(
    entry,
    `import { askOnTerminal } from ${JSON.stringify(PROMPT)}
     import { writeFileSync } from 'node:fs'
     writeFileSync(${JSON.stringify(file)}, String(await askOnTerminal('may it? ')))`,
  )
  await build({
    entryPoints: [entry],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  })
  return { program, reply: () => readFile(file, 'utf8') }
}

describe('the question', () => {
  test.each([
    ['y\n', 'yes'],
    ['s\n', 'session'],
    ['what\nn\n', 'no'],
    ['q\n', 'quit'],
    ['1\n2\n3\n4\n5\ny\n', 'no'],
  ])('%j typed at a terminal is %s, and a pipe on stdin answers nothing', async (typed, expected) => {
    const { program, reply } = await asker()
    const command = `${process.execPath} ${program} < /dev/null`
    const { stdout } = await execa('script', ['-qec', command, '/dev/null'], { input: typed, timeout: 20_000 })
    expect(stdout).toContain('may it? ')
    expect(await reply()).toBe(expected)
  })

  test('has no answer without a terminal, whatever stdin says', async () => {
    const { program, reply } = await asker()
    await execa('setsid', ['-w', process.execPath, program], { input: 'y\n', timeout: 20_000 })
    expect(await reply()).toBe('undefined')
  })
})
