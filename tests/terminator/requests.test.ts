import { describe, expect, test } from 'vitest'
import { parseRequestRule } from '../../src/network/termination.ts'
import {
  endsConnection,
  fieldsForClient,
  fieldsForServer,
  type Request,
  refusalOf,
  upgradeRefusalOf,
} from '../../src/terminator/requests.ts'

const HOST = {
  host: 'a.example',
  port: 443,
  headers: [{ name: 'Authorization', value: 'Bearer s' }],
  requests: ['GET a.example/*', 'TRACE a.example/*', '* a.example/any'].flatMap((text) => parseRequestRule(text) ?? []),
}

/** `Name: value` as node has it: names and values by turns. */
const raw = (...fields: readonly string[]): string[] => fields.flatMap((field) => field.split(': '))
const request = (method: string, url: string, ...fields: readonly string[]): Request => ({
  method,
  url,
  rawHeaders: raw('Host: a.example', ...fields),
  httpVersionMajor: 1,
  httpVersionMinor: 1,
})

describe('a request', () => {
  test.each([
    { what: 'in order', one: request('GET', '/x'), status: undefined },
    { what: 'with a length', one: request('POST', '/any', 'Content-Length: 3'), status: undefined },
    { what: 'in chunks', one: request('POST', '/any', 'Transfer-Encoding: Chunked'), status: undefined },
    { what: 'by a method without a rule', one: request('POST', '/x'), status: 403 },
    { what: 'for another host', one: { ...request('GET', '/x'), rawHeaders: ['Host', 'b.example'] }, status: 421 },
    { what: 'for two hosts', one: request('GET', '/x', 'host: a.example'), status: 421 },
    { what: 'for no host', one: { ...request('GET', '/x'), rawHeaders: [] }, status: 421 },
    ...[
      ['with two lengths', 'Content-Length: 3', 'Transfer-Encoding: chunked'],
      ['with the same length twice', 'Content-Length: 3', 'Content-Length: 3'],
      ['in another encoding', 'Transfer-Encoding: gzip, chunked'],
    ].map(([what, ...fields]) => ({ what, one: request('POST', '/any', ...fields), status: 400 })),
    { what: 'with a URL', one: request('GET', 'https://a.example/x'), status: 400 },
    { what: 'with a fragment', one: request('GET', '/any#x'), status: 400 },
    { what: 'of the whole server', one: request('OPTIONS', '*'), status: 400 },
    { what: 'that would be sent back', one: request('TRACE', '/x'), status: 405 },
  ])('$what: $status', ({ one, status }) => {
    expect(refusalOf(one, HOST)?.status).toBe(status)
  })

  test('goes on without what is the connection’s, without the header of a secret, and with the secret', () => {
    const sent = request(
      'GET',
      '/x',
      ...['authorization: mine', 'AUTHORIZATION: too', 'Connection: close, X-Hop, Host, Content-Length', 'X-Hop: 1'],
      ...['Content-Length: 3', 'Proxy-Authorization: p', 'Accept: */*'],
    )
    expect(fieldsForServer(sent, HOST, false)).toEqual([
      ...['Host', 'a.example', 'Content-Length', '3', 'Accept', '*/*'],
      ...['Authorization', 'Bearer s', 'Connection', 'keep-alive'],
    ])
  })

  test('is sent without a header that a server takes for that of the secret', () => {
    const host = { ...HOST, headers: [{ name: 'X-Api-Key', value: 's' }] }
    const names = (sent: string) => fieldsForServer(request('GET', '/x', sent), host, false).join()
    expect(names('X_Api_Key: mine')).toBe('Host,a.example,X-Api-Key,s,Connection,keep-alive')
    expect(names('X-Api-Keys: mine')).toContain('X-Api-Keys,mine')
  })

  test('goes on without a header that names another method or path, where requests are limited', () => {
    const overrides = ['X-HTTP-Method-Override: DELETE', 'X_Original_URL: /admin', 'x-rewrite-url: /admin']
    const names = (requests: typeof HOST.requests) =>
      fieldsForServer(request('GET', '/x', ...overrides), { ...HOST, headers: [], requests }, false).join()
    expect(names(HOST.requests)).toBe('Host,a.example,Connection,keep-alive')
    expect(names([])).toContain('X-HTTP-Method-Override,DELETE')
  })

  test('that is refused is told in printable letters, and not at length', () => {
    const refusal = refusalOf(request('POST', `/\u001b${'a'.repeat(5000)}?secret=1`), HOST)
    expect(refusal?.what).toMatch(/^POST \/\?a{150,200}$/)
  })
})

describe('a change of the protocol', () => {
  const upgrade = (protocol: string, ...more: readonly string[]) =>
    upgradeRefusalOf(request('GET', '/x', 'Connection: Upgrade', `Upgrade: ${protocol}`, ...more), HOST)?.status
  test('passes to websocket, where the path is allowed', () => {
    expect(upgrade('WebSocket')).toBeUndefined()
    expect(upgradeRefusalOf(request('POST', '/x', 'Upgrade: websocket'), HOST)?.status).toBe(403)
  })
  const CHANGES = [
    ['h2c'],
    ['websocket, h2c'],
    ['h2c', 'Upgrade: websocket'],
    ['websocket', 'Content-Length: 3'],
    ['TLS/1.3'],
  ]
  test.each(CHANGES)('is refused: %s %s', (...words) => {
    const [protocol = '', ...more] = words
    expect(upgrade(protocol, ...more)).toBe(403)
  })
})

describe('an answer', () => {
  test('goes on as it is, without what is the connection’s', () => {
    const hop = ['Connection: keep-alive, X-Hop', 'X-Hop: 1', 'Transfer-Encoding: chunked']
    const kept = ['Set-Cookie: a', 'set-cookie: b', 'Content-Length: 3']
    expect(fieldsForClient(raw(...hop, ...kept))).toEqual(raw(...kept))
  })
  test('tells whether it is the last one', () => {
    const answer = (minor: number, ...rawHeaders: readonly string[]) =>
      endsConnection({ httpVersionMinor: minor, rawHeaders: [...rawHeaders] })
    expect([answer(1), answer(1, 'connection', 'x, Close'), answer(0)]).toEqual([false, true, true])
  })
})
