import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { environmentLayers } from '../../src/policy/environment.ts'
import { KEY_ROWS } from '../../src/policy/key-table.ts'
import { coversHost } from '../../src/policy/keys/network-narrowing.ts'
import type { GivenOptions } from '../../src/policy/option-layer.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { escalationError, NARROWED_KEYS, type Narrowed, narrowStep } from '../../src/worker/narrow.ts'
import type { SandboxRequest } from '../../src/worker/worker.ts'
import type { ZoneContext } from '../../src/worker/zones.ts'
import { mergeLayers } from '../policy/layers.ts'
import { errorText, HOME, operator, sandbox, workshop } from './support.ts'

const GROUND: ZoneContext = {
  cwd: '/project',
  project: ['/project'],
  own: ['/project'],
  real: (known) => known.replace(/^\/project\/link/, '/etc'),
  allowWorkerZones: false,
}
interface Case {
  readonly given?: GivenOptions
  readonly shop?: string
  readonly worker?: string
  readonly context?: Partial<ZoneContext>
  readonly isProfileChosen?: boolean
  readonly grant?: Policy
}

function narrowed({ given = {}, shop, worker, context = {}, isProfileChosen = false, grant }: Case): Narrowed {
  const workshopRequest = shop === undefined ? undefined : workshop(`name: s\nsandbox: ${shop}`).sandbox
  const common = { context: { ...GROUND, ...context }, isProfileChosen, home: HOME }
  const steps: readonly (readonly ['workshop' | 'worker', SandboxRequest | undefined])[] = [
    ['workshop', workshopRequest],
    ['worker', worker === undefined ? undefined : sandbox(worker)],
  ]
  return steps.reduce<Narrowed>(
    (sofar, [level, request]) => {
      if (request === undefined) return sofar
      const next = narrowStep({ ...common, policy: sofar.policy, level, request })
      return { ...next, escalations: [...sofar.escalations, ...next.escalations] }
    },
    { policy: grant ?? operator(given), escalations: [], warnings: [] },
  )
}
const zones = ({ policy }: Narrowed) =>
  policy.zones.map(({ name, mode, hostPath }) => `${name} ${mode} ${hostPath ?? '-'}`)
const refusals = (of: Case) =>
  narrowed(of).escalations.map(({ key, wanted, granted }) => `${key}: ${wanted} / ${granted}`)

test('every key of a policy has a row that narrows it', () => {
  const keys = KEY_ROWS.map(({ key }) => key).filter((key) => !/\[|^network\./.test(key))
  const handled = ['zones', 'extends', 'description']
  expect([...NARROWED_KEYS].sort()).toEqual(keys.filter((key) => !handled.includes(key)).sort())
})

describe('a worker never gets more than it was granted', () => {
  test.each<[string, Case, RegExp]>([
    [
      'rw under the read-only workspace',
      { worker: '{ zones: [{ name: log, mode: rw, hostPath: ./log }] }' },
      /^sandbox\.zones\.0: mode rw on \/project\/log \/ ro by the workspace$/,
    ],
    [
      'a host path outside',
      { worker: '{ zones: [{ name: e, hostPath: /etc }] }' },
      /^sandbox\.zones\.0: the host path \/etc \(ro\) \/ no zone that shows it$/,
    ],
    ['a link that leads outside', { worker: '{ zones: [{ name: e, hostPath: ./link }] }' }, /the host path \/etc/],
    ['a way up and out', { worker: '{ zones: [{ name: e, hostPath: ../other }] }' }, /the host path \/other/],
    [
      'a request that is not granted',
      { worker: '{ zones: [{ name: data, mode: rw }] }' },
      /^sandbox\.zones\.0: a zone data \(rw\) \/ no zone of that name$/,
    ],
    [
      'a request for rw that is granted ro',
      { given: { zone: ['data=./d'] }, worker: '{ zones: [{ name: data, mode: rw }] }' },
      /^sandbox\.zones\.0: mode rw \/ ro by zone data \(flag --zone\)$/,
    ],
    [
      'another host path under a granted name',
      { given: { zone: ['data=./d'] }, worker: '{ zones: [{ name: data, hostPath: /etc }] }' },
      /the host path \/etc \/ \/project\/d by zone data/,
    ],
    [
      'a zone of the workshop outside the project',
      { shop: '{ zones: [{ name: e, hostPath: /etc }] }' },
      /the host path \/etc/,
    ],
    [
      'a new zone next to those of the workshop',
      { shop: '{ zones: [{ name: a, hostPath: ./a }] }', worker: '{ zones: [{ name: b, hostPath: ./b }] }' },
      /the host path \/project\/b \(ro\)/,
    ],
    [
      'to make a directory where it may only read',
      { worker: '{ zones: [{ name: n, hostPath: ./n, create: true }] }' },
      /to create \/project\/n \/ ro by the workspace/,
    ],
    [
      'to make a directory on the host under a copy-on-write grant',
      { given: { cow: ['.'] }, worker: '{ zones: [{ name: n, hostPath: ./n, mode: cow, create: true }] }' },
      /to create \/project\/n \/ cow by /,
    ],
    ['where changes wait', { worker: '{ cow: { upper: memory } }' }, /^cow\.upper: memory \/ disk/],
    ['that changes wait for less', { worker: '{ cow: { keep: 1s } }' }, /^cow\.keep: 1s \/ 7d/],
    ['sockets', { given: { zone: ['a=./a'] }, worker: '{ zones: [{ name: a, sockets: true }] }' }, /sockets \/ none/],
    [
      'readonly: false under a ro grant',
      { worker: '{ readonly: false }' },
      /^sandbox\.readonly: rw \(readonly: false\) \/ ro by the workspace$/,
    ],
    [
      'a writable root under a ro grant',
      { worker: '{ root: ".", readonly: false }' },
      /^sandbox\.readonly: mode rw on \/project \/ ro by the workspace$/,
    ],
    ['readonly: false under a ro zone', { given: { ro: ['./d'] }, worker: '{ readonly: false }' }, /ro by zone/],
    [
      'a subtree that is not there',
      { given: { zone: ['data=./d'], 'no-workspace': true }, worker: '{ restrict: /other }' },
      /^sandbox\.restrict: \/other \/ \/data$/,
    ],
    ['a subtree that leads out by a link', { worker: '{ restrict: /link }' }, /^sandbox\.restrict: \/link/],
    ['the network', { worker: '{ network: host }' }, /^network: host \/ none \(built-in\)$/],
    ['hosts', { worker: '{ network: { allow: [a.example] } }' }, /^network: restricted \(a\.example\) \/ none/],
    [
      'a host beyond the list',
      { given: { 'allow-host': ['a.example'] }, worker: '{ network: { allow: [a.example, b.example] } }' },
      /^network: restricted \(a\.example, b\.example\) \/ restricted \(a\.example\) \(flag --allow-host\)$/,
    ],
    ['the network, from a workshop', { shop: '{ network: host }' }, /^network: host \/ none/],
    ['more memory', { worker: '{ resources: { memory: 2G } }' }, /^resources\.memory: 2GiB \/ 512MiB/],
    ['no limit', { worker: '{ resources: { pids: none } }' }, /^resources\.pids: no limit \/ 256/],
    [
      'a longer time',
      { given: { timeout: '10s' }, worker: '{ resources: { timeout: 11s } }' },
      /^resources\.timeout: 11s \/ 10s \(flag --timeout\)$/,
    ],
    [
      'more memory than a flag leaves of what the workshop sets',
      { given: { memory: '1g' }, shop: '{ resources: { memory: 2g } }', worker: '{ resources: { memory: 1500m } }' },
      /^resources\.memory: 1\.5GiB \/ 1GiB \(flag --memory\)$/,
    ],
    [
      'more than the workshop sets',
      { shop: '{ resources: { memory: 256m } }', worker: '{ resources: { memory: 257m } }' },
      /257MiB \/ 256MiB \(workshop shop\.yaml:2\)$/,
    ],
    ['no sandbox', { worker: '{ backend: process }' }, /^backend: process \/ auto/],
    ['no sandbox, from a workshop', { shop: '{ isolation: process }' }, /^backend: process \/ auto/],
    ['a weaker filter', { worker: '{ seccomp: off }' }, /^seccomp: off \/ default/],
    ['a weaker filter, from a workshop', { shop: '{ seccomp: nested }' }, /^seccomp: nested \/ default/],
    [
      "the caller's variables",
      { worker: '{ env: { inherit: [GITHUB_TOKEN] } }' },
      /^env\.inherit: GITHUB_TOKEN \/ none/,
    ],
    [
      'credentials',
      { worker: '{ credentials: [{ file: ~/.config/gh/hosts.yml }] }' },
      /^credentials: \/home\/ann\/\.config\/gh\/hosts\.yml \/ none/,
    ],
    ['the SSH agent', { worker: '{ sshAgent: true }' }, /^sshAgent: true \/ false/],
    ['the protected paths', { worker: '{ protect: [] }' }, /^protect: no protected paths/],
    ['a protected name', { worker: '{ protectNot: [.vscode] }' }, /^protectNot: \.vscode \/ none/],
    ['all protected names', { worker: '{ protectNot: ["*"] }' }, /^protectNot: \* \/ none/],
    [
      'another protected name than the one opened',
      { given: { 'protect-not': ['.idea'] }, worker: '{ protectNot: [.git] }' },
      /^protectNot: \.git \/ \.idea/,
    ],
    ['limits that may be left out', { worker: '{ bestEffort: true }' }, /^bestEffort: true \/ false/],
    [
      'another image than the one chosen',
      { given: { image: 'a:1' }, worker: '{ image: "b:1" }' },
      /^image: b:1 \/ a:1/,
    ],
    ['a cgroup of its own', { worker: '{ cgroupParent: /sys/fs/cgroup/x }' }, /^cgroupParent/],
    ['a container that is kept', { worker: '{ docker: { reuse: session } }' }, /^docker\.reuse: session \/ off/],
  ])('%s', (_, of, line) => {
    expect(refusals(of)).toEqual([expect.stringMatching(line)])
  })

  test('the error names file, line, key, wanted, granted, and the flag that would grant it', () => {
    const { escalations } = narrowed({ worker: '\n  network: host\n  resources: { memory: 2g }' })
    const error = escalationError(escalations)
    expect(error.code).toBe('POLICY_ESCALATION')
    expect(errorText(error)).toBe(
      '2 problems.\nw.worker:4: network: wanted host, granted none (built-in).\nw.worker:5: resources.memory: wanted 2GiB, granted 512MiB (built-in).',
    )
    expect(error.hint).toBe('to grant it: llm-do exec --net host --memory 2GiB ...')
  })
})

describe('what is granted is narrowed', () => {
  test.each<[string, Case, readonly string[]]>([
    ['a directory of the workspace', { worker: '{ zones: [{ name: d, hostPath: ./d }] }' }, ['d ro /project/d']],
    [
      'a request by name',
      { given: { zone: ['data=./d:rw'] }, worker: '{ zones: [{ name: data, mode: rw }] }' },
      ['data rw /project/d'],
    ],
    [
      'a request for less than is granted',
      { given: { zone: ['data=./d:rw'] }, worker: '{ zones: [{ name: data }] }' },
      ['data ro /project/d'],
    ],
    [
      'a part of a granted zone',
      { given: { zone: ['data=./d:rw'] }, worker: '{ zones: [{ name: data, mode: rw, hostPath: ./d/sub }] }' },
      ['data rw /project/d/sub'],
    ],
    [
      'a new zone inside a granted one',
      { given: { rw: ['./d'] }, worker: '{ zones: [{ name: sub, mode: rw, hostPath: ./d/sub }] }' },
      ['zone#2.1 rw /project/d', 'sub rw /project/d/sub'],
    ],
    [
      'a request that a tmpfs answers',
      { given: { tmpfs: ['/scratch'] }, worker: '{ zones: [{ name: scratch, mode: rw }] }' },
      ['zone#2.1 tmpfs -'],
    ],
    ['scratch space of its own', { worker: '{ zones: [{ name: s, mode: tmpfs }] }' }, ['s tmpfs -']],
    [
      'a default path in the project gives way',
      { given: { zone: ['data=./real:rw'] }, worker: '{ zones: [{ name: data, mode: rw, hostPath: ./data }] }' },
      ['data rw /project/real'],
    ],
    [
      'zones of the workshop',
      { shop: '{ zones: [{ name: out, mode: rw, hostPath: ./out }] }' },
      ['out rw /project/out'],
    ],
    [
      'a zone of the workshop, requested',
      { shop: '{ mounts: ["./src:/workspace/src:rw"] }', worker: '{ zones: [{ name: src }] }' },
      ['src ro /project/src'],
    ],
    [
      'readonly closes every zone',
      { given: { rw: ['./a'], zone: ['b=./b:rw'] }, worker: '{ readonly: true }' },
      ['zone#2.1 ro /project/a', 'b ro /project/b'],
    ],
    [
      'restrict keeps one zone',
      { given: { zone: ['a=./a:rw', 'b=./b'] }, worker: '{ restrict: /a }' },
      ['a rw /project/a'],
    ],
    [
      'restrict cuts a zone down',
      { given: { zone: ['a=./a:rw', 'b=./b'] }, worker: '{ restrict: /a/sub }' },
      ['a rw /project/a/sub'],
    ],
    ['restrict cuts the workspace down', { worker: '{ restrict: /notes }' }, ['notes ro /project/notes']],
    [
      'restrict cuts the workspace down beside fresh memory of the operator',
      { given: { tmpfs: ['/notes/memory'] }, worker: '{ restrict: /notes }' },
      ['zone#2.1 tmpfs -', 'notes ro /project/notes'],
    ],
    [
      'restrict below the workspace',
      { given: { rw: ['.:/workspace'] }, worker: '{ restrict: /workspace/notes }' },
      ['zone#2.1 rw /project/notes'],
    ],
    [
      'zones by the workshop’s leave',
      {
        shop: '{ zones: [{ name: a, hostPath: ./a }] }',
        worker: '{ zones: [{ name: b, mode: rw, hostPath: ./b }] }',
        context: { allowWorkerZones: true },
      },
      ['a ro /project/a', 'b rw /project/b'],
    ],
  ])('%s', (_, of, expected) => {
    const result = narrowed(of)
    expect([result.escalations, zones(result)]).toEqual([[], expected])
  })

  test('restrict to a zone of memory leaves nothing of the workspace', () => {
    const zone = '{ name: s, mode: tmpfs, target: /other/s }'
    const { policy } = narrowed({ worker: `{ zones: [${zone}], restrict: /other/s }` })
    expect([policy.zones.map(({ target }) => target), policy.workspace]).toEqual([['/other/s'], 'none'])
  })

  test.each<[string, Case, Policy['workspace']]>([
    ['a worker', { worker: '{ zones: [{ name: src, hostPath: ./src }] }' }, 'none'],
    ['a workshop', { shop: '{ zones: [{ name: src, hostPath: ./src }] }' }, 'none'],
    [
      'a worker beside zones of the operator',
      { given: { ro: ['/data'] }, worker: '{ zones: [{ name: src, hostPath: ./src }] }' },
      'none',
    ],
    ['a workshop that opens it', { shop: '{ readonly: false, zones: [{ name: src, hostPath: ./src }] }' }, 'none'],
    ['nobody', { given: { ro: ['/data'] }, worker: '{ tty: false }' }, 'ro'],
    ['a worker, of memory alone', { worker: '{ zones: [{ name: s, mode: tmpfs }] }' }, 'ro'],
  ])('the workspace beside zones that are listed by %s', (_who, of, workspace) => {
    const { policy, escalations } = narrowed(of)
    expect([escalations, policy.workspace]).toEqual([[], workspace])
  })

  test('restrict leaves nothing of the workspace but the subtree, whatever zones the operator has named', () => {
    const left = (subtree: string) => {
      const { policy } = narrowed({ given: { ro: ['/data'] }, worker: `{ restrict: ${subtree} }` })
      return [policy.zones.map(({ hostPath }) => hostPath), policy.workspace]
    }
    expect(left('/notes')).toEqual([['/project/notes'], 'none'])
    expect(left('/data/in')).toEqual([['/data/in'], 'none'])
  })

  test('leave to add zones ends at the project and at what the operator closed', () => {
    const context = { allowWorkerZones: true }
    expect(
      refusals({ worker: '{ zones: [{ name: e, mode: rw, hostPath: /etc }] }', context, given: { zone: ['x=./x'] } }),
    ).toHaveLength(1)
    expect(
      refusals({ worker: '{ zones: [{ name: b, mode: rw, hostPath: ./x/b }] }', context, given: { zone: ['x=./x'] } }),
    ).toHaveLength(1)
  })

  test('a workshop may set limits that were not chosen, and not those of a profile named by the operator', () => {
    const shop = '{ resources: { memory: 2g } }'
    expect(narrowed({ shop }).policy.resources.memory).toBe(2 * 1024 ** 3)
    const grant = operator({}, { profile: { resources: { memory: '1g' } } })
    expect(narrowed({ shop, grant }).escalations).toEqual([])
    expect(narrowed({ shop, grant, isProfileChosen: true }).escalations).toHaveLength(1)
  })

  test('a workshop may open the workspace that is not closed', () => {
    expect(narrowed({ shop: '{ workspace: rw }' }).policy.workspace).toBe('rw')
    expect(narrowed({ shop: '{ readonly: false }' }).policy.workspace).toBe('rw')
    expect(refusals({ shop: '{ zones: [{ name: d, mode: rw, hostPath: ./d }] }', given: { ro: ['.'] } })).toHaveLength(
      1,
    )
  })

  test('a workshop may name variables and credentials', () => {
    const { policy } = narrowed({ shop: '{ env: { inherit: [CI] }, credentials: [{ file: ~/.netrc }] }' })
    expect([policy.env.inherit, policy.credentials.map(({ file }) => file)]).toEqual([['CI'], [`${HOME}/.netrc`]])
  })

  test('a flag is the last word on what it names', () => {
    const { policy } = narrowed({
      given: { memory: '1g', net: 'none' },
      worker: '{ resources: { memory: 256m, pids: 10 } }',
    })
    expect([policy.resources.memory, policy.resources.pids]).toEqual([1024 ** 3, 10])
  })

  const LESS = { memory: '256m', cpus: '1', pids: '10', timeout: '5s' }
  const TWINS = Object.fromEntries(
    Object.entries(LESS).map(([name, value]) => [`LLM_DO_EXEC_${name.toUpperCase()}`, value]),
  )
  test.each([
    ['flags', operator(LESS)],
    ['variables', mergeLayers(environmentLayers(TWINS, '/project').layers, { profile: 'default', home: HOME })],
  ])('%s below the limits of a workshop narrow them', (_, grant) => {
    const shop = '{ resources: { memory: 2g, cpu: 4, pids: 100, timeout: none, tmp: 80m } }'
    const { policy, escalations } = narrowed({ shop, grant })
    expect(escalations).toEqual([])
    const MIB = 1024 ** 2
    expect(policy.resources).toMatchObject({ memory: 256 * MIB, cpus: 1, pids: 10, timeout: 5000, tmp: 80 * MIB })
  })

  test('hosts are narrowed to those that are wished for', () => {
    const given = { 'allow-host': ['a.example', 'b.example'] }
    const grant = { ...operator(given), origins: {} }
    expect(narrowed({ grant, worker: '{ network: { allow: [a.example] } }' }).policy.network).toEqual({
      mode: 'restricted',
      allow: ['a.example'],
      deny: [],
    })
    expect(narrowed({ grant, worker: '{ network: { deny: [a.example] } }' }).policy.network).toEqual({
      mode: 'restricted',
      allow: ['b.example'],
      deny: ['a.example'],
    })
    expect(narrowed({ grant, worker: '{ network: none }' }).policy.network.mode).toBe('none')
  })

  test('a variable of the operator keeps its value', () => {
    const { policy } = narrowed({
      given: { env: ['A=1', 'B'] },
      worker: '{ env: { set: { A: "2", B: "3", C: "4" } } }',
    })
    expect(policy.env).toEqual({ inherit: ['B'], set: { A: '1', C: '4' } })
  })

  test('who set what is remembered', () => {
    const { policy } = narrowed({ worker: '\n  resources: { memory: 256m }' })
    expect(policy.origins['resources.memory']?.at(-1)).toEqual({
      layer: 'worker',
      source: 'w.worker:4',
      key: 'resources.memory',
    })
  })

  test('stricter words are taken over', () => {
    const { policy } = narrowed({
      worker:
        '{ seccomp: strict, backend: docker, image: "a:1", toolchains: off, pool: off, workspace: none, require: [net-none], protect: [x] }',
    })
    expect(policy).toMatchObject({
      seccomp: 'strict',
      backend: 'docker',
      image: 'a:1',
      toolchains: 'off',
      pool: 'off',
      workspace: 'none',
      require: ['net-none'],
    })
    expect(policy.protect).toEqual(['x'])
    expect(policy.protectNot).toEqual([])
  })
})

test.each<[string, string, boolean]>([
  ['a.example', 'a.example', true],
  ['a.example', 'a.example:443', true],
  ['a.example:443', 'a.example', false],
  ['a.example:443', 'a.example:443', true],
  ['*.example', 'a.example', true],
  ['*.example', '*.a.example', true],
  ['*.example', '*.example', true],
  ['*.example', 'example', false],
  ['*.a.example', '*.example', false],
  ['a.example', '*.example', false],
  ['*.example', 'aexample', false],
])('a grant of %s covers %s: %s', (granted, requested, expected) => {
  expect(coversHost(granted, requested)).toBe(expected)
})

test('paths are compared by whole names', () => {
  const worker = `{ zones: [{ name: d, mode: rw, hostPath: ${path.join('/project', 'data-2')} }] }`
  expect(refusals({ given: { rw: ['./data'] }, worker })).toHaveLength(1)
})
