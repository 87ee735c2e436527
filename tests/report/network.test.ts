import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../src/backends/outcome.ts'
import type { ReachedHost } from '../../src/contract.ts'
import { networkDenials, networkHints, networkUse, networkWarnings, recordHints } from '../../src/report/network.ts'

const row = (host: string, port: number, verdict: ReachedHost['verdict'], rule = ''): ReachedHost => ({
  ...{ host, port, verdict, rule, connections: 1, bytesIn: 0, bytesOut: 0 },
})
const outcome = (hosts: readonly ReachedHost[], more: object = {}): Outcome =>
  ({ network: { hosts, omitted: 0, isLost: false, ...more } }) as unknown as Outcome

describe('the flag that would allow', () => {
  const at22 = (verdict: ReachedHost['verdict'], rule: string) => row('a.test', 22, verdict, rule)
  test.each([
    ['a name', row('a.test', 0, 'not-listed'), 'resolve', 'a.test', '--allow-host a.test'],
    ['a usual port', row('a.test', 443, 'not-listed'), 'connect', 'a.test:443', '--allow-host a.test'],
    ['another port', row('a.test', 22, 'not-listed'), 'connect', 'a.test:22', '--allow-host a.test:22'],
    ['a private address', at22('not-public', '10.1.2.3'), 'connect', 'a.test:22', '--allow-host 10.1.2.3:22'],
    ['an IPv6 address', at22('not-public', 'fd00::1'), 'connect', 'a.test:22', '--allow-host [fd00::1]:22'],
    [
      'what is denied',
      at22('denied', '*.test'),
      'connect',
      'a.test:22',
      'take back --deny-host *.test',
      'network.deny',
    ],
  ])('%s is named', (_, host, operation, target, fix, key = 'network.allow') => {
    expect(networkDenials(outcome([host]))).toEqual([
      { layer: 'network', operation, target, count: 1, fix, key, evidence: 'sandbox' },
    ])
  })
})

test('what was allowed is no denial', () => {
  const allowed = outcome([row('a.test', 443, 'allowed', 'a.test')])
  expect(networkDenials(allowed)).toEqual([])
  expect(networkUse(allowed)).toEqual({ network: [row('a.test', 443, 'allowed', 'a.test')] })
})

test('a record names what was reached, and no port of this host that the command asked for in vain', () => {
  const hosts = ['a.test', 'localhost'].map((host) => row(host, 8080, 'allowed', '*:*'))
  expect(recordHints(outcome(hosts))).toEqual(['recorded: --allow-host a.test:8080'])
})

test('a lost helper and rows that did not fit are warnings', () => {
  expect(networkWarnings(outcome([], { isLost: true, omitted: 7 }))).toHaveLength(2)
})

test('what was allowed and did not come about is no denial, and a command that failed hears of it', () => {
  const verdicts = ['allowed', 'unreachable', 'unresolved', 'too-many'] as const
  const hosts = verdicts.map((verdict) => row('a.test', 443, verdict, 'a.test'))
  expect(networkDenials(outcome(hosts))).toEqual([])
  expect(networkHints(outcome(hosts))).toEqual([
    'allowed, but it could not be reached from this host: a.test:443',
    'allowed, but this host itself could not resolve: a.test:443',
    'allowed, but there were too many connections at once: a.test:443',
  ])
  expect(networkHints(outcome([row('a.test', 443, 'not-public', '10.1.2.3')]))).toEqual([
    'a.test is allowed, but leads to 10.1.2.3, which is not public; to allow it: --allow-host 10.1.2.3',
  ])
})
