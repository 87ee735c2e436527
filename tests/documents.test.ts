/** The text of README.md and docs: links, JavaScript, options. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { transformSync } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { OPTIONS } from '../src/policy/options.ts'

const ROOT = join(import.meta.dirname, '..')
const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true }).map((name) => `docs/${name}`),
].filter((page) => page.endsWith('.md'))
const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8')
const README = textOf('README.md')

/** The fenced blocks of JavaScript. */
const scriptsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block = '']) => block)

describe('the documents', () => {
  test.each(PAGES)('%s has valid links and JavaScript', (page) => {
    const targets = [...textOf(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => target)
    expect(targets.filter((target) => !existsSync(join(ROOT, dirname(page), target)))).toEqual([])
    for (const block of scriptsOf(textOf(page))) expect(() => transformSync(block, { format: 'esm' })).not.toThrow()
  })

  test('README.md names only options that there are', () => {
    const known = [...OPTIONS.map(({ name }) => name), 'help', 'self-test', 'memroy']
    const named = [...README.matchAll(/(?<![\w-])--([a-z][a-z-]+)/g)].map(([, name = '']) => name)
    expect(named.filter((name) => !known.includes(name))).toEqual([])
  })

  test('the first screen of README.md has an allowed action, a denied one, and how to install', () => {
    const firstScreen = README.split('\n').slice(0, 45).join('\n')
    expect(firstScreen).toMatch(/Read-only file system\n\[exit 2\]/)
    expect(firstScreen).toMatch(/\*\*It protects\*\*.*\*\*It does not protect\*\*.*make run.*make test/s)
  })
})
