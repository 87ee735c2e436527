import { describe, expect, test } from 'vitest'
import { rulesOf } from '../../src/network/host-rule.ts'
import { listenerObstacle, MAX_LISTENERS, planListeners } from '../../src/network/listeners.ts'

const rules = (...allow: readonly string[]) => rulesOf({ allow, deny: [] })
const listenersOf = (...allow: readonly string[]): readonly string[] =>
  planListeners(rules(...allow)).map(({ address, port }) => `${address}:${port}`)
const many = (count: number, name: (at: number) => string) => Array.from({ length: count }, (_, at) => name(at))

describe('Without nftables is listened', () => {
  test.each<[what: string, allow: readonly string[], listeners: readonly string[]]>([
    ['nowhere for an empty list', [], []],
    ['at each port of each name', ['a.test', 'b.test:22'], ['198.18.1.0:80', '198.18.1.0:443', '198.18.1.1:22']],
    [
      'at the names of a block that is not full',
      ['a.test:1', 'b.test:1', 'c.test:1'],
      many(3, (at) => `198.18.1.${at}:1`),
    ],
    ['at a listed address itself', ['192.0.2.7:22', '[2001:db8::1]:22'], ['192.0.2.7:22', '2001:db8::1:22']],
    ['at all addresses for a wildcard', ['*.a.test:443'], ['0.0.0.0:443']],
    ['at all addresses for a range', ['192.0.2.0/24:22', '[2001:db8::/32]:22'], ['0.0.0.0:22', ':::22']],
    [
      'at a port of the loopback that leads to this host',
      ['localhost:8080'],
      ['198.18.1.0:8080', '127.0.0.1:8080', '::1:8080'],
    ],
    ['once where a wildcard has that port', ['localhost:8080', '*.b.test:8080'], ['0.0.0.0:8080', '::1:8080']],
    ['once where a name has the port of a wildcard', ['a.test', '*.b.test:443'], ['198.18.1.0:80', '0.0.0.0:443']],
  ])('%s', (_, allow, listeners) => {
    expect(listenersOf(...allow)).toEqual(listeners)
  })

  test('at all addresses where the names are too many for a listener each', () => {
    expect(listenersOf(...many(MAX_LISTENERS / 2, (at) => `${at}.a.test`))).toHaveLength(MAX_LISTENERS)
    expect(listenersOf(...many(MAX_LISTENERS / 2 + 1, (at) => `${at}.a.test`))).toEqual(['0.0.0.0:80', '0.0.0.0:443'])
  })
})

test.each<[what: string, allow: readonly string[], why: RegExp | undefined]>([
  ['names, wildcards and ranges', ['a.test', '*.b.test', '192.0.2.0/24:22', 'a.test:53'], undefined],
  ['every port of a name', ['a.test:*'], /every port/],
  ['every port of a range', ['192.0.2.0/24:*'], /every port/],
  ['the port of the name server at all addresses', ['*.b.test:53'], /port 53/],
  ['too many ports', many(MAX_LISTENERS + 1, (at) => `*.b.test:${5000 + at}`), /more than 116 ports/],
])('listeners hold %s, or say why not', (_, allow, why) => {
  const obstacle = listenerObstacle(rules(...allow))
  if (why === undefined) expect(obstacle).toBeUndefined()
  else expect(obstacle).toMatch(why)
})
