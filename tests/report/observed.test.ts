import { describe, expect, test } from 'vitest'
import type { ObservedReport } from '../../src/backends/outcome.ts'
import type { Observation, Observed } from '../../src/contract.ts'
import { observedDenials, observerWarnings } from '../../src/report/observed.ts'
import { plannedZone } from '../backends/plans.ts'
import { outcome, plan } from './fixtures.ts'

const WORKSPACE = plannedZone({ name: 'workspace', mode: 'ro', source: '/srv/app', target: '/workspace' })
const by = { plan: plan({ zones: [WORKSPACE] }), homes: ['/', '/home/ann', '/home/bob'] }

const seen = (what: Observation, path: string, last = 1, count = 1): Observed => ({ what, path, count, last })
const report = (rows: readonly Observed[], more: Partial<ObservedReport> = {}) =>
  outcome({ observed: { rows, omitted: 0, unread: 0, isLost: false, ...more } })
const told = (...rows: readonly Observed[]) =>
  observedDenials(report(rows), by)?.map(({ operation, target, fix, key }) => `${operation} ${target} ${fix} ${key}`)

describe('what an observer saw', () => {
  test.each<[Observation, string, string]>([
    ['read-only', '/workspace/a', 'write /workspace/a --rw . zones'],
    ['read-only', '/etc/passwd', 'write /etc/passwd  '],
    ['hidden-read', '/srv/data/x', 'read /srv/data/x --ro /srv/data/x zones'],
    ['hidden-read', '/srv/app/x', 'read /srv/app/x --same-path samePath'],
    ['hidden-read', '/srv//data/./x/', 'read /srv/data/x --ro /srv/data/x zones'],
    ['hidden-read', "/srv/it's", "read /srv/it's --ro '/srv/it'\\''s' zones"],
    ['hidden-write', '/srv/data/x', 'write /srv/data/x --rw /srv/data/x zones'],
    ['hidden-create', '/srv/data/x', 'write /srv/data/x --rw /srv/data zones'],
    ['hidden-execute', '/opt/tool', 'execute /opt/tool --ro /opt/tool zones'],
    ['hidden-socket', '/run/db.sock', 'connect /run/db.sock --socket /run/db.sock zones'],
    ['hidden-socket', '/var/run/docker.sock', 'connect /var/run/docker.sock  '],
    ['unreachable', '192.0.2.1:80', 'connect 192.0.2.1:80 --allow-host 192.0.2.1 network.allow'],
    ['unreachable', '192.0.2.1:81', 'connect 192.0.2.1:81 --allow-host 192.0.2.1:81 network.allow'],
    ['unreachable', '[2001:db8::1]:81', 'connect [2001:db8::1]:81 --allow-host [2001:db8::1]:81 network.allow'],
  ])('%s %s', (what, path, expected) => {
    expect(told(seen(what, path))).toEqual([expected])
  })

  test.each<[Observation, string]>([
    ['hidden-read', '/home/ann/.ssh/id_rsa'],
    ['hidden-read', '/home/bob/.ssh/id_rsa'],
    ['hidden-read', '/home/ann'],
    ['hidden-socket', '/home/ann/.gnupg/S.gpg-agent'],
    ['hidden-read', '/etc/shadow'],
    ['hidden-socket', '/var/run/nscd/socket'],
  ])('is not told of credentials and of what programs ask in passing: %s %s', (what, path) => {
    expect(told(seen(what, path))).toEqual([])
  })

  test('is in the order of its weight: reads last, and of each the last one first', () => {
    const rows = [
      seen('hidden-read', '/a', 9),
      seen('read-only', '/workspace/b', 3),
      seen('unreachable', '1.2.3.4:80', 5),
      seen('hidden-read', '/c', 10),
    ]
    const targets = observedDenials(report(rows), by)?.map(({ target }) => target)
    expect(targets).toEqual(['1.2.3.4:80', '/workspace/b', '/c', '/a'])
  })

  test('is told by its path on the host where it climbed out, and not at all where that may not be told', () => {
    const led = new Map([
      ['/base', { path: '/srv/base', flags: '--ro /srv' }],
      ['/key', undefined],
    ])
    const rows = [seen('hidden-read', '/base'), seen('hidden-read', '/key')]
    expect(observedDenials(report(rows), { ...by, led })).toMatchObject([{ target: '/srv/base', fix: '--ro /srv' }])
  })

  test('is nothing exact where it was lost, unreadable, or not looked for', () => {
    expect(observedDenials(outcome({}), by)).toBeUndefined()
    expect(observedDenials(report([], { isLost: true }), by)).toBeUndefined()
    expect(observedDenials(report([], { unread: 3 }), by)).toBeUndefined()
  })

  test('what is missing from it is a warning', () => {
    expect(observerWarnings(outcome({}))).toEqual([])
    expect(observerWarnings(report([]))).toEqual([])
    expect(observerWarnings(report([], { isLost: true }))).toEqual([expect.stringContaining('ENOSYS')])
    expect(observerWarnings(report([], { unread: 3 }))).toEqual([expect.stringContaining('3 calls')])
    expect(observerWarnings(report([], { omitted: 7 }))).toEqual([expect.stringContaining('7 further')])
  })
})
