import matter from 'gray-matter'
import { describe, expect, test } from 'vitest'
import { LARGEST_FILE, readFrontMatter } from '../../src/worker/frontmatter.ts'
import { refused } from '../support/refused.ts'
import { errorText } from './support.ts'

const read = (text: string) =>
  readFrontMatter({ file: 'w.md', text, knownKeys: ['name', 'description', 'tools', 'sandbox'] })
const readYaml = (yaml: string) => read(`---\n${yaml}\n---\nbody\n`)
const whyNot = (text: string) => {
  const error = refused(() => read(text))
  expect(error.code).toBe('WORKER_INVALID')
  expect(errorText(error)).not.toMatch(/\n\s+at /)
  return errorText(error)
}

describe('front matter is data, never a program', () => {
  const MARK = 'llmDoFrontMatterRan'
  const world = globalThis as unknown as Record<string, unknown>
  const ran = (act: () => unknown): boolean => {
    delete world[MARK]
    try {
      act()
    } catch {
      // A refusal is one of the answers; what counts is whether it ran.
    }
    const did = world[MARK] === true
    delete world[MARK]
    return did
  }
  const PROGRAM = `{ name: (globalThis.${MARK} = true, 'x') }`

  test.each(['---js', '---javascript', '---JS', '--- js'])('%s does not run', (fence) => {
    const text = `${fence}\n${PROGRAM}\n---\n`
    expect(ran(() => read(text))).toBe(false)
    expect(whyNot(text)).toMatch(/^w\.md:1: expected a first line that is exactly ---, got "---/)
  })

  test.each([[undefined], [{ language: 'yaml' }]])('gray-matter by itself runs it, with options %o', (options) => {
    const text = `---js\n${PROGRAM}\n---\n${JSON.stringify(options) ?? ''}`
    expect(ran(() => (options === undefined ? matter(text) : matter(text, options)))).toBe(true)
  })

  test.each([
    '---json\n{}\n---\n',
    '---coffee\n---\n',
    '--- \nname: x\n---\n',
    '----\nname: x\n---\n',
    ' ---\nname: x\n---\n',
    'name: x\n',
    '\n---\nname: x\n---\n',
    '',
  ])('the first line of %j is refused', (text) => {
    expect(whyNot(text)).toContain('w.md:1: expected a first line that is exactly ---')
  })

  test('what one reader does to the data is not seen by the next', () => {
    const first = readYaml('name: x').value as Record<string, unknown>
    first['name'] = 'changed'
    expect(readYaml('name: x').value).toEqual({ name: 'x' })
  })
})

describe('what is read', () => {
  test('data, body, and the line of every key', () => {
    const { value, body, lines } = read('---\nname: x\nsandbox:\n  zones:\n    - a: 1\n---\nbody\n---\nmore\n')
    expect(value).toEqual({ name: 'x', sandbox: { zones: [{ a: 1 }] } })
    expect(body).toBe('body\n---\nmore\n')
    const inner = { 'sandbox.zones': 4, 'sandbox.zones.0': 5, 'sandbox.zones.0.a': 5 }
    expect(lines).toMatchObject({ name: 2, sandbox: 3, ...inner })
  })

  test('a byte order mark and carriage returns are accepted', () => {
    expect(read('\uFEFF---\r\nname: x\r\ntools: y\r\n---\r\nbody\r\n').value).toEqual({ name: 'x', tools: 'y' })
  })

  test('empty front matter is an empty mapping', () => {
    expect(readYaml('').value).toEqual({})
    expect(readYaml('# only a comment').value).toEqual({})
  })
})

describe('a description without quotes that is not YAML is taken as text, and nothing else is', () => {
  test.each<[string, string, unknown]>([
    [
      'a colon',
      'name: x\ndescription: Use: for this\ntools: Read',
      { name: 'x', description: 'Use: for this', tools: 'Read' },
    ],
    [
      'several lines',
      'description: Use: for\n  this: and that\nname: x',
      { description: 'Use: for this: and that', name: 'x' },
    ],
    ['quotes inside', `description: "no": 'yes' "maybe`, undefined],
    ['up to the next known key', 'description: a: b\nnew: c\ntools: R', { description: 'a: b new: c', tools: 'R' }],
  ])('%s', (_, yaml, value) => {
    if (value === undefined) expect(whyNot(`---\n${yaml}\n---\n`)).toMatch(/^w\.md:2: description: expected valid YAML/)
    else {
      const result = readYaml(yaml)
      expect(result.value).toEqual(value)
      expect(result.warnings).toMatchObject([
        { code: 'W_LENIENT', key: 'description', line: yaml.startsWith('name') ? 3 : 2 },
      ])
    }
  })

  test('lines of what follows stay the lines of the file', () => {
    expect(readYaml('description: a: b\n  more: x\nsandbox:\n  k: 1').lines).toMatchObject({
      sandbox: 4,
      'sandbox.k': 5,
    })
  })

  test.each([
    ['tools', 'tools: a: b'],
    ['sandbox', 'sandbox: { a: b'],
    ['name', 'name: a: b\ndescription: c: d'],
  ])('%s is never taken so', (key, yaml) => {
    expect(whyNot(`---\n${yaml}\n---\n`)).toMatch(new RegExp(`^w\\.md:\\d: ${key}: expected valid YAML`))
  })

  test('a description cannot hide that it is there twice', () => {
    expect(whyNot('---\ndescription: a: b\ndescription: c\n---\n')).toMatch(/description: expected/)
  })
})

// Refusals of any YAML: tests/config/yaml.test.ts.
describe('hostile text is one error, soon', () => {
  const MIB = 1024 ** 2
  const big = (text: string) => text.repeat(Math.floor((MIB - 64) / text.length))
  const inMatter = (yaml: string) => `---\n${yaml}\n---\n`
  const DEEP = /w\.md:2: expected nesting of at most 32 levels/
  const nine = (of: string) => `[${Array(9).fill(of).join(',')}]`
  const bomb = `a: &a ${nine('x')}\nb: &b ${nine('*a')}\nc: &c ${nine('*b')}\nd: ${nine('*c')}`
  test.each<[title: string, text: string, why: RegExp]>([
    ['more than 1 MiB', `---\nname: x\n---\n${'x'.repeat(LARGEST_FILE)}`, /at most 1048576 bytes, got 1048\d+ bytes/],
    ['1 MiB of [', inMatter(`a: ${big('[')}`), DEEP],
    ['empty lines without end', inMatter(`${'\n'.repeat(200_000)}name: x`), /expected at most 100 empty lines/],
    ['aliases of aliases', inMatter(bomb), /^w\.md:5: d: expected at most 64 values by aliases, got more/],
    [
      'a key twice',
      inMatter('name: x\ntools: a\nname: y'),
      /^w\.md:4: name: expected every key once, got it a second time\.$/,
    ],
    ['a tag', inMatter('a: !!js/function "x"'), /^w\.md:2: a: expected plain YAML without tags/],
    ['a NUL', inMatter('a: \u0000'), /^w\.md:2: a: expected printable text, got the control character U\+0000\.$/],
    ['an escape', inMatter('name: x\na: \u001b[2J'), /^w\.md:3: a: expected printable text, got .* U\+001B\.$/],
    ['a lone carriage return', inMatter('name: x\rtools: y'), /U\+000D/],
    ['no end', '---\nx: y\n', /^w\.md:1: expected a line --- that ends the front matter, got the end of the file\.$/],
    [
      'more than an end',
      '---\nname: x\n---more\n',
      /^w\.md:3: expected exactly ---, to end the front matter, got "---more"\.$/,
    ],
  ])('%s', (_, text, why) => {
    expect(whyNot(text)).toMatch(why)
  })
})
