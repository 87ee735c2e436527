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
      'bücher.example',
      'exаmple.com',
      '::1',
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

test('a host in other letters is refused with what DNS would see', () => {
  expect(read.readHost('bücher.example')).toMatchObject({
    expected: 'an ASCII host name (DNS would see "xn--bcher-kva.example")',
  })
})

test.each([{ TOKEN: 'hunter2\0' }, { 'BAD NAME': 'hunter2' }, { TOKEN: 12345, A: 'hunter2' }, { TOKEN: ['hunter2'] }])(
  'the refusal of variables %# does not repeat a value',
  (variables) => {
    const reading = read.readVariables(variables)
    expect(reading.ok).toBe(false)
    expect(JSON.stringify(reading)).not.toMatch(/hunter2|12345/)
  },
)
