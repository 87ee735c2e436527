/** Every key of the schema changes the policy: one that did nothing would be a broken promise. */
import { describe, expect, test } from 'vitest'
import { KEY_ROWS } from '../../src/policy/key-table.ts'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import type { PolicyLayer } from '../../src/policy/layer.ts'
import { mergeLayers } from './layers.ts'

/** Keys that are about files of profiles and people, not about the policy: load.ts follows `extends`. */
const NOT_POLICY = ['extends', 'description']

const terminated = (more: object = {}): object => ({
  network: { terminate: true, credentials: [{ host: 'a.example', header: 'X-Key', from: 'env:KEY', ...more }] },
})

const zone = (more: object): object => ({ zones: [{ name: 'z', hostPath: '/h', ...more }] })
const credential = (more: object): object => ({ credentials: [{ file: '/f', target: '/t', ...more }] })
const tmpfs = (more: object): object => ({ zones: [{ name: 'z', mode: 'tmpfs', ...more }] })

/** Key -> the policy without it, and with it. */
const EFFECTS: Readonly<Record<string, readonly [without: object, with_: object]>> = {
  backend: [{}, { backend: 'docker' }],
  engine: [{}, { engine: 'bwrap' }],
  image: [{}, { image: 'alpine:3.20' }],
  runtime: [{}, { runtime: 'python' }],
  'docker.reuse': [{}, { docker: { reuse: 'session' } }],
  zones: [{}, zone({})],
  'zones[].name': [zone({}), zone({ name: 'y' })],
  'zones[].mode': [zone({}), zone({ mode: 'rw' })],
  'zones[].hostPath': [zone({}), zone({ hostPath: '/other' })],
  'zones[].target': [zone({}), zone({ target: '/t' })],
  'zones[].size': [tmpfs({}), tmpfs({ size: '1m' })],
  'zones[].create': [zone({}), zone({ create: true })],
  'zones[].optional': [zone({}), zone({ optional: true })],
  'zones[].sockets': [zone({}), zone({ sockets: true })],
  'zones[].kind': [zone({}), zone({ kind: 'socket' })],
  'zones[].secret': [zone({}), zone({ secret: true })],
  workspace: [{}, { workspace: 'rw' }],
  samePath: [{}, { samePath: true }],
  'cow.keep': [{ workspace: 'cow' }, { workspace: 'cow', cow: { keep: '1d' } }],
  'cow.size': [{ workspace: 'cow' }, { workspace: 'cow', cow: { size: '10m' } }],
  'cow.upper': [{ workspace: 'cow' }, { workspace: 'cow', cow: { upper: 'memory' } }],
  network: [{}, { network: 'host' }],
  'network.mode': [{}, { network: { mode: 'restricted' } }],
  'network.allow': [{}, { network: { allow: ['example.com'] } }],
  'network.deny': [{ network: { allow: ['a.example'] } }, { network: { allow: ['a.example'], deny: ['b.example'] } }],
  'network.local': [{}, { network: { local: [5432] } }],
  'network.publish': [{}, { network: { publish: ['8080:80'] } }],
  'network.hosts': [{}, { network: { hosts: { 'a.example': '192.0.2.7' } } }],
  'network.afterSecrets': [{}, { network: { afterSecrets: 'deny' } }],
  'network.proxy': [{ network: 'restricted' }, { network: { mode: 'restricted', proxy: 'on' } }],
  'network.terminate': [{}, { network: { terminate: true } }],
  'network.credentials': [{}, terminated()],
  'network.credentials[].host': [terminated(), terminated({ host: 'b.example' })],
  'network.credentials[].header': [terminated(), terminated({ header: 'X-Other' })],
  'network.credentials[].from': [terminated(), terminated({ from: 'file:/key' })],
  'network.credentials[].format': [terminated(), terminated({ format: 'Bearer {}' })],
  'network.requests': [{}, { network: { terminate: true, requests: ['GET a.example/*'] } }],
  ...Object.fromEntries(
    `memory 64m, swap 1m, cpus 1, pids 7, timeout 1s, cpuTime 1s, readBps 1m, writeBps 1m, readIops 7, writeIops 7, tmp 1m,
    run 1m, shm 1m, home 1m, output 7k`
      .split(/,\s+/)
      .map((words) => words.split(' '))
      .map(([key = '', value]) => [`resources.${key}`, [{}, { resources: { [key]: value } }] as const]),
  ),
  'env.inherit': [{}, { env: { inherit: ['CI'] } }],
  'env.set': [{}, { env: { set: { A: 'b' } } }],
  credentials: [{}, credential({})],
  'credentials[].file': [credential({}), credential({ file: '/g' })],
  'credentials[].target': [credential({}), credential({ target: '/u' })],
  'credentials[].optional': [credential({}), credential({ optional: true })],
  sshAgent: [{}, { sshAgent: true }],
  home: [{}, { home: 'agent' }],
  dieWithParent: [{}, { dieWithParent: true }],
  gitIdentity: [{}, { gitIdentity: true }],
  seccomp: [{}, { seccomp: 'strict' }],
  toolchains: [{}, { toolchains: 'off' }],
  selfInside: [{}, { selfInside: true }],
  workdir: [{}, { workdir: '/tmp' }],
  caches: [{}, { caches: ['npm'] }],
  protect: [{}, { protect: ['secret'] }],
  protectNot: [{}, { protectNot: ['.vscode'] }],
  require: [{}, { require: ['seccomp'] }],
  bestEffort: [{}, { bestEffort: true }],
  tty: [{}, { tty: true }],
  explain: [{}, { explain: true }],
  cgroupParent: [{}, { cgroupParent: '/sys/fs/cgroup/x' }],
  pool: [{}, { pool: 'off' }],
}

function policyOf(values: object): object {
  const layer: PolicyLayer = { layer: 'profile', source: 'p.yaml', directory: '/', values: values as SandboxInput }
  // Who set it is not what was set.
  const { origins: _, ...policy } = mergeLayers([layer], { profile: 'p', home: '/home/ann' })
  return policy
}

describe('A key of the schema', () => {
  test('is in the table below, each of them', () => {
    const keys = KEY_ROWS.map(({ key }) => key).filter((key) => !NOT_POLICY.includes(key))
    expect(Object.keys(EFFECTS).sort()).toEqual([...keys].sort())
  })

  test.each(Object.entries(EFFECTS))('changes the policy: %s', (_key, [without, with_]) => {
    expect(policyOf(with_)).not.toEqual(policyOf(without))
  })
})

describe('An old spelling', () => {
  test('is still read: resources.cpu, cpu-limit', () => {
    expect(policyOf({ resources: { cpu: '1' } })).toEqual(policyOf({ resources: { cpus: '1' } }))
    expect(policyOf({ require: ['cpu-limit'] })).toEqual(policyOf({ require: ['cpus-limit'] }))
  })

  test('is an unknown key where the new one is set, too, and is reported with its line', () => {
    expect(() => policyOf({ resources: { cpu: '1', cpus: '2' } })).toThrow('got the unknown key "cpu"')
    const layer = {
      layer: 'profile',
      source: 'p.yaml',
      directory: '/',
      locations: { 'resources.cpu': 'p.yaml:3' },
    } as const
    const values = { resources: { cpu: 'many' } } as SandboxInput
    expect(() => mergeLayers([{ ...layer, values }], { profile: 'p', home: '' })).toThrow('p.yaml:3: resources.cpus:')
  })
})
