/**
 * The sum of all layers. How each key adds up is one row of ROWS; nothing here touches the world.
 * Rows see layers from the lowest authority to the highest.
 */
import path from 'node:path'
import { quoteText } from '../unit.ts'
import { BUILT_IN, ZONE_SIZE } from './built-in.ts'
import { type CheckedLayer, checkLayer } from './check.ts'
import { invalidPolicy } from './invalid.ts'
import { headOf, LAYER_ORDER, type PolicyLayer, placeOf } from './layer.ts'
import type {
  BackendChoice,
  Credential,
  EngineChoice,
  EnvironmentPolicy,
  Need,
  NetworkPolicy,
  Origin,
  Policy,
  Resources,
  SeccompChoice,
  Zone,
  ZoneMode,
} from './policy.ts'
import type { SandboxSaid, ZoneSaid } from './schema.ts'

/** Values by the dotted key that a person would write. */
interface Merged {
  readonly backend: BackendChoice
  readonly engine: EngineChoice
  readonly image: string
  readonly runtime: string
  readonly 'docker.reuse': 'off' | 'session'
  readonly zones: readonly DraftZone[]
  readonly workspace: 'ro' | 'rw' | 'none'
  readonly samePath: boolean
  readonly network: NetworkPolicy
  readonly 'resources.memory': number | null
  readonly 'resources.swap': number
  readonly 'resources.cpu': number | null
  readonly 'resources.pids': number | null
  readonly 'resources.timeout': number | null
  readonly 'resources.cpuTime': number | null
  readonly 'resources.tmp': number
  readonly 'resources.run': number
  readonly 'resources.shm': number
  readonly 'resources.home': number
  readonly 'resources.output': number | null
  readonly env: EnvironmentPolicy
  readonly credentials: readonly Credential[]
  readonly sshAgent: boolean
  readonly seccomp: SeccompChoice
  readonly toolchains: 'auto' | 'off'
  readonly workdir: string
  readonly protect: readonly string[]
  readonly require: readonly Need[]
  readonly bestEffort: boolean
  readonly tty: boolean
  readonly cgroupParent: string
  readonly pool: 'auto' | 'off'
}

/** A zone as far as it is known while layers are added. */
interface DraftZone extends Omit<ZoneSaid, 'name'> {
  readonly name: string
  readonly named: boolean
  readonly origin: Origin
  /** Where it is said, for messages. */
  readonly head: string
}

/** One layer's word on one key, and what it depends on beside the value. */
interface Voice {
  readonly said: SandboxSaid
  readonly layer: PolicyLayer
  readonly home: string
}

interface Row<V> {
  /** What this layer says; undefined = nothing. */
  readonly hears: (voice: Voice) => V | undefined
  /** Adds a higher layer's word to the sum of those below it. */
  readonly adds: (below: V | undefined, above: V) => V
  /** The dotted keys for which the layer counts as having spoken; default: the row's own. */
  readonly speaksFor?: (value: V) => readonly string[]
}

const replace = <V>(_below: V | undefined, above: V): V => above
const unite = <V>(below: readonly V[] | undefined, above: readonly V[]): readonly V[] => [
  ...new Set([...(below ?? []), ...above]),
]
/** An empty list is a word of its own: take away what is there. */
const uniteOrClear = <V>(below: readonly V[] | undefined, above: readonly V[]): readonly V[] =>
  above.length === 0 ? [] : unite(below, above)

/** A key whose highest word counts. */
function scalar<V>(hears: (said: SandboxSaid) => V | undefined): Row<V> {
  return { hears: ({ said }) => hears(said), adds: replace }
}

type ResourcesSaid = NonNullable<SandboxSaid['resources']>
const resource = <K extends keyof ResourcesSaid>(key: K): Row<Exclude<ResourcesSaid[K], undefined>> =>
  scalar((said) => said.resources?.[key] as Exclude<ResourcesSaid[K], undefined> | undefined)

/** Key -> how its words add up. The order is the order of the manual. */
const ROWS: { readonly [K in keyof Merged]: Row<Merged[K]> } = {
  backend: scalar((said) => said.backend?.backend),
  engine: scalar((said) => said.engine ?? said.backend?.engine),
  image: scalar((said) => said.image),
  runtime: scalar<string>((said) => said.runtime),
  'docker.reuse': scalar((said) => said.docker?.reuse),
  zones: {
    hears: draftZones,
    adds: addZones,
    speaksFor: (zones) => ['zones', ...zones.map((zone) => `zones.${zone.name}`)],
  },
  workspace: scalar((said) => said.workspace),
  samePath: scalar((said) => said.samePath),
  network: { hears: hearNetwork, adds: addNetwork, speaksFor: networkKeys },
  'resources.memory': resource('memory'),
  'resources.swap': resource('swap'),
  'resources.cpu': resource('cpu'),
  'resources.pids': resource('pids'),
  'resources.timeout': resource('timeout'),
  'resources.cpuTime': resource('cpuTime'),
  'resources.tmp': resource('tmp'),
  'resources.run': resource('run'),
  'resources.shm': resource('shm'),
  'resources.home': resource('home'),
  'resources.output': resource('output'),
  env: { hears: hearEnvironment, adds: addEnvironment, speaksFor: environmentKeys },
  credentials: { hears: hearCredentials, adds: addCredentials },
  sshAgent: scalar((said) => said.sshAgent),
  seccomp: { hears: hearSeccomp, adds: replace },
  toolchains: scalar((said) => said.toolchains),
  workdir: scalar((said) => said.workdir),
  protect: { hears: ({ said }) => said.protect, adds: uniteOrClear },
  require: { hears: ({ said }) => said.require, adds: unite },
  bestEffort: scalar((said) => said.bestEffort),
  tty: scalar((said) => said.tty),
  cgroupParent: scalar((said) => said.cgroupParent),
  pool: scalar((said) => said.pool),
}

/** Every dotted key that `--plan --why` can be asked about, zones and variables apart. */
export const POLICY_KEYS: readonly string[] = Object.keys(ROWS)

export interface MergeOptions {
  /** Name or path of the profile that was asked for, for the result. */
  readonly profile: string
  /** The caller's home directory, absolute, which `~/` stands for; empty when there is none. */
  readonly home: string
  /** Policy and worker files in use, absolute; they stay read-only wherever a rw zone would show them. */
  readonly protectFiles?: readonly string[]
}

/**
 * Adds up all layers over the built-in one. Layers of equal rank keep their order, base first.
 * @throws SandboxError POLICY_INVALID with every problem of every layer
 */
export function mergePolicies(layers: readonly PolicyLayer[], options: MergeOptions): Policy {
  const checked = [BUILT_IN, ...inOrder(layers)].map(checkLayer)
  const voices = checked.map(({ said, layer }) => ({ said, layer, home: options.home }))
  const merged = Object.fromEntries(
    Object.entries(ROWS).map(([key, row]) => [key, sumOf(row as Row<unknown>, voices)]),
  ) as unknown as Merged
  const problems = [...checked.flatMap((layer) => layer.problems), ...contradictions({ checked, merged, options })]
  if (problems.length > 0) throw invalidPolicy(problems)
  return policyOf({ merged, origins: originsOf(voices), options })
}

function inOrder(layers: readonly PolicyLayer[]): readonly PolicyLayer[] {
  return LAYER_ORDER.flatMap((rank) => layers.filter(({ layer }) => layer === rank))
}

function sumOf<V>(row: Row<V>, voices: readonly Voice[]): V | undefined {
  return voices.reduce<V | undefined>((below, voice) => {
    const above = row.hears(voice)
    return above === undefined ? below : row.adds(below, above)
  }, undefined)
}

function originOf(layer: PolicyLayer, key: string): Origin {
  return { layer: layer.layer, source: placeOf(layer, key), key }
}

function originsOf(voices: readonly Voice[]): Readonly<Record<string, readonly Origin[]>> {
  const spoken = Object.entries(ROWS).flatMap(([key, row]) =>
    voices.flatMap((voice) => spokenKeys({ key, row: row as Row<unknown>, voice })),
  )
  const keys = [...new Set(spoken.map(({ key }) => key))]
  return Object.fromEntries(
    keys.map((key) => [key, spoken.filter((word) => word.key === key).map(({ origin }) => origin)]),
  )
}

function spokenKeys(input: { readonly key: string; readonly row: Row<unknown>; readonly voice: Voice }) {
  const value = input.row.hears(input.voice)
  if (value === undefined) return []
  const keys = input.row.speaksFor?.(value) ?? [input.key]
  return keys.map((key) => ({ key, origin: originOf(input.voice.layer, placeKey(input.voice, key)) }))
}

/** A zone's place is known by its position in the list, not by its name. */
function placeKey(voice: Voice, key: string): string {
  const name = key.startsWith('zones.') ? key.slice('zones.'.length) : undefined
  const index = voice.said.zones?.findIndex((zone) => zone.name === name) ?? -1
  return name === undefined || index < 0 ? key : `zones.${index}`
}

// Zones ---------------------------------------------------------------------------------------------------------------

function draftZones({ said, layer, home }: Voice): readonly DraftZone[] | undefined {
  return said.zones?.map((zone, index) => {
    const key = `zones.${index}`
    const hostPath =
      zone.hostPath === undefined ? {} : { hostPath: resolveHostPath({ path: zone.hostPath, layer, home }) }
    // A name that nobody can write: unnamed zones are never merged with others.
    const name = zone.name ?? `zone#${layer.layer}.${index + 1}`
    return {
      ...zone,
      ...hostPath,
      name,
      named: zone.name !== undefined,
      origin: originOf(layer, key),
      head: headOf(layer, zone.name ?? key),
    }
  })
}

/** Absolute and normal, but not canonical: what is really there is looked up later. */
export function resolveHostPath(input: {
  readonly path: string
  readonly layer: PolicyLayer
  readonly home: string
}): string {
  const { path: written, layer, home } = input
  if (written === '~') return home
  return written.startsWith('~/') ? path.join(home, written.slice(2)) : path.resolve(layer.directory, written)
}

function addZones(below: readonly DraftZone[] | undefined, above: readonly DraftZone[]): readonly DraftZone[] {
  return above.reduce<readonly DraftZone[]>((zones, zone) => {
    const same = zones.find((candidate) => candidate.name === zone.name)
    if (same === undefined) return [...zones, zone]
    return zones.map((candidate) => (candidate === same ? overlay(same, zone) : candidate))
  }, below ?? [])
}

/** Field by field, unless tmpfs takes the place of a host directory or the other way round: then nothing of the old zone is left. */
function overlay(below: DraftZone, above: DraftZone): DraftZone {
  const wasTmpfs = below.mode === 'tmpfs'
  const becomesTmpfs = above.mode === 'tmpfs' || (above.mode === undefined && above.hostPath === undefined && wasTmpfs)
  if (wasTmpfs !== becomesTmpfs) return above
  const said = Object.fromEntries(Object.entries(above).filter(([, value]) => value !== undefined))
  return { ...below, ...said }
}

function zoneOf(draft: DraftZone): Zone {
  const mode: ZoneMode = draft.mode ?? 'ro'
  const target = draft.target ?? (draft.named ? `/${draft.name}` : undefined)
  return {
    name: draft.name,
    mode,
    ...(draft.hostPath === undefined ? {} : { hostPath: draft.hostPath }),
    ...(target === undefined ? {} : { target }),
    ...(mode === 'tmpfs' ? { size: draft.size ?? ZONE_SIZE } : {}),
    create: draft.create ?? false,
    optional: draft.optional ?? false,
    sockets: draft.sockets ?? false,
    origin: draft.origin,
  }
}

// Network -------------------------------------------------------------------------------------------------------------

type NetworkVoice = NetworkPolicy & { readonly speaks?: boolean }

function hearNetwork({ said }: Voice): NetworkPolicy | undefined {
  // A layer that only denies leaves the mode to those below; addNetwork() sees that by the empty word.
  return said.network === undefined ? undefined : ({ ...said.network, mode: said.network.mode } as NetworkVoice)
}

/** Lists add up; what anybody denies is no longer allowed. */
function addNetwork(below: NetworkPolicy | undefined, above: NetworkPolicy): NetworkPolicy {
  const deny = unite(below?.deny, above.deny)
  const allow = unite(below?.allow, above.allow).filter((host) => !deny.includes(host))
  return { mode: above.mode ?? below?.mode ?? 'none', allow, deny }
}

function networkKeys(network: NetworkPolicy): readonly string[] {
  return [
    'network',
    ...(network.mode === undefined ? [] : ['network.mode']),
    ...(network.allow.length === 0 ? [] : ['network.allow']),
    ...(network.deny.length === 0 ? [] : ['network.deny']),
  ]
}

// Environment, credentials, seccomp -----------------------------------------------------------------------------------

function hearEnvironment({ said }: Voice): EnvironmentPolicy | undefined {
  return said.env === undefined ? undefined : { inherit: said.env.inherit ?? [], set: said.env.set ?? {} }
}

/** The highest layer that names a variable decides whether its value is set or taken over. */
function addEnvironment(below: EnvironmentPolicy | undefined, above: EnvironmentPolicy): EnvironmentPolicy {
  const set = Object.entries(below?.set ?? {}).filter(([name]) => !above.inherit.includes(name))
  const inherit = (below?.inherit ?? []).filter((name) => !Object.hasOwn(above.set, name))
  return { inherit: unite(inherit, above.inherit), set: Object.fromEntries([...set, ...Object.entries(above.set)]) }
}

function environmentKeys(env: EnvironmentPolicy): readonly string[] {
  const set = Object.keys(env.set)
  return [
    'env',
    ...(env.inherit.length === 0 ? [] : ['env.inherit']),
    ...(set.length === 0 ? [] : ['env.set', ...set.map((name) => `env.set.${name}`)]),
  ]
}

/** The home directory inside; the plan makes it. */
export const SANDBOX_HOME = '/home/sandbox'

function hearCredentials({ said, layer, home }: Voice): readonly Credential[] | undefined {
  return said.credentials?.map((credential, index) => {
    const file = resolveHostPath({ path: credential.file, layer, home })
    const target = credential.target?.replace(/^~(?=\/)/, SANDBOX_HOME) ?? placeBelowHome(file, home)
    return { file, target, origin: originOf(layer, `credentials.${index}`) }
  })
}

/** The same place below the home inside as outside; empty when the file is not below the caller's home. */
function placeBelowHome(file: string, home: string): string {
  return home !== '' && file.startsWith(`${home}/`) ? `${SANDBOX_HOME}${file.slice(home.length)}` : ''
}

function addCredentials(below: readonly Credential[] | undefined, above: readonly Credential[]): readonly Credential[] {
  const kept = (below ?? []).filter(({ target }) => !above.some((credential) => credential.target === target))
  return [...kept, ...above]
}

function hearSeccomp({ said, layer, home }: Voice): SeccompChoice | undefined {
  if (said.seccomp === undefined || typeof said.seccomp === 'string') return said.seccomp
  return { file: resolveHostPath({ path: said.seccomp.file, layer, home }) }
}

// What only the sum shows ---------------------------------------------------------------------------------------------

interface Sum {
  readonly checked: readonly CheckedLayer[]
  readonly merged: Merged
  readonly options: MergeOptions
}

function contradictions(sum: Sum): readonly string[] {
  return [
    ...sum.checked.flatMap(ownContradictions),
    ...zoneProblems(sum),
    ...networkProblems(sum),
    ...homeProblems(sum),
    ...credentialProblems(sum),
  ]
}

/** Two words of one layer that cannot both be meant. */
function ownContradictions({ layer, said }: CheckedLayer): readonly string[] {
  const { network, backend, engine, env, zones } = said
  const closed = network?.mode === 'none' || network?.mode === 'host'
  const both = (env?.inherit ?? []).filter((name) => Object.hasOwn(env?.set ?? {}, name))
  const names = (zones ?? []).flatMap(({ name }) => (name === undefined ? [] : [name]))
  const twice = names.filter((name, index) => names.indexOf(name) !== index)
  return [
    ...(closed && (network?.allow.length ?? 0) > 0
      ? [
          `${headOf(layer, 'network')} expected mode restricted beside a list of allowed hosts, got mode ${network?.mode}.`,
        ]
      : []),
    ...(backend !== undefined && engine !== undefined && backend.engine !== undefined && engine !== backend.engine
      ? [`${headOf(layer, 'engine')} expected ${backend.engine}, which the backend names, got ${engine}.`]
      : []),
    ...both.map((name) => `${headOf(layer, 'env.inherit')} expected ${name} either inherited or set, got both.`),
    ...twice.map((name) => `${headOf(layer, 'zones')} expected one zone of a name, got two named "${name}".`),
  ]
}

function zoneProblems({ checked, merged }: Sum): readonly string[] {
  const broken = checked.some(({ problems }) => problems.length > 0)
  const zones = merged.zones
  return [
    ...zones.flatMap((zone) => sourceProblems({ zone, broken })),
    ...zones.flatMap((zone, index) => sharedTarget(zone, zones.slice(0, index))),
  ]
}

function sourceProblems({ zone, broken }: { readonly zone: DraftZone; readonly broken: boolean }): readonly string[] {
  const { head, mode, hostPath, size, create, optional } = zone
  if (mode === 'tmpfs') {
    return [
      ...(hostPath === undefined
        ? []
        : [`${head} expected no hostPath beside mode tmpfs, got ${quoteText(hostPath)}.`]),
      ...(create === true || optional === true
        ? [`${head} expected no create or optional beside mode tmpfs, got one.`]
        : []),
    ]
  }
  // With a broken layer below, the host path may be what could not be read: one message is enough.
  return [
    ...(hostPath === undefined && !broken
      ? [`${head} expected a hostPath, from this file or one that grants it, got nothing.`]
      : []),
    ...(size === undefined ? [] : [`${head} expected size only beside mode tmpfs, got mode ${mode ?? 'ro'}.`]),
  ]
}

function sharedTarget(zone: DraftZone, before: readonly DraftZone[]): readonly string[] {
  const target = zoneOf(zone).target
  const other = before.find((candidate) => target !== undefined && zoneOf(candidate).target === target)
  return other === undefined
    ? []
    : [`${zone.head} expected a target of its own, got ${quoteText(target ?? '')}, which zone "${other.name}" has.`]
}

/** An open network cannot keep anybody out: a deny list under it would be a promise that nobody holds. */
function networkProblems({ checked, merged }: Sum): readonly string[] {
  if (merged.network.mode !== 'host' || merged.network.deny.length === 0) return []
  const speaker = checked.filter(({ said }) => said.network?.mode === 'host').at(-1)
  const head = speaker === undefined ? 'network:' : headOf(speaker.layer, 'network')
  return [`${head} expected restricted, because hosts are denied (${merged.network.deny.join(', ')}), got host.`]
}

/** Without a home directory `~/` means nothing, and must not come to mean `/`. */
function homeProblems({ checked, options }: Sum): readonly string[] {
  if (options.home !== '') return []
  return checked.flatMap(({ layer, said }) => {
    const written = [
      ...(said.zones ?? []).map((zone, index) => ({ key: `zones.${index}`, text: zone.hostPath ?? '' })),
      ...(said.credentials ?? []).map((credential, index) => ({ key: `credentials.${index}`, text: credential.file })),
    ]
    return written
      .filter(({ text }) => text.startsWith('~'))
      .map(
        ({ key, text }) =>
          `${headOf(layer, key)} expected a path without ~ (no home directory is known), got ${quoteText(text)}.`,
      )
  })
}

function credentialProblems({ merged }: Sum): readonly string[] {
  return merged.credentials
    .filter(({ target }) => target === '')
    .map(
      ({ file, origin }) =>
        `${origin.source}: ${origin.key}: expected a target for a file outside the home directory, got only file ${quoteText(file)}.`,
    )
}

// The result ----------------------------------------------------------------------------------------------------------

interface PolicyParts {
  readonly merged: Merged
  readonly origins: Policy['origins']
  readonly options: MergeOptions
}

function policyOf({ merged, origins, options }: PolicyParts): Policy {
  const { image, runtime, workdir, cgroupParent } = merged as Partial<Merged>
  return {
    profile: options.profile,
    backend: merged.backend,
    engine: merged.engine,
    ...(image === undefined ? {} : { image }),
    ...(runtime === undefined ? {} : { runtime }),
    dockerReuse: merged['docker.reuse'],
    zones: merged.zones.map(zoneOf),
    workspace: merged.workspace,
    samePath: merged.samePath,
    network: merged.network,
    resources: resourcesOf(merged),
    env: merged.env,
    credentials: merged.credentials,
    sshAgent: merged.sshAgent,
    seccomp: merged.seccomp,
    toolchains: merged.toolchains,
    ...(workdir === undefined ? {} : { workdir }),
    protect: merged.protect,
    protectFiles: options.protectFiles ?? [],
    require: merged.require,
    bestEffort: merged.bestEffort,
    tty: merged.tty,
    ...(cgroupParent === undefined ? {} : { cgroupParent }),
    pool: merged.pool,
    origins,
  }
}

function resourcesOf(merged: Merged): Resources {
  return {
    memory: merged['resources.memory'],
    swap: merged['resources.swap'],
    cpus: merged['resources.cpu'],
    pids: merged['resources.pids'],
    timeoutMs: merged['resources.timeout'],
    cpuTimeMs: merged['resources.cpuTime'],
    output: merged['resources.output'],
    tmp: merged['resources.tmp'],
    run: merged['resources.run'],
    shm: merged['resources.shm'],
    home: merged['resources.home'],
  }
}
