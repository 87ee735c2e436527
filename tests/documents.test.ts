/** The text of README.md and docs: links, JavaScript, options. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { transformSync } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { OPTIONS } from '../src/policy/options.ts'
import { profileSchema } from '../src/policy/schema.ts'
import { matches, parseTranscript } from './cli/transcript.ts'
import { nodeRunList } from './launch-cache/node-runs.ts'
import { expectFile, withPart } from './support/generated.ts'

const ROOT = join(import.meta.dirname, '..')
const { DIAGRAMS } = (await import(join(ROOT, 'scripts/pictures.mjs'))) as Pictures
const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true }).map((name) => `docs/${name}`),
].filter((page) => page.endsWith('.md'))
const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8')
const README = textOf('README.md')

interface Pictures {
  readonly DIAGRAMS: Readonly<Record<string, () => string>>
}

/** The anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (text: string): readonly string[] =>
  [...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

/** The fenced blocks of JavaScript. */
const scriptsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block = '']) => block)

describe('the documents', () => {
  test.each(PAGES)('%s has valid links and JavaScript', (page) => {
    const targets = [...textOf(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => target)
    expect(targets.filter((target) => !existsSync(join(ROOT, dirname(page), target)))).toEqual([])
    const anchors = [...textOf(page).matchAll(/\]\(([^)#\s:]*)#([^)]+)\)/g)]
      .map(([, target = '', anchor = '']) => ({ file: target === '' ? page : join(dirname(page), target), anchor }))
      .filter(({ file, anchor }) => existsSync(join(ROOT, file)) && !anchorsOf(textOf(file)).includes(anchor))
    expect(anchors).toEqual([])
    for (const block of scriptsOf(textOf(page))) expect(() => transformSync(block, { format: 'esm' })).not.toThrow()
  })

  test('every page that messages and comments of the sources name exists', () => {
    const sources = ['src', 'native', 'packaging'].flatMap((directory) =>
      readdirSync(join(ROOT, directory), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8')),
    )
    const named = sources.flatMap(
      (source) => source.match(/\bdocs\/(?:guide|reference|internals)\/[a-z-]+(?:\.1)?\.md\b/g) ?? [],
    )
    expect(named.length).toBeGreaterThan(20)
    expect([...new Set(named)].filter((page) => !existsSync(join(ROOT, page)))).toEqual([])
  })

  test('docs/README.md lists every page', () => {
    const listed = textOf('docs/README.md')
    expect(PAGES.filter((page) => page.split('/').length > 2 && !listed.includes(`(${page.slice(5)})`))).toEqual([])
  })

  test('README.md names only options that there are', () => {
    const known = [...OPTIONS.map(({ name }) => name), 'help', 'self-test', 'memroy']
    const named = [...README.matchAll(/(?<![\w-])--([a-z][a-z-]+)/g)].map(([, name = '']) => name)
    expect(named.filter((name) => !known.includes(name))).toEqual([])
  })

  test('README.md fits in five minutes: 150 lines; the first screen has an allowed action, a denied one, a hint and a result', () => {
    const lines = README.split('\n')
    expect(lines.length).toBeLessThanOrEqual(151)
    const firstScreen = lines.slice(0, 40).join('\n')
    expect(firstScreen).toMatch(
      /hello from \/workspace\n.*Read-only file system\n.*denied: write .*to allow it: --rw \.\n\[exit 2\]/s,
    )
    expect(firstScreen).toMatch(/to allow it: --allow-host.*"exit_code":0/s)
    expect(firstScreen).toMatch(/make run.*make test/s)
  })
})

describe('the guide and the reference', () => {
  const shelves = PAGES.filter((page) => /^docs\/(guide|reference)\//.test(page))

  test('have at most 35000 words', () => {
    const words = shelves.flatMap((page) => textOf(page).split(/\s+/).filter(Boolean))
    expect(words.length).toBeLessThanOrEqual(35_000)
  })

  test.each(shelves.filter((page) => /^```yaml\nsandbox:/m.test(textOf(page))))(
    '%s shows profiles that are valid',
    (page) => {
      const blocks = [...textOf(page).matchAll(/^```yaml\n(sandbox:.*?)^```$/gms)]
      const problems = blocks.map(([, block = '']) => profileSchema.safeParse(parse(block)).error?.issues ?? [])
      expect(problems.flat()).toEqual([])
    },
  )

  test.each(shelves)('%s has one sentence in a cell, and every session in a console block', (page) => {
    const text = textOf(page)
    const cells = text
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .flatMap((line) => line.split(/(?<!\\)\|/))
    expect(cells.filter((cell) => /[.!?] +[A-Z`*]/.test(cell.replaceAll(/`[^`]*`/g, 'x')))).toEqual([])
    const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    expect(blocks.filter(([, language, block = '']) => block.startsWith('$ ') && language !== 'console')).toEqual([])
  })
})

describe('a picture', () => {
  const pictureOf = (name: string): string => textOf(`docs/pictures/${name}.svg`)

  test.each(Object.entries(DIAGRAMS))('%s.svg is what scripts/pictures.mjs draws', (name, draw) => {
    expect(pictureOf(name)).toBe(draw())
  })

  test('session.svg shows the session that the page describes', () => {
    const [session] = parseTranscript(textOf('docs/guide/first-session.md'))
    const lines = (session?.steps ?? []).flatMap(({ command, expected }) => [`$ ${command}`, ...expected])
    const shown = [...pictureOf('session').matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, line = '']) =>
      line.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
    )
    expect(matches(lines, shown.join('\n'))).toBe(true)
  })
})

test('the list of runs that start Node is the one that is tried', () => {
  expectFile('docs/internals/architecture.md', (text) => withPart(text, 'node-runs', nodeRunList()))
})
