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

const LANGUAGES = [
  { name: 'js', file: 'example.mjs', program: process.execPath },
  { name: 'python', file: 'example.py', program: 'python3' },
] as const

const CHECKOUT = checkoutFor(currentUser())
const withLibrary = (example: string): string =>
  example.replace("'llm-do-exec'", JSON.stringify(join(CHECKOUT, 'dist/index.js')))
/** Python finds its library by a variable. */
const ENVIRONMENT = {
  PATH: [join(CHECKOUT, 'bin'), process.env['PATH']].join(delimiter),
  PYTHONPATH: join(CHECKOUT, 'clients/python'),
  PYTHONDONTWRITEBYTECODE: '1',
}

describeWith(['bwrap', 'userns', 'python'], 'an example of README.md', () => {
  test.each(LANGUAGES)('in $name runs as it stands', async ({ name, file, program }) => {
    const [example = ''] = blocksOf(README, name)
    const cwd = await directoryWith({ [file]: withLibrary(example) })
    const { stdout } = await execa(program, [file], { cwd, env: ENVIRONMENT })
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

/** Programs of both languages that print the same. */
const EXAMPLES = [
  ...textOf('docs/reference/library.md').matchAll(/((?:^```(?:js|python)\n.*?^```\n)+)^```text\n(.*?)^```$/gms),
].flatMap(([, programs = '', printed = '']) =>
  LANGUAGES.flatMap((language) =>
    blocksOf(programs, language.name).map((example) => ({ ...language, example, printed })),
  ),
)

describeWith(['bwrap', 'userns', 'python'], 'an example', () => {
  test.each(EXAMPLES.map((row, index) => [index + 1, row.name, row] as const))(
    '%d of docs/reference/library.md, in %s, prints what stands under it',
    async (_number, _name, { example, printed, file, program }) => {
      const cwd = await directoryWith({ [file]: withLibrary(example) })
      const { stdout } = await execa(program, [file], { cwd, env: ENVIRONMENT })
      expect(`${stdout}\n`).toBe(printed)
    },
  )
})
