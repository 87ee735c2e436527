/** The network keys of layers, and how they add up. Pure. */
import type { HeaderCredential } from '../../network/termination.ts'
import { misunderstood, type Reader, type Reading, understood } from '../../text/units.ts'
import { type LayerSource, resolveHostPath, type SetKey } from '../layer-source.ts'
import { oneOf } from '../readers.ts'
import type { GrantsChoice, NetworkMode, NetworkPolicy } from '../values.ts'
import { unite } from './key.ts'

/** `record` is restricted with every public name allowed. */
export type NetworkWord = NetworkMode | 'record'

/** `mode` is absent when only a deny list is given. */
export interface ParsedNetwork
  extends Omit<NetworkPolicy, 'mode' | 'grants' | 'tools' | 'record' | 'terminate' | 'closedBy'> {
  readonly mode?: NetworkWord
  readonly grants?: GrantsChoice
  readonly terminate?: boolean
}

export type NetworkInput =
  | NetworkWord
  | 'no'
  | 'off'
  | boolean
  | (Partial<Omit<ParsedNetwork, 'mode' | 'local' | 'publish'>> & {
      readonly mode?: NetworkWord | boolean
      readonly local?: readonly (number | string)[]
      readonly publish?: readonly (number | string)[]
    })

const NETWORK_WORDS: Readonly<Record<string, NetworkWord>> = {
  none: 'none',
  no: 'none',
  off: 'none',
  false: 'none',
  restricted: 'restricted',
  record: 'record',
  host: 'host',
  true: 'host',
}
const EXPECTED_NETWORK = 'none, restricted, record or host'

export const readNetworkMode: Reader<NetworkWord> = (value) => {
  if (value === 'on' || value === 'yes')
    return misunderstood(`${EXPECTED_NETWORK} (${value} could mean any but the first)`, value)
  const isWord = typeof value === 'boolean' || (typeof value === 'string' && Object.hasOwn(NETWORK_WORDS, value))
  const mode = isWord ? NETWORK_WORDS[String(value)] : undefined
  return mode === undefined ? withNear(oneOf(['none', 'restricted', 'record', 'host'])(value)) : understood(mode)
}

const withNear = (reading: Reading<NetworkWord>): Reading<NetworkWord> =>
  reading.ok ? reading : { ...reading, expected: EXPECTED_NETWORK }

export const readNetworkWord: Reader<ParsedNetwork> = (value) => {
  const reading = readNetworkMode(value)
  return reading.ok ? understood({ mode: reading.value, allow: [], deny: [] }) : reading
}

/** Naming a host or a port of this one means restricted, and so does a list that can grow. */
export function joinNetwork({ mode: written, allow, deny = [], ...rest }: Partial<ParsedNetwork>): ParsedNetwork {
  const isGrowing = rest.grants !== undefined && rest.grants !== 'no'
  const isNamed = allow !== undefined || rest.local !== undefined || isGrowing
  const mode = written ?? (isNamed ? 'restricted' : undefined)
  return { ...(mode === undefined ? {} : { mode }), allow: allow ?? [], deny, ...rest }
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

/** Only what says something: a policy without it has no such key. */
export function networkPolicy({ mode, allow, deny, ...rest }: MaybeUnsaid<NetworkPolicy>): NetworkPolicy {
  const said = FURTHER.filter((name) => !isEmpty(rest[name])).map((name) => [name, rest[name]])
  return { mode, allow, deny, ...Object.fromEntries(said) }
}

type MaybeUnsaid<T> = { readonly [K in keyof T]: T[K] | (undefined extends T[K] ? undefined : never) }

/** In the order of a printed plan. */
const FURTHER = [
  'tools',
  'local',
  'publish',
  'hosts',
  'record',
  'afterSecrets',
  'proxy',
  'grants',
  'terminate',
  'credentials',
  'requests',
  'closedBy',
] as const satisfies readonly (keyof NetworkPolicy)[]

export const modeOf = (word: NetworkWord): NetworkMode => (word === 'record' ? 'restricted' : word)
/** The word that would say what a policy holds. */
export const wordOf = ({ mode, record }: Pick<NetworkPolicy, 'mode' | 'record'>): NetworkWord =>
  record === true ? 'record' : mode

/** Lists add up; a name that any layer denies is removed from the allowed ones. A layer that only denies leaves the mode as it is. */
export function addNetwork(below: NetworkPolicy | undefined, above: ParsedNetwork): NetworkPolicy {
  const deny = unite(below?.deny, above.deny)
  const allow = unite(below?.allow, above.allow).filter((host) => !deny.includes(host))
  const word = above.mode ?? (below === undefined ? 'none' : wordOf(below))
  const afterSecrets = above.afterSecrets ?? below?.afterSecrets
  const grants = above.grants ?? below?.grants ?? 'no'
  return networkPolicy({
    mode: modeOf(word),
    allow,
    deny,
    local: unite(below?.local, above.local ?? []),
    publish: unite(below?.publish, above.publish ?? []),
    hosts: { ...below?.hosts, ...above.hosts },
    credentials: addCredentials(below?.credentials, above.credentials),
    requests: unite(below?.requests, above.requests ?? []),
    terminate: (above.terminate ?? below?.terminate) || undefined,
    record: word === 'record' || undefined,
    afterSecrets: afterSecrets === 'deny' ? afterSecrets : undefined,
    proxy: above.proxy ?? below?.proxy,
    grants: grants === 'no' ? undefined : grants,
  })
}

/** Of one header of one host the highest layer's counts. */
function addCredentials(
  below: readonly HeaderCredential[] = [],
  above: readonly HeaderCredential[] = [],
): readonly HeaderCredential[] {
  const keyOf = ({ host, header }: HeaderCredential): string => `${host} ${header.toLowerCase()}`
  return [...new Map([...below, ...above].map((one) => [keyOf(one), one])).values()]
}

/** Files of secrets are relative to the profile that names them. */
export function resolveNetwork(parsed: ParsedNetwork, source: Pick<LayerSource, 'directory' | 'home'>): ParsedNetwork {
  if (parsed.credentials === undefined) return parsed
  const resolve = (from: string): string =>
    from.startsWith(FILE) ? `${FILE}${resolveHostPath(from.slice(FILE.length), source)}` : from
  return { ...parsed, credentials: parsed.credentials.map((one) => ({ ...one, from: resolve(one.from) })) }
}

const FILE = 'file:'

export const networkKeys = (parsed: ParsedNetwork): readonly SetKey[] => [
  { key: 'network' },
  ...(['mode', 'allow', 'deny', ...FURTHER] as readonly (keyof ParsedNetwork)[])
    .filter((name) => !isEmpty(parsed[name]))
    .map((name) => ({ key: `network.${name}` })),
]

/** Servers inside are reached through the helper of a restricted network; without another word that one lets nothing out. */
export function finishNetwork(sum: NetworkPolicy): NetworkPolicy {
  if (sum.publish === undefined || sum.mode !== 'none') return sum
  const { record: _record, local: _local, ...rest } = sum
  return networkPolicy({ ...rest, mode: 'restricted', allow: [] })
}
