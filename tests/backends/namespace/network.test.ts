import { expect, test } from 'vitest'
import { networkRecords } from '../../../src/backends/namespace/network.ts'

test.each(['none', 'host'] as const)('network %s is one word of the launch file', (mode) => {
  expect(networkRecords({ mode, allow: [], deny: [] })).toEqual([['net', mode]])
})

test('a restricted network is written with stand-ins, diversions and rules', () => {
  const allow = ['api.test', '*.cdn.test:443', '192.0.2.0/24:22', 'db.test:*']
  expect(networkRecords({ mode: 'restricted', allow, deny: ['old.cdn.test', 'api.test:80'] })).toEqual([
    ['net', 'restricted'],
    ['net-by', 'nftables'],
    ['net-name', '198.18.1.0', 'api.test'],
    ['net-name', '198.18.1.1', 'db.test'],
    ['net-name', '198.18.64.0/22', '*.cdn.test'],
    ['net-divert', '198.18.1.0/32', 443],
    ['net-divert', '198.18.1.1/32', '*'],
    ['net-divert', '198.18.64.0/22', 443],
    ['net-divert', '192.0.2.0/24', 22],
    ['net-allow', 'api.test', '80 443', 'api.test'],
    ['net-allow', '*.cdn.test', '443', '*.cdn.test:443'],
    ['net-allow', '192.0.2.0/24', '22', '192.0.2.0/24:22'],
    ['net-allow', 'db.test', '*', 'db.test:*'],
    ['net-deny', 'old.cdn.test', '*', 'old.cdn.test'],
    ['net-deny', 'api.test', '80', 'api.test:80'],
  ])
})

test('without nftables, listeners are written besides', () => {
  const network = { mode: 'restricted', allow: ['api.test:22', '*.cdn.test:443'], deny: [], by: 'listeners' } as const
  const records = networkRecords(network)
  expect(records).toContainEqual(['net-by', 'listeners'])
  expect(records.filter(([verb]) => verb === 'net-listen')).toEqual([
    ['net-listen', '198.18.1.0', 22],
    ['net-listen', '0.0.0.0', 443],
  ])
})

test('hosts whose TLS ends here are named for the helper, with the port of plain HTTP', () => {
  const network = { mode: 'restricted', allow: ['api.test'], deny: [], requests: ['GET api.test/*'] } as const
  const named = (records: readonly (readonly unknown[])[]) => records.filter(([verb]) => verb === 'net-terminate')
  expect(named(networkRecords({ ...network, terminate: true }))).toEqual([
    ['net-terminate', 'api.test', 443],
    ['net-terminate', 'api.test', 80],
  ])
  expect(named(networkRecords(network))).toEqual([])
})
