import matter from 'gray-matter'
import { describe, expect, test } from 'vitest'
import { LARGEST_FILE, readFrontMatter, readYamlFile } from '../../src/worker/frontmatter.ts'
import { errorText, refused } from './support.ts'

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

  test('words are words: only true and false are booleans', () => {
    const words = { a: 'no', b: 'yes', c: 'off', d: true, e: null }
    expect(readYaml('a: no\nb: yes\nc: off\nd: true\ne: null').value).toEqual(words)
  })

  test('a key called __proto__ is a key', () => {
    const { value } = readYaml('__proto__: { polluted: true }')
    expect(Object.keys(value as object)).toEqual(['__proto__'])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
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

describe('hostile text is one error, soon', () => {
  const MIB = 1024 ** 2
  const big = (text: string) => text.repeat(Math.floor((MIB - 64) / text.length))
  const inMatter = (yaml: string) => `---\n${yaml}\n---\n`
  const DEEP = /w\.md:2: expected nesting of at most 32 levels/
  const steps = Array.from({ length: 1400 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n')
  const nine = (of: string) => `[${Array(9).fill(of).join(',')}]`
  const bomb = `a: &a ${nine('x')}\nb: &b ${nine('*a')}\nc: &c ${nine('*b')}\nd: ${nine('*c')}`
  const twice = /^w\.md:4: network: expected every key once/
  test.each<[title: string, text: string, why: RegExp]>([
    ['more than 1 MiB', `---\nname: x\n---\n${'x'.repeat(LARGEST_FILE)}`, /at most 1048576 bytes, got 1048\d+ bytes/],
    ['1 MiB of [', inMatter(`a: ${big('[')}`), DEEP],
    ['1 MiB of {', inMatter(`a: ${big('{a: ')}`), DEEP],
    ['1 MiB of dashes', inMatter(big('- ')), DEEP],
    ['brackets over lines', inMatter(`a: ${big('[\n')}`), /expected nesting of at most 32 levels/],
    ['deep indentation', inMatter(steps), /expected nesting of at most 32 levels|expected valid YAML/],
    ['explicit keys in each other', inMatter(big('? ')), /w\.md:2: expected keys that are plain words/],
    ['1 MiB of short lists', inMatter(`a: [${big('[],')}]`), /expected at most 16384 words and signs, got more/],
    ['empty lines without end', inMatter(`${'\n'.repeat(200_000)}name: x`), /expected at most 100 empty lines/],
    ['aliases of aliases', inMatter(bomb), /^w\.md:5: d: expected at most 64 values by aliases, got more/],
    ['no anchor', inMatter('a: *nowhere'), /^w\.md:2: a: expected an anchor for every alias, got an alias w/],
    [
      'a key twice',
      inMatter('name: x\ntools: a\nname: y'),
      /^w\.md:4: name: expected every key once, got it a second time\.$/,
    ],
    ['an inner key twice', inMatter('sandbox:\n  network: none\n  network: host'), twice],
    ['a tag', inMatter('a: !!js/function "x"'), /^w\.md:2: a: expected plain YAML without tags/],
    ['a list as key', inMatter('[a, b]: 1'), /expected keys that are plain words/],
    ['a NUL', inMatter('a: \u0000'), /^w\.md:2: a: expected printable text, got the control character U\+0000\.$/],
    ['an escape', inMatter('name: x\na: \u001b[2J'), /^w\.md:3: a: expected printable text, got .* U\+001B\.$/],
    ['a lone carriage return', inMatter('name: x\rtools: y'), /U\+000D/],
    ['no end', '---\nx: y\n', /^w\.md:1: expected a line --- that ends the front matter, got the end of the file\.$/],
    [
      'more than an end',
      '---\nname: x\n---more\n',
      /^w\.md:3: expected exactly ---, to end the front matter, got "---more"\.$/,
    ],
    ['tabs as indentation', inMatter('sandbox:\n\tzones: []'), /^w\.md:3: sandbox: expected valid YAML/],
  ])('%s', (_, text, why) => {
    expect(whyNot(text)).toMatch(why)
  })

  test('a directive cannot make `no` mean false', () => {
    const error = refused(() => readYamlFile({ file: 'w.yaml', text: '%YAML 1.1\n---\nnetwork: no\n' }))
    expect(errorText(error)).toMatch(/^w\.yaml:1: expected no directives/)
  })

  test('a second document is refused', () => {
    expect(errorText(refused(() => readYamlFile({ file: 'w.yaml', text: 'name: a\n---\nname: b\n' })))).toMatch(
      /w\.yaml:\d: .*expected valid YAML/,
    )
  })
})
