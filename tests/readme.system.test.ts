/** Plays the console blocks of README.md and docs, and runs their examples. */
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { exec } from '../src/index.ts'
import { playSession } from './cli/play.ts'
import { parseTranscript } from './cli/transcript.ts'
import { directoryWith } from './real/directory.ts'
import { describeWith } from './support/needs.ts'
import { checkoutFor, currentUser } from './support/users.ts'

const ROOT = join(import.meta.dirname, '..')
const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true }).map((name) => `docs/${name}`),
].filter((page) => page.endsWith('.md'))
const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8')
const README = textOf('README.md')

/** The fenced blocks of a language. */
const blocksOf = (text: string, language: string): readonly string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block)

const SESSIONS = PAGES.flatMap((page) =>
  parseTranscript(textOf(page)).map((session) => [page, session.title || 'first screen', session] as const),
)

describeWith(['bwrap', 'userns', 'python'], 'a console block shows what happens', () => {
  test.each(SESSIONS)('%s: %s', (page, _title, session) => playSession(session, page))
})

describeWith(['bwrap', 'userns', 'python'], 'an example of README.md', () => {
  test.each([
    ['js', 'example.mjs', process.execPath],
    ['python', 'example.py', 'python3'],
  ])('in %s runs as it stands', async (language, file, program) => {
    const [example = ''] = blocksOf(README, language)
    const library = join(checkoutFor(currentUser()), 'dist/index.js')
    const cwd = await directoryWith({ [file]: example.replace("'llm-do-exec'", JSON.stringify(library)) })
    const PATH = [join(checkoutFor(currentUser()), 'bin'), process.env['PATH']].join(delimiter)
    const { stdout } = await execa(program, [file], { cwd, env: { PATH } })
    expect(stdout).toBe('exit 0 "a\\nb\\n"')
  })
})

describeWith(['bwrap', 'userns'], 'the result of docs/reference/result.md', () => {
  test('has the fields of a result', async () => {
    const keysOf = (value: unknown): unknown =>
      value !== null && typeof value === 'object' && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, keysOf(inner)]))
        : typeof value
    const [shown = ''] = blocksOf(textOf('docs/reference/result.md'), 'json')
    const result = await exec({ command: ['echo', 'hi'], cwd: await directoryWith() })
    // Left out where nothing counts processes: no controller, and too short a run for the watchdog. There where disks are counted.
    const { readBytes, writeBytes, ...usage } = result.usage
    const counted = { ...result, usage: { peakPids: 0, ...usage } }
    expect(keysOf(JSON.parse(shown))).toEqual(keysOf(counted))
  })
})

describeWith(['bwrap', 'userns', 'python'], 'an example', () => {
  test.each(
    [...textOf('docs/reference/library.md').matchAll(/^```js\n(.*?)^```\n```text\n(.*?)^```$/gms)].map(
      ([, example = '', printed = ''], index) => [index + 1, example, printed] as const,
    ),
  )('%d of docs/reference/library.md prints what stands under it', async (_number, example, printed) => {
    const library = join(checkoutFor(currentUser()), 'dist/index.js')
    const cwd = await directoryWith({ 'example.mjs': example.replace("'llm-do-exec'", JSON.stringify(library)) })
    const { stdout } = await execa(process.execPath, ['example.mjs'], { cwd })
    expect(`${stdout}\n`).toBe(printed)
  })
})
