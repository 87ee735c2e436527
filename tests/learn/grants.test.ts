import { describe, expect, test } from 'vitest'
import { type Grant, grantFor, withGrant } from '../../src/learn/grants.ts'
import type { Denial } from '../../src/report/result.ts'

const denied = (fix: string): Denial => ({
  ...{ layer: 'mount', operation: 'read', target: '/x', count: 1, fix, key: 'zones', evidence: 'sandbox' },
})
const grant = (fix: string): Grant => grantFor(denied(fix), '/srv/app') as Grant

describe('a refusal is answered by', () => {
  test.each([
    ['--ro /opt/tool', { zones: [{ mode: 'ro', hostPath: '/opt/tool' }] }],
    ["--ro '/srv/it'\\''s here'", { zones: [{ mode: 'ro', hostPath: "/srv/it's here" }] }],
    ['--rw /srv/out', { zones: [{ mode: 'rw', hostPath: '/srv/out' }] }],
    ['--same-path', { samePath: true }],
    ['--tmp 100m', { resources: { tmp: '100m' } }],
    ['--memory 1g', { resources: { memory: '1g' } }],
    ['--allow-host api.test', { network: { allow: ['api.test'] } }],
  ])('%s', (fix, values) => {
    expect(grant(fix).layer).toMatchObject({ directory: '/srv/app', values })
  })

  test.each([
    '',
    '--seccomp nested',
    '--protect-not .git',
    '--socket /run/docker.sock',
    '--net host',
    '--allow-local PORT',
    '--profile task',
    'take back --deny-host *.test',
    'HTTP/1.1 in the form of the standard',
  ])('a person alone: %j', (fix) => {
    expect(grantFor(denied(fix), '/srv/app')).toBeUndefined()
  })
})

test('of a limit the last grant counts, and writing takes the place of reading', () => {
  const granted = [
    '--ro /a',
    '--tmp 100m',
    '--ro /b',
    '--tmp 200m',
    '--rw /a',
    '--allow-host a.test',
    '--allow-host b.test',
  ]
  const kept = granted.map(grant).reduce<readonly Grant[]>(withGrant, [])
  expect(kept.map(({ fix }) => fix)).toEqual([
    '--ro /b',
    '--tmp 200m',
    '--rw /a',
    '--allow-host a.test',
    '--allow-host b.test',
  ])
})
