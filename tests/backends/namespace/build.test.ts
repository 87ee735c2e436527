/**
 * The launch file is the specification of a sandbox by the namespace backend, in the order in which the native chain builds. A
 * changed word is a changed wall. tests/golden/*.launch is the default on one captured host, *.launch.changes what another host changes in
 * it, or another policy in the default of its host.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildNamespace, launchFile } from '../../../src/backends/namespace/build.ts'
import { printLaunchFile } from '../../../src/backends/namespace/launch-file.ts'
import type { MachineFacts } from '../../../src/host/probe.ts'
import type { Plan } from '../../../src/plan/plan.ts'
import { PLAIN_POLICY, planIn, type Tree, type World, zone } from '../../plan/world.ts'
import { changes, withLists, withoutBuiltInNames } from '../../support/changes.ts'
import { runInputs } from '../plans.ts'

interface Host {
  readonly machine: MachineFacts
  readonly tree: Tree
}

const hostNamed = (name: string): Host =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../../hosts', `${name}.json`), 'utf8')) as Host

const PROJECT: Tree = {
  '/home/ann/project/.git/config': 'file',
  '/home/ann/project/.git/hooks': 'directory',
  '/srv/a, b:c\nd': 'directory',
  '/srv/cache': 'directory',
}

const ALL = ['cpu', 'io', 'memory', 'pids']
const RATES = { readBps: 20_971_520, writeBps: 10_485_760, readIops: 500, writeIops: 200 }
const CASES: Readonly<Record<string, World>> = {
  default: {},
  task: { policy: { profile: 'task', workspace: 'rw', resources: { ...PLAIN_POLICY.resources, pids: 32 } } },
  bwrap: { policy: { engine: 'bwrap' } },
  'host-network': { policy: { network: { mode: 'host', allow: [], deny: [] } } },
  nested: { policy: { seccomp: 'nested' } },
  terminal: { policy: { tty: true } },
  rates: {
    machine: { cgroup: { rung: 'systemd-user', parent: '/sys/fs/cgroup/u', controllers: ALL, lacking: '', fix: '' } },
    policy: { resources: { ...PLAIN_POLICY.resources, ...RATES } },
  },
  unlimited: {
    policy: {
      workspace: 'none',
      resources: { ...PLAIN_POLICY.resources, memory: null, cpus: null, pids: null, timeout: null },
    },
  },
  zones: {
    policy: {
      zones: [
        zone({ mode: 'rw', hostPath: '/home/ann/project', name: 'work' }),
        zone({ mode: 'ro', hostPath: '/srv/a, b:c\nd', target: '/odd', name: 'odd' }),
        zone({ mode: 'rw', hostPath: '/srv/cache', target: '/cache', name: 'cache', sockets: true }),
        zone({ mode: 'tmpfs', target: '/scratch', name: 'scratch', size: 52_428_800 }),
      ],
    },
  },
}

const ROWS: readonly (readonly [name: string, host: string])[] = [
  ...['debian-12-user', 'debian-12-root', 'systemd-user'].map((host) => ['default', host] as const),
  ...['task', 'bwrap', 'host-network', 'terminal', 'zones'].map((name) => [name, 'debian-12-user'] as const),
  ...[
    ['nested', 'debian-12-root'] as const,
    ['unlimited', 'systemd-user'] as const,
    ['rates', 'systemd-user'] as const,
  ],
]

function planOn(name: string, host: string): Plan {
  const { machine, tree } = hostNamed(host)
  const world = CASES[name] ?? {}
  const plan = planIn({
    ...world,
    machine: { ...machine, ...world.machine },
    tree: { ...tree, ...PROJECT, ...world.tree },
  })
  // Filters have tests of their own; four words stand for one here.
  return { ...plan, seccomp: { ...plan.seccomp, filter: 'f117e4' } }
}

const INPUTS = {
  enginePath: '/usr/bin/bwrap',
  runsDirectory: '/run/user/1000/llm-do/runs',
  callerDirectory: '/home/ann/project',
}

const printedOn = (name: string, host: string): string =>
  withLists(printLaunchFile(launchFile(withoutBuiltInNames(planOn(name, host)), INPUTS)).split('\n'), (line) =>
    /^(mask|readonly|protect) /.test(line),
  ).join('\n')

describe('the launch file', () => {
  test.each(ROWS)('of the policy %s on %s is what was reviewed', (name, host) => {
    const text = printedOn(name, host)
    const base = name === 'default' ? 'debian-12-user' : host
    if (name === 'default' && host === base) expect(text).toMatchGolden(`${name}.${host}.launch`)
    else expect(changes(printedOn('default', base), text)).toMatchGolden(`${name}.${host}.launch.changes`)
  })

  test('of a run without a runs directory keeps no record', () => {
    const printed = printLaunchFile(launchFile(planOn('default', 'debian-12-user'), { ...INPUTS, runsDirectory: '' }))
    expect(printed).not.toMatch(/^runs /m)
  })

  test('says that a run is watched, and nothing where it is not', () => {
    const observe = (policy: NonNullable<World['policy']>, more: object = {}) =>
      printLaunchFile(launchFile(planIn({ policy }), { runsDirectory: '', ...more }))
        .split('\n')
        .filter((line) => line.startsWith('observe'))
    expect(observe({})).toEqual([])
    expect(observe({ explain: true })).toEqual(['observe acts'])
    expect(observe({ explain: true }, { watchesLooks: true })).toEqual(['observe all'])
  })

  test('of a policy without a filter says so', () => {
    const plan = planOn('default', 'debian-12-user')
    const records = launchFile({ ...plan, seccomp: { ...plan.seccomp, profile: 'off', filter: '' } }, INPUTS)
    expect(printLaunchFile(records)).toMatch(/^seccomp off$/m)
  })
})

describe('the launch', () => {
  const secret = { HOME: '/home/sandbox', TOKEN: 'swordfish' }
  const words = ['printf', '%s', 'correct horse', '']
  const launch = buildNamespace(planOn('default', 'debian-12-user'), runInputs({ command: words, commandEnv: secret }))

  test('has nothing of the command or its secrets in argv', () => {
    expect(launch.argv).toEqual(['__launch', '--id', 'run1'])
  })

  test('has no secret in the launch file', () => {
    const launchFd = launch.descriptors.find(({ fd }) => fd === 3)
    expect(launchFd?.carries === 'bytes' ? Buffer.from(launchFd.bytes).toString() : 'swordfish').not.toMatch(
      /swordfish|horse/,
    )
  })
})
