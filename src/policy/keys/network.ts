/** The key `network`: how layers add up, and what is within what. Pure. */
import { misunderstood, type Reader, type Reading, understood } from '../../text/units.ts'
import type { SetKey } from '../layer-source.ts'
import { oneOf, readHost } from '../readers.ts'
import type { NetworkMode, NetworkPolicy } from '../values.ts'
import { field, type Key, listField, unite } from './key.ts'
import type { Narrowing } from './narrowing.ts'
import { words } from './words.ts'

/** What a layer says about the network. `mode` is absent when only a deny list is given. */
export interface ParsedNetwork {
  readonly mode?: NetworkMode
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

export type NetworkInput =
  | NetworkMode
  | 'no'
  | 'off'
  | boolean
  | { readonly mode?: NetworkMode | boolean; readonly allow?: readonly string[]; readonly deny?: readonly string[] }

const NETWORK_WORDS: Readonly<Record<string, NetworkMode>> = {
  none: 'none',
  no: 'none',
  off: 'none',
  false: 'none',
  restricted: 'restricted',
  host: 'host',
  true: 'host',
}
const EXPECTED_NETWORK = 'none, restricted or host'

const readNetworkMode: Reader<NetworkMode> = (value) => {
  if (value === 'on' || value === 'yes')
    return misunderstood(`${EXPECTED_NETWORK} (${value} could mean either of the last two)`, value)
  const isWord = typeof value === 'boolean' || (typeof value === 'string' && Object.hasOwn(NETWORK_WORDS, value))
  const mode = isWord ? NETWORK_WORDS[String(value)] : undefined
  return mode === undefined ? withNear(oneOf(['none', 'restricted', 'host'])(value)) : understood(mode)
}

const withNear = (reading: Reading<NetworkMode>): Reading<NetworkMode> =>
  reading.ok ? reading : { ...reading, expected: EXPECTED_NETWORK }

const readNetworkWord: Reader<ParsedNetwork> = (value) => {
  const reading = readNetworkMode(value)
  return reading.ok ? understood({ mode: reading.value, allow: [], deny: [] }) : reading
}

/** Naming a host means restricted. */
function joinNetwork({ mode: written, allow, deny = [] }: Partial<ParsedNetwork>): ParsedNetwork {
  const mode = written ?? (allow === undefined ? undefined : 'restricted')
  return { ...(mode === undefined ? {} : { mode }), allow: allow ?? [], deny }
}

/** Lists add up; what any layer denies is no longer allowed. A layer that only denies leaves the mode as it is. */
function addNetwork(below: NetworkPolicy | undefined, above: ParsedNetwork): NetworkPolicy {
  const deny = unite(below?.deny, above.deny)
  const allow = unite(below?.allow, above.allow).filter((host) => !deny.includes(host))
  return { mode: above.mode ?? below?.mode ?? 'none', allow, deny }
}

function networkKeys({ mode, allow, deny }: ParsedNetwork): readonly SetKey[] {
  return [
    { key: 'network' },
    ...(mode === undefined ? [] : [{ key: 'network.mode' }]),
    ...(allow.length === 0 ? [] : [{ key: 'network.allow' }]),
    ...(deny.length === 0 ? [] : [{ key: 'network.deny' }]),
  ]
}

const WIDTH = { none: 0, restricted: 1, host: 2 } as const

/** True when every host that the request allows is reachable by the grant too. */
function isWithinNetwork(wanted: ParsedNetwork, grant: NetworkPolicy): boolean {
  const mode = wanted.mode ?? grant.mode
  if (WIDTH[mode] > WIDTH[grant.mode]) return false
  if (mode !== 'restricted' || grant.mode !== 'restricted') return true
  return wanted.allow.every((host) => grant.allow.some((granted) => coversHost(granted, host)))
}

/** `*.example.org` covers `a.example.org:443` and `*.a.example.org`; a pattern without port covers every port. */
export function coversHost(granted: string, wanted: string): boolean {
  const [above, below] = [hostAndPort(granted), hostAndPort(wanted)]
  if (above.port !== undefined && above.port !== below.port) return false
  if (above.host === below.host) return true
  return above.host.startsWith('*.') && below.host.replace(/^\*/, '').endsWith(above.host.slice(1))
}

function hostAndPort(pattern: string): { readonly host: string; readonly port?: string } {
  const match = /^(.*?)(?::(\d+))?$/.exec(pattern)
  const [, host = pattern, port] = match ?? []
  return { host, ...(port === undefined ? {} : { port }) }
}

/** The grant, narrowed by a request that is within it. */
function takeNetwork(wanted: ParsedNetwork, grant: NetworkPolicy, isFlagged: boolean): NetworkPolicy {
  const compared = isFlagged ? { allow: [], deny: wanted.deny } : wanted
  const mode = compared.mode ?? grant.mode
  const deny = unite(grant.deny, compared.deny)
  const listed = compared.mode === 'restricted' ? compared.allow : grant.allow
  const allow = mode === 'restricted' ? listed.filter((host) => !deny.includes(host)) : []
  return { mode, allow, deny }
}

/** For people: `restricted (a.example, b.example)`. */
export function showNetwork({ mode, allow }: { readonly mode?: string; readonly allow: readonly string[] }): string {
  return allow.length === 0 ? (mode ?? 'the same mode') : `${mode ?? 'restricted'} (${allow.join(', ')})`
}

const narrowNetwork: Narrowing<ParsedNetwork, NetworkPolicy> = {
  isWider: (wanted, granted) => !isWithinNetwork(wanted, granted),
  takes: takeNetwork,
  adds: true,
  shows: showNetwork,
  grants: showNetwork,
  fix: ({ mode, allow }) =>
    allow.length === 0 ? `--net ${mode ?? 'restricted'}` : allow.map((host) => `--allow-host ${host}`).join(' '),
}

export const network: Key<NetworkInput, ParsedNetwork, NetworkPolicy> & { readonly default: NetworkInput } = {
  description: 'One of the words of mode, or a mapping.',
  unit: 'word or mapping',
  standard: 'none',
  default: 'none',
  shape: {
    kind: 'word-or-mapping',
    read: readNetworkWord,
    join: joinNetwork,
    fields: {
      mode: field<NetworkMode | boolean, NetworkMode>(readNetworkMode, {
        description:
          'none: only a loopback of its own; restricted: the hosts of allow; host: no wall. Naming a host means restricted.',
        unit: 'word',
        standard: 'none',
        type: ['string', 'boolean'],
        enum: ['none', 'restricted', 'host', 'no', 'off', true, false],
      }),
      allow: listField(readHost, {
        description: 'Hosts that may be reached: host, *.host, host:port.',
        unit: 'list of hosts',
        standard: '[]',
      }),
      deny: listField(readHost, {
        description: 'Hosts that may not, whatever allow says.',
        unit: 'list of hosts',
        standard: '[]',
      }),
    },
  },
  merging: { add: addNetwork, setsKeys: networkKeys },
  narrowing: narrowNetwork,
  need: ({ mode }) => `net-${mode}`,
  flags: [
    {
      name: 'net',
      argument: 'none|restricted|host',
      group: 'Network',
      part: 'mode',
      help: 'What the command can reach: nothing but itself, the hosts that are allowed, or all that this host reaches.',
      standard: 'none',
    },
    {
      name: 'allow-host',
      argument: 'HOST[:PORT]',
      group: 'Network',
      part: 'allow',
      repeats: true,
      help: 'A host that may be reached (*.HOST: all below it); means --net restricted.',
      sets: (text) => ({ values: { network: { allow: words(text) } } }),
    },
  ],
}
