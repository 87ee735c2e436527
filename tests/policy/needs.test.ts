import { describe, expect, test } from 'vitest'
import { needsOf } from '../../src/policy/needs.ts'
import { NEEDS } from '../../src/policy/values.ts'
import { merged } from './layers.ts'

const WALLS = ['empty-root', 'zones', 'pid-namespace', 'ipc-namespace', 'user-namespace', 'seccomp']
const LIMITS = ['memory-limit', 'cpus-limit', 'pids-limit']

test('the default policy needs every wall, no network and every limit', () => {
  expect(needsOf(merged(), ['true'])).toEqual([...WALLS, 'net-none', ...LIMITS, 'deadline', 'output-limit'])
})

describe('needs follow the policy', () => {
  test.each<[unknown, readonly string[], readonly string[], readonly string[]]>([
    [{ network: 'host' }, ['x'], ['net-host'], ['net-none', 'net-restricted']],
    [{ network: { allow: ['a'] } }, ['x'], ['net-restricted'], ['net-none', 'net-host']],
    [{ seccomp: 'off' }, ['x'], [], ['seccomp']],
    [{ workspace: 'none' }, ['x'], [], ['zones']],
    [{ workspace: 'none', zones: [{ name: 'a', mode: 'tmpfs' }] }, ['x'], ['zones'], []],
    [{ resources: { memory: 'none', cpus: 'all', pids: 'none' } }, ['x'], [], LIMITS],
    [{}, ['x'], [], ['io-limit']],
    [{ resources: { writeBps: '1m' } }, ['x'], ['io-limit'], []],
    [{ resources: { readIops: 10 } }, ['x'], ['io-limit'], []],
    [{ resources: { readIops: 10 }, bestEffort: true }, ['x'], [], ['io-limit']],
    [{ resources: { timeout: 'none', output: 'none' } }, ['x'], [], ['deadline', 'output-limit']],
    [{ resources: { timeout: 'none', cpuTime: '5s' } }, ['x'], ['deadline'], []],
    [{ tty: true }, ['x'], ['tty'], []],
    [{}, ['./a.wasm'], ['wasi-command'], []],
    [{ backend: 'wasm' }, ['python'], ['wasi-command'], []],
    [{ bestEffort: true }, ['x'], [], LIMITS],
    [{ bestEffort: true, require: ['memory-limit'] }, ['x'], ['memory-limit'], ['pids-limit']],
    [{ require: ['sockets-closed'] }, ['x'], ['sockets-closed'], []],
  ])('%j for %j', (values, command, there, absent) => {
    const needs: readonly string[] = needsOf(merged(values), command)
    expect(needs).toEqual(expect.arrayContaining([...there]))
    expect(absent.filter((need) => needs.includes(need))).toEqual([])
  })
})

test('bestEffort takes no wall away', () => {
  expect(needsOf(merged({ bestEffort: true }), ['x'])).toEqual(expect.arrayContaining([...WALLS, 'net-none']))
})

test('every word of require can be asked for', () => {
  expect(merged({ require: NEEDS }).require).toEqual(NEEDS)
})
