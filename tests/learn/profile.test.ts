import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Grant, grantFor } from '../../src/learn/grants.ts'
import type { Learned } from '../../src/learn/learn.ts'
import { profileText } from '../../src/learn/profile.ts'
import { classify } from '../../src/report/classify.ts'
import type { Denial } from '../../src/report/result.ts'
import { outcome, plan } from '../report/fixtures.ts'

const MIB = 1024 ** 2
const denied = (fix: string, target: string, count = 1): Denial => ({
  ...{ layer: 'mount', operation: 'read', target, count, fix, key: '', evidence: 'sandbox' },
})
const learned = (more: Partial<Learned> = {}): Learned => ({
  ...{ grants: [], apart: [], secrets: [], changes: [] },
  result: classify(plan(), outcome({ durationMs: 1500, usage: { cpuMs: 1, peakMemory: 100 * MIB, peakPids: 11 } }), [
    'x',
  ]),
  runs: 3,
  ...more,
})
const grants = (...denials: readonly Denial[]): readonly Grant[] => denials.map((one) => grantFor(one, '/srv') as Grant)
const textOf = (more: Partial<Learned> = {}) =>
  profileText({ learned: learned(more), base: 'default', command: ['npm', 'test'] })

test('a command that needed nothing has limits with headroom', () => {
  expect(textOf()).toBe(`# learned in 3 runs of: npm test
sandbox:
  extends: default
  resources:
    # at most 100MiB at once
    memory: 192m
    # at most 11 processes and threads at once
    pids: 32
    # it took 1.5s
    timeout: 10s
`)
})

test('each line has its reason, and a reader of YAML finds the policy', () => {
  const text = textOf({
    grants: grants(
      denied('--ro /opt/tool', '/opt/tool/lib', 7),
      denied('--allow-host api.test', 'api.test'),
      denied('--tmp 100m', '/tmp'),
      denied('--same-path', '/srv/app'),
    ),
    changes: [{ path: 'dist/a.js', kind: 'added', type: 'file', size: 1, mode: '644' }],
    secrets: ['/home/ann/.ssh/id'],
    apart: [denied('--socket /run/docker.sock', '/run/docker.sock')],
  })
  expect(parse(text)).toEqual({
    sandbox: {
      extends: 'default',
      workspace: 'rw',
      samePath: true,
      zones: [{ mode: 'ro', hostPath: '/opt/tool' }],
      network: { allow: ['api.test'] },
      resources: { memory: '192m', pids: 32, timeout: '10s', tmp: '100m' },
    },
  })
  for (const reason of ['dist/a.js', '/opt/tool/lib (7 times)', 'read api.test', '/home/ann/.ssh/id', '--socket'])
    expect(text).toMatch(new RegExp(`^ *# .*${reason.replace(/[().]/g, '\\$&')}`, 'm'))
})

describe('a path of the command', () => {
  test.each(['a\nsandbox: { network: host }', 'b: c', '# d', '{e', '\u001b[2J', '- f', '"g'])(
    'can write no line of the profile: %j',
    (name) => {
      const text = textOf({
        grants: grants(denied(`--ro '/opt/${name}'`, `/opt/${name}`)),
        changes: [{ path: name, kind: 'added', type: 'file', size: 1, mode: '644' }],
        secrets: [name],
        apart: [denied('', name)],
      })
      expect(parse(text)).toMatchObject({ sandbox: { zones: [{ mode: 'ro', hostPath: `/opt/${name}` }] } })
      expect(Object.keys(parse(text) as object)).toEqual(['sandbox'])
      expect(text).not.toContain('\u001b')
    },
  )
})
