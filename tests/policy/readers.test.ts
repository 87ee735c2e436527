import { describe, expect, test } from 'vitest'
import * as read from '../../src/policy/readers.ts'
import type { Reader } from '../../src/text/units.ts'

const CASES: readonly {
  readonly what: string
  readonly reader: Reader<unknown>
  readonly good: readonly (readonly [unknown, unknown])[]
  readonly bad: readonly unknown[]
}[] = [
  {
    what: 'a zone name',
    reader: read.readZoneName,
    good: [
      ['input', 'input'],
      ['a.b-c_D9', 'a.b-c_D9'],
      ['x'.repeat(64), 'x'.repeat(64)],
    ],
    bad: [
      '',
      'x'.repeat(65),
      '.',
      '..',
      'a/b',
      'a b',
      'a\0',
      'a\n',
      'dаta' /* Cyrillic a */,
      'ｉnput' /* full width */,
      'zone#1',
      'a\u200b',
      null,
      3,
      [],
    ],
  },
  {
    what: 'a target',
    reader: read.readTarget,
    good: [
      ['/input', '/input'],
      ['/a/b/', '/a/b'],
      ['/a b', '/a b'],
      ['/', '/'],
    ],
    bad: [
      'input',
      '',
      '/a/../b',
      '/a/./b',
      '//a',
      '/a//b',
      '/..',
      '/a\0',
      '/a\nb',
      `/${'a/'.repeat(3000)}b`,
      null,
      1,
      ['/a'],
    ],
  },
  {
    what: 'a credential target',
    reader: read.readCredentialTarget,
    good: [
      ['~/.config/gh', '~/.config/gh'],
      ['/etc/x', '/etc/x'],
    ],
    bad: ['~', '~/../x', '~user/x', 'x', ''],
  },
  {
    what: 'a host path',
    reader: read.readHostPath,
    good: [
      ['./data', './data'],
      ['~/x', '~/x'],
      ['~', '~'],
      ['/a\nb', '/a\nb'],
      ['a:b', 'a:b'],
    ],
    bad: ['', 'a\0b', '~root/x', null, 3, 'x'.repeat(5000)],
  },
  {
    what: 'a protected path',
    reader: read.readRelativePath,
    good: [
      ['.git/hooks', '.git/hooks'],
      ['./a', 'a'],
      ['a/', 'a'],
    ],
    bad: ['/a', '', '.', './', '../a', 'a/../b', 'a//b', 'a\0', null],
  },
  {
    what: 'a variable name',
    reader: read.readVariableName,
    good: [
      ['CI', 'CI'],
      ['_x9', '_x9'],
    ],
    bad: ['', '9A', 'A=B', 'A B', 'A\0', 'Ä', 'LLM_DO_SANDBOX', 'LLM_DO_SANDBOX_PROFILE', 'A*', null],
  },
  {
    what: 'an inherited variable',
    reader: read.readInherited,
    good: [
      ['LC_*', 'LC_*'],
      ['LANG', 'LANG'],
    ],
    bad: ['*', '**', 'A*B', '-*', ''],
  },
  {
    what: 'a host',
    reader: read.readHost,
    good: [
      ['example.com', 'example.com'],
      ['Example.COM.', 'example.com'],
      ['*.example.org:443', '*.example.org:443'],
      ['[::1]:8080', '[::1]:8080'],
      ['127.0.0.1:80', '127.0.0.1:80'],
      ['localhost', 'localhost'],
      ['a:0443', 'a:443'],
      ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
      ['Bücher.example.', 'xn--bcher-kva.example'],
      ['*.bücher.example:443', '*.xn--bcher-kva.example:443'],
      ['bücher.example:*', 'xn--bcher-kva.example:*'],
      ['exаmple.com', 'xn--exmple-4nf.com'],
      ['example。com', 'example.com'],
    ],
    bad: [
      '',
      '*',
      '*.',
      'a..b',
      'http://a',
      'a/b',
      'a:0',
      'a:65536',
      'a:b',
      'a b',
      'a\n',
      'a\0.b',
      'user@a',
      '-a',
      'a*.b',
      '*.*.b',
      '１２７.0.0.1',
      'ü%2e.example',
      'ü@example.com',
      '*。bücher.example',
      'bücher..example',
      'bücher.example:x',
      '::1',
      '@npm',
      null,
    ],
  },
  {
    what: 'a published port',
    reader: read.readPublished,
    good: [
      ['8080', '127.0.0.1:8080:8080'],
      ['8080:80', '127.0.0.1:8080:80'],
      ['192.0.2.7:8080:80', '192.0.2.7:8080:80'],
      ['[::1]:8080', '[::1]:8080:8080'],
      ['127.0.0.1:8080:80', '127.0.0.1:8080:80'],
    ],
    bad: [
      '',
      '0',
      '0:80',
      '80:0',
      '70000',
      'a:80',
      '192.0.2.7',
      '::1:80:80',
      '192.0.2.0/24:80',
      '1:2:3',
      '80/udp',
      null,
    ],
  },
  {
    what: 'names and where they lead',
    reader: read.readHosts,
    good: [
      [{ 'DB.Example.': '192.0.2.7' }, { 'db.example': '192.0.2.7' }],
      [{ 'a.test': '2001:DB8::0:1' }, { 'a.test': '2001:db8::1' }],
      [{}, {}],
    ],
    bad: [
      { 'a.test': '192.0.2.0/24' },
      { 'a.test:80': '192.0.2.7' },
      { '*.test': '192.0.2.7' },
      { localhost: '192.0.2.7' },
      { 'host.llm-do.internal': '192.0.2.7' },
      { 'a.test': 'b.test' },
      { '192.0.2.1': '192.0.2.7' },
      [],
      null,
    ],
  },
  {
    what: 'an image',
    reader: read.readImage,
    good: [
      ['alpine:3.20', 'alpine:3.20'],
      ['r.example/x/y@sha256:ab', 'r.example/x/y@sha256:ab'],
    ],
    bad: ['', '--privileged', 'a b', 'a\n', null],
  },
]

describe.each(CASES)('$what', ({ reader, good, bad }) => {
  test.each(good)('%j is %j', (value, wanted) => {
    expect(reader(value)).toEqual({ ok: true, value: wanted })
  })

  test.each(bad.map((value) => [value]))('%j is refused', (value) => {
    expect(reader(value)).toMatchObject({
      ok: false,
      expected: expect.stringMatching(/\w/),
      got: expect.stringMatching(/\w|"/),
    })
  })
})

test('a tool may stand in the place of an allowed host, and a near miss is named', () => {
  expect(read.readAllowedHost('@npm')).toEqual({ ok: true, value: '@npm' })
  expect(read.readAllowedHost('Example.com')).toEqual({ ok: true, value: 'example.com' })
  expect(read.readAllowedHost('@nmp')).toMatchObject({ ok: false, near: '@npm' })
})

test.each([{ TOKEN: 'hunter2\0' }, { 'BAD NAME': 'hunter2' }, { TOKEN: 12345, A: 'hunter2' }, { TOKEN: ['hunter2'] }])(
  'the refusal of variables %# does not repeat a value',
  (variables) => {
    const reading = read.readVariables(variables)
    expect(reading.ok).toBe(false)
    expect(JSON.stringify(reading)).not.toMatch(/hunter2|12345/)
  },
)
