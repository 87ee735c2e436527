/** Finds contradictions between keys that are each valid. Pure. */
import { addressProblems, loopbackPorts } from '../network/address-plan.ts'
import { LOCALHOST, rulesOf } from '../network/host-rule.ts'
import { quoteText } from '../text/units.ts'
import type { ParsedNetwork } from './keys/network-layers.ts'
import { headOf } from './layer.ts'
import type { CheckedLayer } from './validate-layer.ts'
import type { Credential, NetworkPolicy } from './values.ts'
import { type DraftZone, zoneProblems } from './zones.ts'

/** The layers and those of their sums that can contradict each other. */
export interface Sums {
  readonly checked: readonly CheckedLayer[]
  readonly zones: readonly DraftZone[]
  readonly network: NetworkPolicy
  readonly credentials: readonly Credential[]
  /** The caller's home directory, empty when there is none. */
  readonly home: string
}

export function contradictions(sum: Sums): readonly string[] {
  const isIncomplete = sum.checked.some(({ problems }) => problems.length > 0)
  return [
    ...sum.checked.flatMap(ownContradictions),
    ...zoneProblems(sum.zones, isIncomplete),
    ...networkProblems(sum),
    ...homeProblems(sum),
    ...sum.credentials.flatMap(credentialProblems),
  ]
}

/** Two words of one layer that cannot both be meant. */
function ownContradictions({ layer, parsed }: CheckedLayer): readonly string[] {
  return [
    ...mixedNetwork({ layer, parsed }),
    ...mixedEngine({ layer, parsed }),
    ...mixedVariables({ layer, parsed }),
    ...doubleZones({ layer, parsed }),
    ...emptyProtect({ layer, parsed }),
  ]
}

type Word = Pick<CheckedLayer, 'layer' | 'parsed'>

/** In another mode nothing would be judged by the list. */
export const listsInVain = ({ mode, allow, local = [] }: ParsedNetwork): boolean =>
  mode !== 'restricted' && mode !== 'record' && allow.length + local.length > 0

function mixedNetwork({ layer, parsed: { network } }: Word): readonly string[] {
  if (network === undefined || !listsInVain(network)) return []
  return [
    `${headOf(layer, 'network')} expected mode restricted together with a list of allowed hosts or ports, got mode ${network.mode ?? 'none'}.`,
  ]
}

function mixedEngine({ layer, parsed: { backend, engine } }: Word): readonly string[] {
  if (backend?.engine === undefined || engine === undefined || engine === backend.engine) return []
  return [`${headOf(layer, 'engine')} expected ${backend.engine}, which the backend names, got ${engine}.`]
}

function mixedVariables({ layer, parsed: { env } }: Word): readonly string[] {
  const both = (env?.inherit ?? []).filter((name) => Object.hasOwn(env?.set ?? {}, name))
  return both.map((name) => `${headOf(layer, 'env.inherit')} expected ${name} either inherited or set, got both.`)
}

function doubleZones({ layer, parsed: { zones } }: Word): readonly string[] {
  const names = (zones ?? []).flatMap(({ name }) => (name === undefined ? [] : [name]))
  const twice = names.filter((name, index) => names.indexOf(name) !== index)
  return twice.map((name) => `${headOf(layer, 'zones')} expected one zone of a name, got two named "${name}".`)
}

/** It once took the built-in names away: a policy that still means that gets a warning, and the names stay protected. */
function emptyProtect({ layer, parsed: { protect } }: Word): readonly string[] {
  if (protect?.length !== 0 || layer.layer === 'built-in') return []
  return [
    `${headOf(layer, 'protect')} expected at least one path (protectNot opens built-in names), got an empty list.`,
  ]
}

/** Hosts for which there are no addresses inside, ports that cannot be published, and an open network, which keeps no host out, together with a list of those to keep out. */
export function restrictionProblems(network: NetworkPolicy, head = 'network:'): readonly string[] {
  const { mode, publish } = network
  if (mode === 'host') return openProblems(network, head)
  return mode === 'restricted' || publish !== undefined
    ? [...addressProblems(rulesOf(network)), ...publishProblems(network)]
    : []
}

function openProblems({ publish, deny }: NetworkPolicy, head: string): readonly string[] {
  if (publish !== undefined)
    return [
      `network.publish: expected a network of the sandbox's own, got host, where servers listen on this host anyway.`,
    ]
  return deny.length === 0
    ? []
    : [`${head} expected restricted, because hosts are denied (${deny.join(', ')}), got host.`]
}

/** The same, at the place where the mode was said. */
function networkProblems({ checked, network }: Sums): readonly string[] {
  const layerOf = checked.filter(({ parsed }) => parsed.network?.mode === 'host').at(-1)
  const head = layerOf === undefined ? undefined : headOf(layerOf.layer, 'network')
  return [...terminationProblems(network), ...grantProblems(network), ...restrictionProblems(network, head)]
}

/** A secret is never given, or a request limited, by a run that does not look into the connection. */
function terminationProblems({ mode, terminate, credentials = [], requests = [] }: NetworkPolicy): readonly string[] {
  const key = credentials.length > 0 ? 'credentials' : 'requests'
  if (credentials.length + requests.length === 0) return []
  if (terminate !== true)
    return [
      `network.${key}: expected network.terminate: true (--terminate-tls) with it, because TLS has to end on this host for it, got false.`,
    ]
  if (mode === 'host')
    return [
      `network.${key}: expected a restricted network, because nothing sees the connections of another one, got host.`,
    ]
  return []
}

/** A list can grow only where there is one. */
function grantProblems({ mode, grants, proxy, record, closedBy }: NetworkPolicy): readonly string[] {
  if (grants === undefined || closedBy !== undefined) return []
  const head = `network.grants: ${grants}:`
  if (mode !== 'restricted') return [`${head} expected --net restricted, got ${mode}.`]
  if (record === true) return [`${head} expected restricted, because a recorded network lets every name through.`]
  return grants === 'ask' && proxy === 'on'
    ? [`${head} expected proxy off, because only connections without one wait for an answer, got on.`]
    : []
}

/** Each client needs a socket that was made beforehand, and each port a listener. */
const MOST_PUBLISHED = 32

function publishProblems(network: NetworkPolicy): readonly string[] {
  const { publish = [] } = network
  const taken = loopbackPorts(rulesOf(network)).filter((port) => publish.some((server) => server.endsWith(`:${port}`)))
  const places = publish.map((server) => server.slice(0, server.lastIndexOf(':')))
  const twice = places.filter((place, index) => places.indexOf(place) !== index)
  return [
    ...twice.map((place) => `network.publish: expected each address and port once, got ${place} twice.`),
    ...taken.map(
      (port) =>
        `network.publish: expected another port inside, because network.allow gives ${LOCALHOST}:${port} to a server of this host, got ${port}.`,
    ),
    ...(publish.length > MOST_PUBLISHED
      ? [`network.publish: expected at most ${MOST_PUBLISHED} ports, got ${publish.length}.`]
      : []),
  ]
}

/** Without a home directory `~/` means nothing, and must not come to mean `/`. */
function homeProblems({ checked, home }: Sums): readonly string[] {
  if (home !== '') return []
  return checked.flatMap(({ layer, parsed }) => {
    const written = [
      ...(parsed.zones ?? []).map((zone, index) => ({ key: `zones.${index}`, text: zone.hostPath ?? '' })),
      ...(parsed.credentials ?? []).map((credential, index) => ({
        key: `credentials.${index}`,
        text: credential.file,
      })),
    ]
    return written
      .filter(({ text }) => text.startsWith('~'))
      .map(
        ({ key, text }) =>
          `${headOf(layer, key)} expected a path without ~ (no home directory is known), got ${quoteText(text)}.`,
      )
  })
}

function credentialProblems({ file, target, origin }: Credential): readonly string[] {
  if (target !== '') return []
  const isSpoken = origin.layer === 'flag' || origin.layer === 'environment'
  const at = isSpoken ? origin.source : `${origin.source}: ${origin.key}`
  return [`${at}: expected a target for a file outside the home directory, got only ${quoteText(file)}.`]
}
