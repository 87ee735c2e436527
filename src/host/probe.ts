/**
 * Observes the machine: what it is, which programs are there, which walls can really be built.
 * Edge: file system (/proc, marks of containers), processes (by program.ts and the observers of backends), operating system numbers.
 *
 * Costs come in three sizes. Reading /proc and searching PATH is done every time. Starting a real sandbox with each engine and asking for
 * versions takes tens of milliseconds. What worked is remembered for the boot, what failed never is: it may have been chance, and a
 * repair is seen at once. Who is about to run a command anyway may believe in an engine instead of trying it: the run will tell.
 * A container daemon takes a quarter of a second and may come and go: its backend's observer runs only when it is needed, and what it
 * remembers is believed by runs alone, which find out when it is gone.
 */
import { existsSync, statSync } from 'node:fs'
import { arch, availableParallelism, platform, release } from 'node:os'
import { delimiter, join } from 'node:path'
import { isInsideOwn, OUR_INIT } from '../os/inside-own.ts'
import { orElse, textOf } from '../os/look.ts'
import { nativeDirectory } from '../os/native-programs.ts'
import { processorsIn, statusLine } from '../os/proc-status.ts'
import { type CacheInputs, recall, recallOrFind, remember, type Sought } from './boot-cache.ts'
import {
  type CgroupFact,
  type HostFacts,
  type NetworkWay,
  NOT_TRIED,
  type Probe,
  type ProgramFact,
  type Surroundings,
} from './facts.ts'
import { linkText } from './paths.ts'
import { EXPLAINING_SETTINGS, OWN_SANDBOX } from './probe-failures.ts'
import { type FoundProgram, findProgram, versionOf } from './program.ts'

/** @returns facts to add; never throws for a program that is missing or fails */
export type Observer = (question: ObserverQuestion) => Promise<Partial<HostFacts>>

export interface ObserverQuestion {
  /** The caller's environment. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Finds a program on the caller's PATH, where no command could have planted it. */
  readonly search: (name: string) => FoundProgram | undefined
  /**
   * The findings of an earlier run, by this version, boot, user and surroundings; a caller that runs no command looks again.
   * @param words other facts that it depends on
   */
  readonly remembered: <V>(words: readonly string[], sought: Sought<V>) => Promise<V>
}

/** Facts of the machine; the paths of a policy are looked at apart, see paths.ts. */
export type MachineFacts = Omit<HostFacts, 'paths'>

export type Engine = 'bwrap' | 'unshare'

export interface HostInputs {
  /** Engines are looked at: a backend that uses one may be chosen. */
  readonly wantsEngines: boolean
  /** Other questions about the machine; each adds its own facts. */
  readonly observers: readonly Observer[]
  /** `auto`: the first that works is enough. */
  readonly engine: Engine | 'auto' | 'all'
  /** The engine of our own need not be tried: a run that is about to be will show whether it works. */
  readonly believe: boolean
  /** The caller's environment: PATH, LLM_DO_DOCKER, and what a container engine needs to find its daemon. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Canonical directories whose programs are not trusted: the caller's directory and the writable zones. */
  readonly notBelow: readonly string[]
  /** Our own version; what another version found out is not believed. */
  readonly version: string
  /** Where results are remembered; undefined = nowhere. */
  readonly cache: string | undefined
  /** Whether the native programs are there and trustworthy. `stamp` changes when they do. */
  readonly nativePrograms: () => { readonly probe: Probe; readonly stamp: string }
  /** Starts a real empty sandbox. */
  readonly probeEngine: (engine: Engine, bwrap?: string) => Promise<Probe>
  /** A network that is restricted by name is looked at: the policy has one. */
  readonly wantsNetwork?: boolean
  /** Starts a real empty sandbox with one. */
  readonly probeNetwork?: (by: NetworkWay, engine: Engine, bwrap?: string) => Promise<Probe>
  readonly landlockAbi: () => Promise<number>
  readonly cgroup: () => Promise<CgroupFact>
}

/** Looks at the machine; what cannot be found out is an absent fact or a failed probe, never an exception. */
export async function observeHost(inputs: HostInputs): Promise<MachineFacts> {
  const own = observeSelf()
  const isInside = isInsideOwn()
  const path = (inputs.env['PATH'] ?? '').split(delimiter)
  const search = (name: string): FoundProgram | undefined =>
    findProgram({ name, path, notBelow: inputs.notBelow, uid: own.uid })
  const remembered: ObserverQuestion['remembered'] = (words, sought) =>
    recallOrFind(inputs.believe ? factsOf(words, inputs, own) : undefined, sought)
  const [cgroup, engines, ...others] = await Promise.all([
    inputs.cgroup(),
    // Nothing is to be believed there: it is known to fail.
    observeEngines({ inputs: { ...inputs, believe: inputs.believe && !isInside }, own, search }),
    ...inputs.observers.map((observe) => observe({ env: inputs.env, search, remembered })),
  ])
  return {
    platform: platform() as HostFacts['platform'],
    arch: arch() as HostFacts['arch'],
    kernel: release(),
    bootId: own.bootId,
    uid: own.uid,
    gid: own.gid,
    capabilities: own.capabilities,
    cpus: own.cpus,
    ...(own.cpuList === '' ? {} : { cpuList: own.cpuList }),
    ...engines,
    cgroup,
    ...Object.assign({}, ...others),
    surroundings: { ...own.surroundings, ...placeOf(own, engines.engines) },
    ...(isInside && textOf('/proc/self/status') === '' ? { hidesProcesses: true } : {}),
    ...(isInside && inputs.wantsEngines && !isAnyWorking(engines.engines) ? { isInsideOwn: true } : {}),
  }
}

const isAnyWorking = (engines: EngineFacts['engines']): boolean => Object.values(engines).some(({ ok }) => ok)

/** Why namespaces may be refused although every setting allows them: looked at only where no engine works. */
function placeOf({ uid, gid }: Self, engines: EngineFacts['engines']): Pick<Surroundings, 'chroot' | 'unmapped'> {
  if (platform() !== 'linux' || isAnyWorking(engines)) return {}
  const isMapped = hasId('uid_map', uid) && hasId('gid_map', gid)
  return { ...(isChroot() ? { chroot: true } : {}), ...(isMapped ? {} : { unmapped: true }) }
}

/** Lines of an id map: first id inside, first one outside, how many. A map that is hidden says nothing. */
function hasId(map: string, id: number): boolean {
  const file = `/proc/self/${map}`
  if (!existsSync(file)) return true
  return textOf(file)
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .some(([first = Number.NaN, , count = 0]) => id >= first && id < first + count)
}

/** In the same mount namespace PID 1 has its root. Only root may read that, but any user sees that `/` is not a mount point. */
function isChroot(): boolean {
  const mounts = textOf('/proc/self/mountinfo').split('\n')
  if (mounts.length > 1 && !mounts.some((line) => line.split(' ')[4] === '/')) return true
  const [own, first] = ['self', '1'].map((process) => [
    linkText(`/proc/${process}/ns/mnt`),
    identityOf(`/proc/${process}/root/`),
  ])
  return own?.[0] !== '' && own?.[0] === first?.[0] && first?.[1] !== '' && own?.[1] !== first?.[1]
}

/** Empty where it cannot be looked at. */
function identityOf(path: string): string {
  return orElse('', () => {
    const { dev, ino } = statSync(path)
    return `${dev}:${ino}`
  })
}

interface Self extends Pick<HostFacts, 'uid' | 'gid' | 'bootId' | 'capabilities' | 'cpus'> {
  /** Empty where it is not known. */
  readonly cpuList: string
  readonly surroundings: Surroundings
  /** Facts that decide which namespaces this process may make, in addition to the programs: part of the key of the cache. */
  readonly stamp: string
}

function observeSelf(): Self {
  const [status, bootId, cgroup, label] = [
    textOf('/proc/self/status'),
    textOf('/proc/sys/kernel/random/boot_id'),
    textOf('/proc/self/cgroup'),
    textOf('/proc/self/attr/current'),
  ]
  const rooms = ['user', 'mnt', 'pid'].map((name) => linkText(`/proc/self/ns/${name}`))
  const uid = process.getuid?.() ?? -1
  const cpuList = statusLine(status, 'Cpus_allowed_list')
  const limits = ['CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp'].map((name) => statusLine(status, name))
  return {
    uid,
    gid: process.getgid?.() ?? -1,
    bootId: bootId.trim(),
    capabilities: statusLine(status, 'CapEff'),
    cpus: processorsIn(cpuList).length || availableParallelism(),
    cpuList,
    surroundings: observeSurroundings(statusLine(status, 'Seccomp') === '2'),
    stamp: [bootId.trim(), uid, cgroup, label, ...rooms, ...limits].join('\n'),
  }
}

function observeSurroundings(filtered: boolean): Surroundings {
  const marks = [
    [OUR_INIT, OWN_SANDBOX],
    ['/.dockerenv', 'docker'],
    ['/run/.containerenv', 'podman'],
    ['/var/run/secrets/kubernetes.io', 'kubernetes'],
  ] as const
  const container = marks.find(([path]) => existsSync(path))?.[1]
  const settings = EXPLAINING_SETTINGS.map(
    (name) => [name, textOf(`/proc/sys/${name.replaceAll('.', '/')}`).trim()] as const,
  )
  const appArmorProfile = join(nativeDirectory(), '../apparmor')
  return {
    ...(container === undefined ? {} : { container }),
    filtered,
    ...(existsSync(appArmorProfile) ? { appArmorProfile } : {}),
    settings: Object.fromEntries(settings.filter(([, value]) => value !== '')),
  }
}

interface EngineInputs {
  readonly inputs: HostInputs
  readonly own: Self
  readonly search: (name: string) => FoundProgram | undefined
}

type EngineFacts = Pick<
  HostFacts,
  'nativePrograms' | 'bwrap' | 'engines' | 'untried' | 'restrictedNetwork' | 'landlockAbi'
>

async function observeEngines({ inputs, own, search }: EngineInputs): Promise<EngineFacts> {
  if (!inputs.wantsEngines || platform() !== 'linux') {
    return { nativePrograms: NOT_TRIED, engines: { bwrap: NOT_TRIED, unshare: NOT_TRIED }, landlockAbi: 0 }
  }
  const [nativePrograms, bwrap] = [inputs.nativePrograms(), search('bwrap')]
  const cache = factsOf(['engines', nativePrograms.stamp, bwrap?.path, bwrap?.stamp], inputs, own)
  const known = (cache === undefined ? undefined : asProven(recall(cache), bwrap)) ?? {}
  const engines = await tryEngines({ inputs, nativePrograms: nativePrograms.probe, bwrap, known })
  const landlockAbi = known.landlockAbi ?? (nativePrograms.probe.ok ? await inputs.landlockAbi() : 0)
  const facts: EngineFacts = {
    nativePrograms: nativePrograms.probe,
    ...engines,
    ...(await lookAtNetwork(inputs, engines, known)),
    landlockAbi,
  }
  const proven = { ...known, ...provenBy(facts) }
  const isNew = Object.keys(proven).length > Object.keys(known).length
  if (cache !== undefined && nativePrograms.probe.ok && isNew) remember(cache, proven)
  return facts
}

/** Where something of this version and these surroundings is remembered. @param words what it depends on besides */
function factsOf(
  [what, ...words]: readonly (string | undefined)[],
  { cache: directory, version }: HostInputs,
  { stamp, uid }: Self,
): CacheInputs | undefined {
  return directory === undefined ? undefined : { directory, uid, key: [what, version, stamp, ...words].join('\n') }
}

/** Even a run that believes in its engine asks: its plan says which way it is. */
async function lookAtNetwork(
  { wantsNetwork = false, probeNetwork }: HostInputs,
  { engines, bwrap }: Engines,
  known: Proven,
): Promise<Pick<EngineFacts, 'restrictedNetwork'>> {
  const engine = (['unshare', 'bwrap'] as const).find((name) => engines[name].ok)
  if (!wantsNetwork || probeNetwork === undefined || engine === undefined) return {}
  if (known.nftables === true) return { restrictedNetwork: { ok: true, by: 'nftables', lacking: '' } }
  const nftables = await probeNetwork('nftables', engine, bwrap?.path)
  if (nftables.ok) return { restrictedNetwork: { ok: true, by: 'nftables', lacking: '' } }
  const listeners = await probeNetwork('listeners', engine, bwrap?.path)
  return { restrictedNetwork: listeners.ok ? { ok: true, by: 'listeners', lacking: nftables.message } : listeners }
}

/** Only successes are remembered. */
interface Proven {
  readonly landlockAbi?: number
  readonly unshare?: true
  readonly nftables?: true
  readonly bwrap?: ProgramFact
}

function provenBy({ landlockAbi, untried, engines, bwrap, restrictedNetwork: network }: EngineFacts): Proven {
  const works = (engine: Engine): boolean => engines[engine].ok && untried !== engine
  return {
    landlockAbi,
    ...(works('unshare') && { unshare: true }),
    ...(works('bwrap') && bwrap && { bwrap }),
    ...(network?.ok === true && network.by === 'nftables' && { nftables: true }),
  }
}

interface Trial {
  readonly inputs: HostInputs
  readonly nativePrograms: Probe
  readonly bwrap: FoundProgram | undefined
  readonly known: Proven
}

type Engines = Pick<EngineFacts, 'bwrap' | 'engines' | 'untried'>

/** One after the other: two sandboxes starting at once on a small machine only make each other slow. */
async function tryEngines(trial: Trial): Promise<Engines> {
  const { engine, believe } = trial.inputs
  const isBwrapKnown = trial.known.bwrap !== undefined && trial.known.unshare === undefined
  // Where bwrap is what is known to work, unshare was tried and did not.
  const isUnshareMeant = engine === 'auto' ? !(believe && isBwrapKnown) : engine !== 'bwrap'
  const unshare = isUnshareMeant ? await tryUnshare(trial) : NOT_TRIED
  const isBelieved = believe && trial.inputs.wantsNetwork !== true
  const untried = isBelieved && unshare.ok && trial.known.unshare === undefined ? { untried: 'unshare' as const } : {}
  if (engine === 'unshare' || (engine === 'auto' && unshare.ok))
    return { engines: { unshare, bwrap: NOT_TRIED }, ...untried }
  const bwrap = trial.known.bwrap ?? (await versionOf(trial.bwrap))
  return { ...(bwrap && { bwrap }), engines: { unshare, bwrap: await tryBwrap(trial) }, ...untried }
}

/** It is a part of the native programs. */
async function tryUnshare({ inputs, nativePrograms, known }: Trial): Promise<Probe> {
  if (known.unshare === true) return { ok: true }
  if (!nativePrograms.ok) return nativePrograms
  // The next probes run in a sandbox, so they need an engine that works.
  return inputs.believe && inputs.wantsNetwork !== true ? { ok: true } : inputs.probeEngine('unshare')
}

/** A setuid program is not even started: it would run with rights that no user here is meant to have. */
async function tryBwrap({ inputs, nativePrograms, bwrap, known }: Trial): Promise<Probe> {
  if (known.bwrap !== undefined) return { ok: true }
  if (bwrap === undefined) return { ok: false, step: 'search', errno: 'ENOENT', message: 'no bwrap on PATH' }
  if (bwrap.setuid) return { ok: false, step: 'check', errno: '', message: `${bwrap.path} is setuid` }
  return nativePrograms.ok ? inputs.probeEngine('bwrap', bwrap.path) : nativePrograms
}

/** The file was written by this very version (it is in the key); its shape is still checked, since files can rot. */
function asProven(value: unknown, found: FoundProgram | undefined): Proven | undefined {
  const { landlockAbi, bwrap } = (value ?? {}) as Partial<Proven>
  // The program that is started is the one that was found just now, whatever is remembered of it.
  const isFound = bwrap === undefined || bwrap.path === found?.path
  return typeof landlockAbi === 'number' && isFound ? (value as Proven) : undefined
}
