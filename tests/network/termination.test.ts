import { describe, expect, test } from 'vitest'
import {
  allowsRequest,
  isPlainPath,
  isSameHost,
  isTerminated,
  parseRequestRule,
  printRequestRule,
  terminatedHosts,
} from '../../src/network/termination.ts'
import {
  readHeaderName,
  readOneHost,
  readRequest,
  readSecretFormat,
  readSecretSource,
} from '../../src/policy/readers.ts'
import type { Reader } from '../../src/text/units.ts'

const credential = { host: 'a.example', header: 'X-Key', from: 'env:KEY' }

describe('a rule for requests', () => {
  test.each([
    ['GET a.example/org/*', 'GET a.example/org/*'],
    ['* A.Example./', '* a.example/'],
    ['PUT a.example:443/x', 'PUT a.example/x'],
    ['PUT a.example:8443/x', 'PUT a.example:8443/x'],
  ])('%s is understood', (text, canonical) => {
    const rule = parseRequestRule(text)
    expect(rule === undefined ? undefined : printRequestRule(rule)).toBe(canonical)
  })

  test.each([
    ...['a.example/x', 'GET a.example', 'get a.example/x', 'GET *.a.example/x', 'GET 192.0.2.7/x', 'GET a.example:*/x'],
    ...['GET a.example/*/x', 'GET a.example/x?y', 'GET a.example/x#y', 'GET a.example/../x', 'GET a.example/%2e./x'],
    ...['GET a.example//x', 'GET a.example/x y', 'GET  a.example/x', 'GET https://a.example/x', 'GET a.example/ä'],
  ])('%s is refused', (text) => {
    expect(parseRequestRule(text)).toBeUndefined()
  })

  const rules = ['GET a.example/org/*', 'POST a.example/exact'].flatMap((text) => parseRequestRule(text) ?? [])
  test.each<readonly [string, string, boolean]>([
    ['GET', '/org/', true],
    ['GET', '/org/a/b?c=/../d', true],
    ['POST', '/exact', true],
    ['POST', '/exact?x', true],
    ['GET', '/org', false],
    ['GET', '/organ', false],
    ['GET', '/ORG/a', false],
    ['GET', '/%6frg/a', false],
    ['HEAD', '/org/a', false],
    ['POST', '/exact/', false],
    ['POST', '/org/a', false],
    ['GET', '/org/../x', false],
    ['GET', '/org/%2E%2e/x', false],
    ['GET', '/org/.%2e/x', false],
    ...['..%3b', '..%09', '..%20', '%252e%252e', '%25252e.', '%c0%ae%c0%ae', '%u002e%u002e', '%ef%bc%8e%ef%bc%8e'].map(
      (step): readonly [string, string, boolean] => ['GET', `/org/${step}/x`, false],
    ),
    ['GET', '/org/a%20b%2525', true],
    ['GET', '/org/..;a/x', false],
    ['GET', '/org/x/..', false],
    ['GET', '/org/./x', false],
    ['GET', '/org//x', false],
    ['GET', '/org/%2fx', false],
    ['GET', '/org/%5C..%5Cx', false],
    ['GET', '/org/\\..\\x', false],
    ['GET', '/org/%00', false],
  ])('%s %s: %s', (method, target, isAllowed) => {
    expect(allowsRequest(rules, { method, target })).toBe(isAllowed)
  })

  test('without any for a host every request to it is allowed', () => {
    expect(allowsRequest([], { method: 'DELETE', target: '/a/../b' })).toBe(true)
  })

  test('names with dots that are no segments are paths like others', () => {
    expect(['/.well-known/x', '/a..b/c', '/v1.2/', '/...'].filter(isPlainPath)).toHaveLength(4)
  })
})

test.each([
  ['a.example', true],
  ['A.EXAMPLE.', true],
  ['a.example:443', true],
  ['a.example:8443', false],
  ['a.example:', false],
  ['b.example', false],
  ['a.example, b.example', false],
  ['user@a.example', false],
  ['', false],
])('Host: %s is that of a connection to a.example: %s', (header, isSame) => {
  expect(isSameHost(header, { host: 'a.example', port: 443 })).toBe(isSame)
})

describe('TLS ends', () => {
  const network = { mode: 'restricted', terminate: true, credentials: [credential] }
  test('for the hosts that are named, and where plain HTTP has to be refused', () => {
    const requests = ['GET b.example:8443/*', 'PUT b.example:8443/*', 'GET a.example/*']
    expect(terminatedHosts({ ...network, requests })).toEqual([
      { host: 'a.example', port: 443 },
      { host: 'b.example', port: 8443 },
      { host: 'a.example', port: 80 },
      { host: 'b.example', port: 80 },
    ])
  })

  test.each([
    { mode: 'none', terminate: true, credentials: [credential] },
    { mode: 'restricted', credentials: [credential] },
    { mode: 'restricted', terminate: true },
  ])('nowhere with %j', (other) => {
    expect(isTerminated(other)).toBe(false)
    expect(terminatedHosts(other)).toEqual([])
  })
})

describe('what people write', () => {
  const table: readonly (readonly [Reader<string>, readonly string[], readonly string[]])[] = [
    [
      readOneHost,
      ['a.example', 'a.example:8443'],
      ['*.a.example', '192.0.2.7', 'a.example:*', 'localhost', 'host.llm-do.internal', ''],
    ],
    [
      readHeaderName,
      ['Authorization', 'X-Key'],
      ['Host', 'content-length', 'Transfer-Encoding', 'Connection', 'Proxy-Authorization', 'A b', 'A:', 'A\r\nB', ''],
    ],
    [
      readSecretSource,
      ['env:TOKEN', 'file:/run/token', 'file:~/token'],
      ['TOKEN', 'env:', 'env:A B', 'file:', 'file:/a\nb', 'ghp_secret'],
    ],
    [readSecretFormat, ['{}', 'Bearer {}', 'token {}x'], ['Bearer', '{}{}', 'a\r\n{}', '{']],
    [readRequest, ['GET a.example/*'], ['GET localhost/x', 'x']],
  ]
  test.each(table)('%# is understood, or refused', (read, good, bad) => {
    expect(good.filter((text) => !read(text).ok)).toEqual([])
    expect(bad.filter((text) => read(text).ok)).toEqual([])
  })

  test('a secret in the place of its source is not repeated', () => {
    expect(
      [readSecretSource('ghp_secret'), readSecretFormat('ghp_secret')].map((one) => JSON.stringify(one)).join(''),
    ).not.toContain('ghp')
  })
})
