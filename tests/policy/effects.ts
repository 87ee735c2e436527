/** A value of every key, and the policy without it: what the tests of effects and of backends go through. */

/** Keys that are about files of profiles and people, not about the policy: load.ts follows `extends`. */
export const NOT_POLICY = ['extends', 'description']

const terminated = (more: object = {}): object => ({
  network: { terminate: true, credentials: [{ host: 'a.example', header: 'X-Key', from: 'env:KEY', ...more }] },
})

const zone = (more: object): object => ({ zones: [{ name: 'z', hostPath: '/h', ...more }] })
const credential = (more: object): object => ({ credentials: [{ file: '/f', target: '/t', ...more }] })
const tmpfs = (more: object): object => ({ zones: [{ name: 'z', mode: 'tmpfs', ...more }] })

/** Key -> the policy without it, and with it. */
export const EFFECTS: Readonly<Record<string, readonly [without: object, with_: object]>> = {
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
  repository: [{}, { repository: true }],
  'cow.keep': [{ workspace: 'cow' }, { workspace: 'cow', cow: { keep: '1d' } }],
  'cow.size': [{ workspace: 'cow' }, { workspace: 'cow', cow: { size: '10m' } }],
  devices: [{}, { devices: ['/dev/kvm'] }],
  gpu: [{}, { gpu: true }],
  'resources.rwSize': [{ workspace: 'rw' }, { workspace: 'rw', resources: { rwSize: '10m' } }],
  'cow.upper': [{ workspace: 'cow' }, { workspace: 'cow', cow: { upper: 'memory' } }],
  network: [{}, { network: 'host' }],
  'network.mode': [{}, { network: { mode: 'restricted' } }],
  'network.allow': [{}, { network: { allow: ['example.com'] } }],
  'network.deny': [{ network: { allow: ['a.example'] } }, { network: { allow: ['a.example'], deny: ['b.example'] } }],
  'network.local': [{}, { network: { local: [5432] } }],
  'network.publish': [{}, { network: { publish: ['8080:80'] } }],
  'network.hosts': [{}, { network: { hosts: { 'a.example': '192.0.2.7' } } }],
  'network.afterSecrets': [{}, { network: { afterSecrets: 'deny' } }],
  'network.grants': [{ network: 'restricted' }, { network: { grants: 'later' } }],
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
  hide: [{}, { hide: ['.env*'] }],
  protect: [{}, { protect: ['secret'] }],
  protectNot: [{}, { protectNot: ['.vscode'] }],
  require: [{}, { require: ['seccomp'] }],
  bestEffort: [{}, { bestEffort: true }],
  tty: [{}, { tty: true }],
  explain: [{}, { explain: true }],
  cgroupParent: [{}, { cgroupParent: '/sys/fs/cgroup/x' }],
  pool: [{}, { pool: 'off' }],
}
