import { describe, expect, test } from 'vitest'
import * as read from '../../src/policy/readers.ts'
import type { Reader } from '../../src/text/units.ts'

/** A word that is read as it is; a pair where it is read as something else. */
type Good = string | readonly [unknown, unknown]

const CASES: readonly (readonly [
  what: string,
  reader: Reader<unknown>,
  good: readonly Good[],
  bad: readonly unknown[],
])[] = [
  [
    'a zone name',
    read.readZoneName,
    ['input', 'a.b-c_D9', 'x'.repeat(64)],
    // One letter is Cyrillic, one has full width.
    [...'|.|..|a/b|a b|a\0|a\n|dаta|ｉnput|zone#1|a\u200b'.split('|'), 'x'.repeat(65), null, 3, []],
  ],
  [
    'a target',
    read.readTarget,
    ['/input', ['/a/b/', '/a/b'], '/a b', '/'],
    [...'input||/a/../b|/a/./b|//a|/a//b|/..|/a\0|/a\nb'.split('|'), `/${'a/'.repeat(3000)}b`, null, 1, ['/a']],
  ],
  ['a credential target', read.readCredentialTarget, ['~/.config/gh', '/etc/x'], ['~', '~/../x', '~user/x', 'x', '']],
  [
    'a host path',
    read.readHostPath,
    ['./data', '~/x', '~', '/a\nb', 'a:b'],
    ['', 'a\0b', '~root/x', null, 3, 'x'.repeat(5000)],
  ],
  [
    'a protected path',
    read.readRelativePath,
    ['.git/hooks', ['./a', 'a'], ['a/', 'a']],
    ['/a', '', '.', './', '../a', 'a/../b', 'a//b', 'a\0', null],
  ],
  [
    'a variable name',
    read.readVariableName,
    ['CI', '_x9'],
    [...'|9A|A=B|A B|A\0|Ä|LLM_DO_SANDBOX|LLM_DO_SANDBOX_PROFILE|A*'.split('|'), null],
  ],
  ['an inherited variable', read.readInherited, ['LC_*', 'LANG'], ['*', '**', 'A*B', '-*', '']],
  [
    'a host',
    read.readHost,
    [
      ...['example.com', '*.example.org:443', '[::1]:8080', '127.0.0.1:80', 'localhost', 'xn--bcher-kva.example'],
      ['Example.COM.', 'example.com'],
      ['a:0443', 'a:443'],
      ['Bücher.example.', 'xn--bcher-kva.example'],
      ['*.bücher.example:443', '*.xn--bcher-kva.example:443'],
      ['bücher.example:*', 'xn--bcher-kva.example:*'],
      ['exаmple.com', 'xn--exmple-4nf.com'],
      ['example。com', 'example.com'],
    ],
    [
      ...'|*|*.|a..b|http://a|a/b|a:0|a:65536|a:b|a b|a\n|a\0.b|user@a|-a|a*.b|*.*.b|１２７.0.0.1|ü%2e.example'.split(
        '|',
      ),
      ...'ü@example.com|*。bücher.example|bücher..example|bücher.example:x|::1|@npm'.split('|'),
      null,
    ],
  ],
  [
    'a published port',
    read.readPublished,
    [
      ['8080', '127.0.0.1:8080:8080'],
      ['8080:80', '127.0.0.1:8080:80'],
      '192.0.2.7:8080:80',
      ['[::1]:8080', '[::1]:8080:8080'],
    ],
    [...'|0|0:80|80:0|70000|a:80|192.0.2.7|::1:80:80|192.0.2.0/24:80|1:2:3|80/udp'.split('|'), null],
  ],
  [
    'names and where they lead',
    read.readHosts,
    [
      [{ 'DB.Example.': '192.0.2.7' }, { 'db.example': '192.0.2.7' }],
      [{ 'a.test': '2001:DB8::0:1' }, { 'a.test': '2001:db8::1' }],
      [{}, {}],
    ],
    [
      ...['a.test:80', '*.test', 'localhost', 'host.llm-do.internal', '192.0.2.1'].map((name) => ({
        [name]: '192.0.2.7',
      })),
      ...['192.0.2.0/24', 'b.test'].map((place) => ({ 'a.test': place })),
      [],
      null,
    ],
  ],
  ['an image', read.readImage, ['alpine:3.20', 'r.example/x/y@sha256:ab'], ['', '--privileged', 'a b', 'a\n', null]],
]

describe.each(CASES)('%s', (_what, reader, good, bad) => {
  test.each(good.map((one) => (typeof one === 'string' ? [one, one] : one)))('%j is %j', (value, wanted) => {
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
  expect(read.readAllowedHost('localhost:80')).toEqual({ ok: true, value: 'localhost:80' })
  for (const whole of ['localhost', 'localhost:*', 'LOCALHOST.'])
    expect(read.readAllowedHost(whole)).toMatchObject({ ok: false, expected: expect.stringContaining('one port') })
  expect(read.readAllowedHost('Example.com')).toEqual({ ok: true, value: 'example.com' })
  expect(read.readAllowedHost('@nmp')).toMatchObject({ ok: false, near: '@npm' })
  expect(read.readAllowedHost('https://a.test:8443/x')).toMatchObject({ ok: false, near: 'a.test:8443' })
})

test.each([{ TOKEN: 'hunter2\0' }, { 'BAD NAME': 'hunter2' }, { TOKEN: 12345, A: 'hunter2' }, { TOKEN: ['hunter2'] }])(
  'the refusal of variables %# does not repeat a value',
  (variables) => {
    const reading = read.readVariables(variables)
    expect(reading.ok).toBe(false)
    expect(JSON.stringify(reading)).not.toMatch(/hunter2|12345/)
  },
)
