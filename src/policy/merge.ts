/**
 * The sum of all layers. How each key adds up is one row of ROWS; nothing here touches the world.
 * Rows see layers from the lowest authority to the highest.
 */
import type { CheckedLayer } from './check.ts'
import {
  addCredentials,
  addEnvironment,
  addNetwork,
  environmentKeys,
  hearCredentials,
  hearEnvironment,
  hearSeccomp,
  networkKeys,
  unite,
} from './combine.ts'
import { contradictions } from './contradictions.ts'
import { invalidPolicy } from './invalid.ts'
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
} from './policy.ts'
import type { NetworkSaid, SandboxSaid } from './schema.ts'
import { originOf, type SpokenKey, type Voice } from './voice.ts'
import { addZones, type DraftZone, draftZones, zoneKeys, zoneOf } from './zones.ts'

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
  readonly 'resources.readBps': number | null
  readonly 'resources.writeBps': number | null
  readonly 'resources.readIops': number | null
  readonly 'resources.writeIops': number | null
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
  readonly protectNot: readonly string[]
  readonly require: readonly Need[]
  readonly bestEffort: boolean
  readonly tty: boolean
  readonly cgroupParent: string
  readonly pool: 'auto' | 'off'
}

/** How one key adds up. What a layer says and what the sum is are of one type, but for the network. */
interface Row<Sum, Said = Sum> {
  /** What this layer says; undefined = nothing. */
  readonly hears: (voice: Voice) => Said | undefined
  /** Adds a higher layer's word to the sum of those below it. */
  readonly adds: (below: Sum | undefined, above: Said) => Sum
  /** The dotted keys for which the layer counts as having spoken; default: the row's own. */
  readonly speaksFor?: (said: Said) => readonly SpokenKey[]
}

const replace = <V>(_below: V | undefined, above: V): V => above

/** A key whose highest word counts. */
function scalar<V>(hears: (said: SandboxSaid) => V | undefined): Row<V> {
  return { hears: ({ said }) => hears(said), adds: replace }
}

type ResourcesSaid = NonNullable<SandboxSaid['resources']>
const resource = <K extends keyof ResourcesSaid>(key: K): Row<Exclude<ResourcesSaid[K], undefined>> =>
  scalar((said) => said.resources?.[key] as Exclude<ResourcesSaid[K], undefined> | undefined)

/** Key -> how its words add up. The order is the order of the manual. */
const ROWS: { readonly [K in keyof Merged]: Row<Merged[K], K extends 'network' ? NetworkSaid : Merged[K]> } = {
  backend: scalar((said) => said.backend?.backend),
  engine: scalar((said) => said.engine ?? said.backend?.engine),
  image: scalar((said) => said.image),
  runtime: scalar<string>((said) => said.runtime),
  'docker.reuse': scalar((said) => said.docker?.reuse),
  zones: {
    hears: draftZones,
    adds: addZones,
    speaksFor: zoneKeys,
  },
  workspace: scalar((said) => said.workspace),
  samePath: scalar((said) => said.samePath),
  network: { hears: ({ said }) => said.network, adds: addNetwork, speaksFor: networkKeys },
  'resources.memory': resource('memory'),
  'resources.swap': resource('swap'),
  'resources.cpu': resource('cpu'),
  'resources.pids': resource('pids'),
  'resources.timeout': resource('timeout'),
  'resources.cpuTime': resource('cpuTime'),
  'resources.readBps': resource('readBps'),
  'resources.writeBps': resource('writeBps'),
  'resources.readIops': resource('readIops'),
  'resources.writeIops': resource('writeIops'),
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
  protect: { hears: ({ said }) => said.protect, adds: unite },
  protectNot: { hears: ({ said }) => said.protectNot, adds: unite },
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
}

/**
 * Adds up all layers.
 * @param checked in order: the built-in one first, of equal rank base first
 * @throws SandboxError POLICY_INVALID with every problem of every layer
 */
export function mergePolicies(checked: readonly CheckedLayer[], options: MergeOptions): Policy {
  const voices = checked.map(({ said, layer }, rank) => ({ said, layer, rank, home: options.home }))
  const merged = Object.fromEntries(
    Object.entries(ROWS).map(([key, row]) => [key, sumOf(row as Row<unknown>, voices)]),
  ) as unknown as Merged
  const problems = [
    ...checked.flatMap((layer) => layer.problems),
    ...contradictions({ checked, ...merged, home: options.home }),
  ]
  if (problems.length > 0) throw invalidPolicy(problems)
  return policyOf({ merged, origins: originsOf(voices), options })
}

function sumOf<V>(row: Row<V>, voices: readonly Voice[]): V | undefined {
  return voices.reduce<V | undefined>((below, voice) => {
    const above = row.hears(voice)
    return above === undefined ? below : row.adds(below, above)
  }, undefined)
}

function originsOf(voices: readonly Voice[]): Policy['origins'] {
  const origins = new Map<string, Origin[]>()
  for (const [key, row] of Object.entries(ROWS)) {
    for (const spoken of voices.flatMap((voice) => spokenKeys({ key, row: row as Row<unknown>, voice }))) {
      origins.set(spoken.key, [...(origins.get(spoken.key) ?? []), spoken.origin])
    }
  }
  return Object.fromEntries(origins)
}

function spokenKeys(input: { readonly key: string; readonly row: Row<unknown>; readonly voice: Voice }) {
  const value = input.row.hears(input.voice)
  if (value === undefined) return []
  const keys = input.row.speaksFor?.(value) ?? [{ key: input.key }]
  return keys.map(({ key, at = key }) => ({ key, origin: originOf(input.voice.layer, at) }))
}

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
    protectNot: merged.protectNot,
    protectFiles: [],
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
    readBps: merged['resources.readBps'],
    writeBps: merged['resources.writeBps'],
    readIops: merged['resources.readIops'],
    writeIops: merged['resources.writeIops'],
    output: merged['resources.output'],
    tmp: merged['resources.tmp'],
    run: merged['resources.run'],
    shm: merged['resources.shm'],
    home: merged['resources.home'],
  }
}
