/**
 * A small file system in memory that answers as observePaths does: trees of captured hosts and of tables of hostile paths.
 * `tree` maps a path to what is there; directories above a listed path exist. What is not listed is missing.
 */
import { posix } from 'node:path'
import type { Permits } from '../../src/backends/backend.ts'
import { offersFor } from '../../src/backends/index.ts'
import type { DockerFact, HostFacts, PathFact, PathKind } from '../../src/host/facts.ts'
import type { MachineFacts } from '../../src/host/probe.ts'
import { followUpPaths, pathsNamedBy } from '../../src/plan/paths-to-inspect.ts'
import type { Plan } from '../../src/plan/plan.ts'
import type { Request } from '../../src/plan/request.ts'
import { resolvePlan } from '../../src/plan/resolve-plan.ts'
import { needsOf } from '../../src/policy/needs.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { Zone } from '../../src/policy/values.ts'
import { SHIPPED_WAYS } from '../../src/seccomp/filter.ts'
import type { MountWay } from '../../src/seccomp/ways.ts'
import { refused } from '../support/refused.ts'

/** `-> TEXT` is a symbolic link. */
export type Tree = Readonly<Record<string, string>>

const MOST_LINKS = 40

interface ResolvedPath {
  readonly real: string
  readonly kind: PathKind
}

/** Follows a path as the kernel does. */
function follow(tree: Tree, path: string, links = 0): ResolvedPath {
  if (links > MOST_LINKS) return { real: path, kind: 'loop' }
  const words = path.split('/').filter(Boolean)
  for (const index of words.keys()) {
    const here = `/${words.slice(0, index + 1).join('/')}`
    const entry = tree[here]
    if (entry?.startsWith('-> ')) {
      const rest = words.slice(index + 1)
      const next = posix.resolve(posix.dirname(here), entry.slice(3), ...rest)
      const resolved = follow(tree, next, links + 1)
      return resolved.kind === 'loop' ? { real: path, kind: 'loop' } : resolved
    }
    const last = index === words.length - 1
    if (!last && entry === 'denied') return { real: path, kind: 'denied' }
    if (!last && entry !== undefined && entry !== 'directory') return { real: path, kind: 'missing' }
  }
  const real = `/${words.join('/')}`
  return { real, kind: kindAt(tree, real) }
}

function kindAt(tree: Tree, path: string): PathKind {
  const entry = tree[path]
  if (entry !== undefined) return entry.split(' ')[0] as PathKind
  const isParent = path === '/' || Object.keys(tree).some((known) => known.startsWith(`${path}/`))
  return isParent ? 'directory' : 'missing'
}

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** The plan asks for the owner of a link: in a home, the caller's. */
function linkOf(link: string, own: string, { uid, gid }: Owner): Pick<PathFact, 'link' | 'identity'> {
  const isHome = own.startsWith('/home/') || own.startsWith('/root')
  return { link, identity: `1:1:41471:${isHome ? `${uid}:${gid}` : '0:0'}>` }
}

/** `device DRIVER MAJOR:MINOR [MODE]`, or `device block MAJOR:MINOR`. */
function deviceAt(entry = ''): Partial<PathFact> {
  const [, driver = '', numbers = '', mode = '666'] = entry.split(' ')
  if (!entry.startsWith('device ')) return {}
  const [major = 0, minor = 0] = numbers.split(':').map(Number)
  const type = driver === 'block' ? 'block' : 'char'
  return {
    mode: Number.parseInt(mode, 8),
    device: { type, number: major * 256 + minor, major, minor, driver: type === 'block' ? '' : driver },
  }
}

/** The answer of observePaths about these paths in this tree. */
export function observePaths(tree: Tree, paths: readonly string[], owner: Owner): Record<string, PathFact> {
  const numbers = new Map(
    Object.keys(tree)
      .sort()
      .map((path, index) => [path, index + 100]),
  )
  return Object.fromEntries(
    paths.map((path) => {
      const parent = path === '/' ? '/' : follow(tree, posix.dirname(path)).real
      const own = path === '/' ? '/' : posix.join(parent, posix.basename(path))
      const { real, kind } = follow(tree, path)
      const exists = !['missing', 'loop', 'denied'].includes(kind)
      const isHome = real.startsWith('/home/') || real.startsWith('/root')
      const entry = tree[own]
      return [
        path,
        {
          path,
          kind,
          real: exists ? real : own,
          dev: exists ? 1 : 0,
          ino: exists ? (numbers.get(real) ?? 2) : 0,
          uid: exists && isHome ? owner.uid : 0,
          gid: exists && isHome ? owner.gid : 0,
          mode: exists ? 0o755 : 0,
          ...deviceAt(tree[real]),
          ...(entry?.startsWith('-> ') ? linkOf(entry.slice(3), own, owner) : {}),
        },
      ]
    }),
  )
}

/** The smallest policy: every default filled in, no zones, no limits. */
export const PLAIN_POLICY: Policy = {
  ...{ profile: 'default', backend: 'auto', engine: 'auto', docker: { reuse: 'off' } },
  ...{ zones: [], hide: [], devices: [], gpu: false, workspace: 'ro', samePath: false, repository: false },
  ...{ explain: false, caches: [], home: null, dieWithParent: false, gitIdentity: false, selfInside: false },
  cow: { keep: 604_800_000, size: null, upper: 'disk' },
  network: { mode: 'none', allow: [], deny: [] },
  resources: {
    ...{ memory: 536_870_912, swap: 0, cpus: 2, pids: 256, timeout: 30_000, cpuTime: null, output: 1_048_576 },
    ...{ readBps: null, writeBps: null, readIops: null, writeIops: null, rwSize: null },
    ...{ tmp: 52_428_800, run: 10_485_760, shm: 67_108_864, home: 67_108_864 },
  },
  env: { inherit: [], set: {} },
  ...{ credentials: [], sshAgent: false, seccomp: 'default', toolchains: 'auto' },
  ...{ protect: [], protectNot: [], protectFiles: [], require: [], bestEffort: false, tty: false, pool: 'auto' },
  origins: {},
}

/** A zone as `--ro SRC:TARGET` gives it. */
export function zone(fields: Partial<Zone> & Pick<Zone, 'mode'>): Zone {
  const source = `--${fields.mode}`
  return {
    name: fields.hostPath ?? fields.target ?? 'zone',
    create: false,
    optional: false,
    sockets: false,
    origin: { layer: 'flag', source, key: 'zones' },
    ...fields,
  }
}

const shownAs =
  (mode: 'ro' | 'rw' | 'cow') =>
  (hostPath: string, target?: string, more: Partial<Zone> = {}): Zone =>
    zone({ mode, hostPath, ...(target === undefined ? {} : { target }), ...more })
export const ro = shownAs('ro')
export const rw = shownAs('rw')
export const cow = shownAs('cow')
export const tmpfs = (target: string, size = 4096): Zone => zone({ mode: 'tmpfs', target, size })

export const PLAIN_REQUEST: Request = {
  ...{ command: ['true'], cwd: '/home/ann/project', home: '/home/ann', homes: ['/home/ann'] },
  ...{ path: ['/usr/local/bin', '/usr/bin', '/bin'], environmentNames: [], locale: {} },
  ...{ captured: false, secretDirectories: [] },
}

/** A machine where everything works. */
export const GOOD_MACHINE: MachineFacts = {
  ...{ platform: 'linux', arch: 'x64', kernel: '6.1.0', bootId: '00000000-0000-0000-0000-000000000000' },
  ...{ uid: 1000, gid: 1000, capabilities: '0000000000000000', cpus: 4 },
  nativePrograms: { ok: true },
  bwrap: { path: '/usr/bin/bwrap', version: '0.8.0', setuid: false },
  engines: { bwrap: { ok: true }, unshare: { ok: true } },
  landlockAbi: 2,
  cgroup: {
    ...{ rung: 'delegated', parent: '/sys/fs/cgroup/user.slice/llm-do', controllers: ['cpu', 'memory', 'pids'] },
    ...{ lacking: '', fix: '' },
  },
  surroundings: { filtered: false, settings: {} },
}

/** A daemon that root runs on this machine. */
export const DOCKER: DockerFact = {
  ...{ program: 'docker', path: '/usr/bin/docker', clientVersion: '27.0', server: { ok: true }, serverVersion: '27.0' },
  ...{ rootless: false, limits: ['memory', 'swap', 'cpus', 'pids'], remote: false },
}

/** The least that a Debian with merged /usr has, and a project in a home directory. */
export const PLAIN_TREE: Tree = {
  ...{ '/bin': '-> usr/bin', '/sbin': '-> usr/sbin', '/lib': '-> usr/lib', '/lib64': '-> usr/lib64' },
  ...{ '/usr': 'directory', '/usr/sbin': 'directory', '/usr/local/bin': 'directory', '/usr/lib': 'directory' },
  ...{ '/usr/lib64': 'directory', '/usr/bin/true': 'file', '/etc/ld.so.cache': 'file', '/etc/ssl/certs': 'directory' },
  ...{ '/etc/resolv.conf': 'file', '/etc/passwd': 'file', '/home/ann/project': 'directory' },
  ...{ '/home/ann/project/data': 'directory', '/home/ann/project/notes.txt': 'file' },
}

export interface World {
  readonly tree?: Tree
  readonly machine?: Partial<MachineFacts>
  readonly policy?: Partial<Policy>
  readonly request?: Partial<Request>
  readonly permits?: Partial<Permits>
  /** Text of a filter file. */
  readonly mountWays?: readonly MountWay[]
  /** Observations that differ from the tree, since they were made at another moment. */
  readonly otherwise?: Readonly<Record<string, Partial<PathFact>>>
}

export interface Planned {
  readonly policy: Policy
  readonly request: Request
  readonly facts: HostFacts
}

/** Asks and looks as exec does, in this world. */
export function factsOf({
  tree = PLAIN_TREE,
  machine = {},
  policy = {},
  request = {},
  otherwise = {},
}: World): Planned {
  const wanted = { ...PLAIN_POLICY, ...policy }
  const full = { ...PLAIN_REQUEST, ...request }
  const whole = { ...GOOD_MACHINE, ...machine }
  const rounds = (seen: Record<string, PathFact>): Record<string, PathFact> => {
    const next = followUpPaths(wanted, full, seen)
    return next.length === 0 ? seen : rounds({ ...seen, ...observePaths(tree, next, whole) })
  }
  const paths = rounds(observePaths(tree, pathsNamedBy(wanted, full), whole))
  const seen = Object.entries(paths).map(([path, fact]) => [path, { ...fact, ...otherwise[path] }])
  return { policy: wanted, request: full, facts: { ...whole, paths: Object.fromEntries(seen) } }
}

/** The plan of this world, by all three steps. */
export function planIn(world: World): Plan {
  const { policy, request, facts } = factsOf(world)
  return resolvePlan({
    policy,
    facts,
    request,
    needs: needsOf(policy, request.command),
    offers: offersFor({ policy, facts, permits: { unsandboxed: false, docker: true, ...world.permits } }),
    seccompFilter: () => '',
    mountWays: typeof policy.seccomp === 'string' ? SHIPPED_WAYS[policy.seccomp] : (world.mountWays ?? []),
  })
}

/** The error of a world that must have no plan. */
export const refusal = (world: World) => refused(() => planIn(world))
