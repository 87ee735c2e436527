import { describe, expect, test } from 'vitest'
import { environmentLayers } from '../../src/policy/environment.ts'
import { KEY_ROWS } from '../../src/policy/key-table.ts'
import { coversHost } from '../../src/policy/keys/network-narrowing.ts'
import type { GivenOptions } from '../../src/policy/option-layer.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { escalationError, NARROWED_KEYS, narrowStep } from '../../src/worker/narrow.ts'
import type { SandboxRequest } from '../../src/worker/worker.ts'
import type { Narrowed, ZoneContext } from '../../src/worker/zones.ts'
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
  /** The sandbox of a workshop, and of a worker, without braces. */
  readonly shop?: string
  readonly worker?: string
  readonly context?: Partial<ZoneContext>
  readonly isProfileChosen?: boolean
  readonly grant?: Policy
}

function narrowed({ given = {}, shop, worker, context = {}, isProfileChosen = false, grant }: Case): Narrowed {
  const workshopRequest = shop === undefined ? undefined : workshop(`name: s\nsandbox: { ${shop} }`).sandbox
  const common = { context: { ...GROUND, ...context }, isProfileChosen, home: HOME }
  const steps: readonly (readonly ['workshop' | 'worker', SandboxRequest | undefined])[] = [
    ['workshop', workshopRequest],
    ['worker', worker === undefined ? undefined : sandbox(`{ ${worker} }`)],
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

/** Rows `title | asked | expected`. What is asked: flags of the operator, `shop` of a workshop, and of a worker, with ` & ` between them. */
const inTable = (rows: string): readonly (readonly [title: string, of: Case, expected: string])[] =>
  rows
    .trim()
    .split('\n')
    .map((row) => {
      const [title = '', asked = '', expected = ''] = row.trim().split(' | ')
      const of: { given: Record<string, string[]>; shop?: string; worker?: string } = { given: {} }
      for (const part of asked.split(' & ')) {
        const [, flag = '', value = ''] = /^--(\S+) (.*)$/.exec(part) ?? []
        if (flag !== '') of.given[flag] = [...(of.given[flag] ?? []), value]
        else if (part.startsWith('shop ')) of.shop = part.slice(5)
        else of.worker = part
      }
      return [title, of, expected] as const
    })

test('every key of a policy has a row that narrows it', () => {
  const keys = KEY_ROWS.map(({ key }) => key).filter((key) => !/\[|^network\./.test(key))
  const handled = ['zones', 'extends', 'description']
  expect([...NARROWED_KEYS].sort()).toEqual(keys.filter((key) => !handled.includes(key)).sort())
})

describe('a worker never gets more than it was granted', () => {
  const REFUSED = `
    rw in the workspace | zones: [{ name: l, mode: rw, hostPath: ./l }] | zones.0: mode rw on /project/l / ro by the workspace
    a host path outside | zones: [{ name: e, hostPath: /etc }] | zones.0: the host path /etc (ro) / no zone that shows it
    a link that leads outside | zones: [{ name: e, hostPath: ./link }] | zones.0: the host path /etc (ro) / no zone that shows it
    a way up and out | zones: [{ name: e, hostPath: ../other }] | zones.0: the host path /other (ro) / no zone that shows it
    a request that is not granted | zones: [{ name: data, mode: rw }] | zones.0: a zone data (rw) / no zone of that name
    to make a directory | zones: [{ name: n, hostPath: ./n, create: true }] | zones.0: to create /project/n / ro by the workspace
    where changes wait | cow: { upper: memory } | cow.upper: memory / disk (built-in)
    that changes wait for less | cow: { keep: 1s } | cow.keep: 1s / 7d (built-in)
    readonly: false under a ro grant | readonly: false | readonly: rw (readonly: false) / ro by the workspace
    a writable root under a ro grant | root: ".", readonly: false | readonly: mode rw on /project / ro by the workspace
    a subtree that leads out by a link | restrict: /link | restrict: /link / no zones
    the network | network: host | network: host / none (built-in)
    hosts | network: { allow: [a.example] } | network: restricted (a.example) / none (built-in)
    more memory | resources: { memory: 2G } | resources.memory: 2GiB / 512MiB (built-in)
    no limit | resources: { pids: none } | resources.pids: no limit / 256 (built-in)
    no sandbox | backend: process | backend: process / auto (built-in)
    a weaker filter | seccomp: off | seccomp: off / default (built-in)
    the caller's variables | env: { inherit: [GITHUB_TOKEN] } | env.inherit: GITHUB_TOKEN / none (built-in)
    credentials | credentials: [{ file: ~/.config/gh/hosts.yml }] | credentials: /home/ann/.config/gh/hosts.yml / none (built-in)
    the SSH agent | sshAgent: true | sshAgent: true / false (built-in)
    the protected paths | protect: [] | protect: no protected paths / 0 protected paths (built-in)
    a protected name | protectNot: [.vscode] | protectNot: .vscode / none (built-in)
    all protected names | protectNot: ["*"] | protectNot: * / none (built-in)
    limits that may be left out | bestEffort: true | bestEffort: true / false (built-in)
    a cgroup of its own | cgroupParent: /sys/fs/cgroup/x | cgroupParent: /sys/fs/cgroup/x / found automatically (built-in)
    a container that is kept | docker: { reuse: session } | docker.reuse: session / off (built-in)
    rw granted ro | --zone data=./d & zones: [{ name: data, mode: rw }] | zones.0: mode rw / ro by zone data (flag --zone)
    another host path | --zone data=./d & zones: [{ name: data, hostPath: /etc }] | zones.0: the host path /etc / /project/d by zone data (flag --zone)
    a zone of the workshop outside the project | shop zones: [{ name: e, hostPath: /etc }] | zones.0: the host path /etc (ro) / no zone that shows it
    a new zone next to those of the workshop | shop zones: [{ name: a, hostPath: ./a }] & zones: [{ name: b, hostPath: ./b }] | zones.0: the host path /project/b (ro) / no zone that shows it
    to make a directory under a copy-on-write grant | --cow . & zones: [{ name: n, hostPath: ./n, mode: cow, create: true }] | zones.0: to create /project/n / cow by zone zone#2.1 (flag --cow)
    sockets | --zone a=./a & zones: [{ name: a, sockets: true }] | zones.0: sockets / none by zone a (flag --zone)
    readonly: false under a ro zone | --ro ./d & readonly: false | readonly: rw (readonly: false) / ro by zone zone#2.1 (flag --ro)
    a subtree that is not there | --zone data=./d & --no-workspace true & restrict: /other | restrict: /other / /data
    a host beyond the list | --allow-host a.example & network: { allow: [a.example, b.example] } | network: restricted (a.example, b.example) / restricted (a.example) (flag --allow-host)
    the network, from a workshop | shop network: host | network: host / none (built-in)
    a longer time | --timeout 10s & resources: { timeout: 11s } | resources.timeout: 11s / 10s (flag --timeout)
    more than a flag leaves of what the workshop sets | --memory 1g & shop resources: { memory: 2g } & resources: { memory: 1500m } | resources.memory: 1.5GiB / 1GiB (flag --memory)
    more than the workshop sets | shop resources: { memory: 256m } & resources: { memory: 257m } | resources.memory: 257MiB / 256MiB (workshop shop.yaml:2)
    no sandbox, from a workshop | shop isolation: process | backend: process / auto (built-in)
    a weaker filter, from a workshop | shop seccomp: nested | seccomp: nested / default (built-in)
    another protected name | --protect-not .idea & protectNot: [.git] | protectNot: .git / .idea (flag --protect-not)
    a device | devices: [/dev/kvm] | devices: /dev/kvm / none (built-in)
    GPUs | gpu: true | gpu: true / false (built-in)
    more that zones grow by | --rw-size 10m & resources: { rwSize: 20m } | resources.rwSize: 20MiB / 10MiB (flag --rw-size)
    a hidden file | --hide .env* & hide: [none, x] | hide: none, x / .env* (flag --hide)
    another image | --image a:1 & image: "b:1" | image: b:1 / a:1 (flag --image)`
  test.each(inTable(REFUSED))('%s', (_title, of, escalation) => {
    const [line = '', ...others] = refusals(of)
    expect([line.replace(/^sandbox\./, ''), others]).toEqual([escalation, []])
  })

  test('the error names file, line, key, wanted, granted, and the flag that would grant it', () => {
    const { escalations } = narrowed({ worker: '\n  network: host,\n  resources: { memory: 2g }' })
    const error = escalationError(escalations)
    expect(error.code).toBe('POLICY_ESCALATION')
    expect(errorText(error)).toBe(
      '2 problems.\nw.worker:4: network: wanted host, granted none (built-in).\nw.worker:5: resources.memory: wanted 2GiB, granted 512MiB (built-in).',
    )
    expect(error.hint).toBe('to grant it: llm-do exec --net host --memory 2GiB ...')
  })
})

test('a worker may keep the list of hosts from growing, and not the other way round', () => {
  const request = (grants: string) => ({ worker: `network: { mode: restricted, grants: ${grants} }` })
  const grown = { 'allow-later': true }
  expect(narrowed({ ...request('later'), given: { net: 'restricted' } }).escalations).toHaveLength(1)
  expect(narrowed({ ...request('ask'), given: grown }).escalations).toHaveLength(1)
  expect(narrowed({ ...request('no'), given: grown }).policy.network.grants).toBeUndefined()
  expect(narrowed({ worker: 'network: restricted', given: grown }).policy.network.grants).toBe('later')
})

describe('what is granted is narrowed', () => {
  const SHOWN = `
    a directory of the workspace | zones: [{ name: d, hostPath: ./d }] | d ro /project/d
    a request by name | --zone data=./d:rw & zones: [{ name: data, mode: rw }] | data rw /project/d
    a request for less | --zone data=./d:rw & zones: [{ name: data }] | data ro /project/d
    a part of a granted zone | --zone data=./d:rw & zones: [{ name: data, mode: rw, hostPath: ./d/sub }] | data rw /project/d/sub
    a new zone inside a granted one | --rw ./d & zones: [{ name: sub, mode: rw, hostPath: ./d/sub }] | zone#2.1 rw /project/d, sub rw /project/d/sub
    memory | --tmpfs /s & zones: [{ name: s, mode: rw }] | zone#2.1 tmpfs -
    scratch space of its own | zones: [{ name: s, mode: tmpfs }] | s tmpfs -
    a default path in the project gives way | --zone data=./real:rw & zones: [{ name: data, mode: rw, hostPath: ./data }] | data rw /project/real
    zones of the workshop | shop zones: [{ name: out, mode: rw, hostPath: ./out }] | out rw /project/out
    a zone of the workshop, requested | shop mounts: ["./src:/workspace/src:rw"] & zones: [{ name: src }] | src ro /project/src
    readonly closes every zone | --rw ./a & --zone b=./b:rw & readonly: true | zone#2.1 ro /project/a, b ro /project/b
    restrict keeps one zone | --zone a=./a:rw & --zone b=./b & restrict: /a | a rw /project/a
    restrict cuts a zone down | --zone a=./a:rw & --zone b=./b & restrict: /a/sub | a rw /project/a/sub
    restrict cuts the workspace down | restrict: /notes | notes ro /project/notes
    restrict cuts it down next to fresh memory of the operator | --tmpfs /notes/memory & restrict: /notes | zone#2.1 tmpfs -, notes ro /project/notes
    restrict below the workspace | --rw .:/workspace & restrict: /workspace/notes | zone#2.1 rw /project/notes`
  test.each(inTable(SHOWN))('%s', (_title, of, shown) => {
    const result = narrowed(of)
    expect([result.escalations, zones(result).join(', ')]).toEqual([[], shown])
  })

  test('zones by the workshop’s leave', () => {
    const asked = {
      shop: 'zones: [{ name: a, hostPath: ./a }]',
      worker: 'zones: [{ name: b, mode: rw, hostPath: ./b }]',
    }
    const result = narrowed({ ...asked, context: { allowWorkerZones: true } })
    expect([result.escalations, zones(result)]).toEqual([[], ['a ro /project/a', 'b rw /project/b']])
  })

  test('restrict to a zone of memory leaves nothing of the workspace', () => {
    const { policy } = narrowed({ worker: 'zones: [{ name: s, mode: tmpfs, target: /other/s }], restrict: /other/s' })
    expect([policy.zones.map(({ target }) => target), policy.workspace]).toEqual([['/other/s'], 'none'])
  })

  const SRC = 'zones: [{ name: src, hostPath: ./src }]'
  test.each<[who: string, of: Case, workspace: Policy['workspace']]>([
    ['a worker', { worker: SRC }, 'none'],
    ['a workshop', { shop: SRC }, 'none'],
    ['a worker next to zones of the operator', { given: { ro: ['/data'] }, worker: SRC }, 'none'],
    ['a workshop that opens it', { shop: `readonly: false, ${SRC}` }, 'none'],
    ['nobody', { given: { ro: ['/data'] }, worker: 'tty: false' }, 'ro'],
    ['a worker, of memory alone', { worker: 'zones: [{ name: s, mode: tmpfs }]' }, 'ro'],
  ])('the workspace next to zones that are listed by %s', (_who, of, workspace) => {
    const { policy, escalations } = narrowed(of)
    expect([escalations, policy.workspace]).toEqual([[], workspace])
  })

  test.each([
    ['/notes', '/project/notes'],
    ['/data/in', '/data/in'],
  ])('restrict to %s leaves nothing else, whatever zones the operator has named', (subtree, hostPath) => {
    const { policy } = narrowed({ given: { ro: ['/data'] }, worker: `restrict: ${subtree}` })
    expect([policy.zones.map((zone) => zone.hostPath), policy.workspace]).toEqual([[hostPath], 'none'])
  })

  test.each(['/etc', './x/b'])('leave to add zones does not reach %s, which the operator closed', (hostPath) => {
    const worker = `zones: [{ name: e, mode: rw, hostPath: ${hostPath} }]`
    expect(refusals({ worker, context: { allowWorkerZones: true }, given: { zone: ['x=./x'] } })).toHaveLength(1)
  })

  test('a workshop may set limits that were not chosen, and not those of a profile named by the operator', () => {
    const shop = 'resources: { memory: 2g }'
    expect(narrowed({ shop }).policy.resources.memory).toBe(2 * 1024 ** 3)
    const grant = operator({}, { profile: { resources: { memory: '1g' } } })
    expect(narrowed({ shop, grant }).escalations).toEqual([])
    expect(narrowed({ shop, grant, isProfileChosen: true }).escalations).toHaveLength(1)
  })

  test('a workshop may open the workspace that is not closed', () => {
    expect(narrowed({ shop: 'workspace: rw' }).policy.workspace).toBe('rw')
    expect(narrowed({ shop: 'readonly: false' }).policy.workspace).toBe('rw')
    expect(refusals({ shop: 'zones: [{ name: d, mode: rw, hostPath: ./d }]', given: { ro: ['.'] } })).toHaveLength(1)
  })

  test('a workshop may name variables and credentials', () => {
    const { policy } = narrowed({ shop: 'env: { inherit: [CI] }, credentials: [{ file: ~/.netrc }]' })
    expect([policy.env.inherit, policy.credentials.map(({ file }) => file)]).toEqual([['CI'], [`${HOME}/.netrc`]])
  })

  test('a flag is the last word on what it names', () => {
    const given = { memory: '1g', net: 'none' }
    const { policy } = narrowed({ given, worker: 'resources: { memory: 256m, pids: 10 }' })
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
    const shop = 'resources: { memory: 2g, cpu: 4, pids: 100, timeout: none, tmp: 80m }'
    const { policy, escalations } = narrowed({ shop, grant })
    expect(escalations).toEqual([])
    const MIB = 1024 ** 2
    expect(policy.resources).toMatchObject({ memory: 256 * MIB, cpus: 1, pids: 10, timeout: 5000, tmp: 80 * MIB })
  })

  test('hosts are narrowed to those that are wished for', () => {
    const given = { 'allow-host': ['a.example', 'b.example'] }
    const grant = { ...operator(given), origins: {} }
    const [a, b] = [['a.example'], ['b.example']]
    const networkOf = (wish: string) => narrowed({ grant, worker: `network: ${wish}` }).policy.network
    expect(networkOf('{ allow: [a.example] }')).toEqual({ mode: 'restricted', allow: a, deny: [] })
    expect(networkOf('{ deny: [a.example] }')).toEqual({ mode: 'restricted', allow: b, deny: a })
    expect(networkOf('none').mode).toBe('none')
  })

  test('a variable of the operator keeps its value', () => {
    const worker = 'env: { set: { A: "2", B: "3", C: "4" } }'
    const { policy } = narrowed({ given: { env: ['A=1', 'B'] }, worker })
    expect(policy.env).toEqual({ inherit: ['B'], set: { A: '1', C: '4' } })
  })

  test('who set what is remembered', () => {
    const { policy } = narrowed({ worker: '\n  resources: { memory: 256m }' })
    const origin = { layer: 'worker', source: 'w.worker:4', key: 'resources.memory' }
    expect(policy.origins['resources.memory']?.at(-1)).toEqual(origin)
  })

  test('stricter words are taken over', () => {
    const words = 'seccomp: strict, backend: docker, image: "a:1", toolchains: off, pool: off, workspace: none'
    const { policy } = narrowed({ worker: `${words}, require: [net-none], protect: [x]` })
    expect(policy).toMatchObject({
      ...{ seccomp: 'strict', backend: 'docker', image: 'a:1', toolchains: 'off', pool: 'off', workspace: 'none' },
      ...{ require: ['net-none'], protect: ['x'], protectNot: [] },
    })
  })
})

test.each([
  ['a.example', ['a.example', 'a.example:443'], ['*.example']],
  ['a.example:443', ['a.example:443'], ['a.example']],
  ['*.example', ['a.example', '*.a.example', '*.example'], ['example', 'aexample']],
  ['*.a.example', ['b.a.example'], ['*.example']],
])('a grant of %s covers %j and not %j', (granted, covered, wider) => {
  expect([...covered, ...wider].filter((host) => coversHost(granted, host))).toEqual(covered)
})

test('paths are compared by whole names', () => {
  const worker = 'zones: [{ name: d, mode: rw, hostPath: /project/data-2 }]'
  expect(refusals({ given: { rw: ['./data'] }, worker })).toHaveLength(1)
})
