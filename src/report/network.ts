/** The hosts that a restricted command reached or tried: rows for the result, denials with the flag that allows them, hints. Pure. */
import type { Outcome } from '../backends/outcome.ts'
import type { ReachedHost } from '../contract.ts'
import { LOCAL_NAME, LOCALHOST } from '../network/host-rule.ts'
import { printHostPort, type RefusedRequest } from '../network/termination.ts'
import type { Denial, NetworkUse } from './result.ts'

export function networkUse({ network }: Outcome): { readonly network?: readonly NetworkUse[] } {
  if (network === undefined) return {}
  return { network: [...network.hosts.map(useOf), ...(network.terminated?.refused ?? []).map(refusedUse)] }
}

const refusedUse = ({ host, port, what, count }: RefusedRequest): NetworkUse => ({
  host,
  port,
  verdict: 'refused',
  request: what,
  connections: count,
  bytesIn: 0,
  bytesOut: 0,
})

/** The rule by which a recorded network lets every name through; no policy can contain it. */
const RECORDED = '*:*'

/** The rule of a policy that would allow the same. A recorded network does not reach this host, and a rule would. */
const neededFor = ({ host, port, verdict, rule }: ReachedHost): readonly string[] =>
  verdict === 'allowed' && rule === RECORDED && port !== 0 && host !== LOCALHOST
    ? [`--allow-host ${withPort(host, port)}`]
    : []

function useOf(use: ReachedHost): NetworkUse {
  const [needs] = neededFor(use)
  return { ...plainUse(use), ...(needs === undefined ? {} : { needs }) }
}

/** The rule, or the detail in its place. */
function detailOf(verdict: ReachedHost['verdict'], rule: string): Pick<NetworkUse, 'rule' | 'address' | 'inside'> {
  if (verdict === 'not-public') return { address: rule }
  return verdict === 'published' ? { inside: Number(rule) } : { rule }
}

function plainUse({ host, port, verdict, rule, connections, bytesIn, bytesOut }: ReachedHost): NetworkUse {
  return {
    host,
    ...(port === 0 ? {} : { port }),
    verdict,
    ...(rule === '' ? {} : detailOf(verdict, rule)),
    connections,
    bytesIn,
    bytesOut,
  }
}

const DEFAULT_PORTS = [0, 80, 443]

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)
const withPort = (host: string, port: number): string =>
  DEFAULT_PORTS.includes(port) ? bracketed(host) : `${bracketed(host)}:${port}`

type Fix = Pick<Denial, 'fix' | 'key'>

/** The flag that allows a name or an address. */
export const allowFix = (host: string, port: number): Fix => ({
  fix: `--allow-host ${withPort(host, port)}`,
  key: 'network.allow',
})

function fixOf({ host, port, verdict, rule }: ReachedHost): Fix {
  if (verdict === 'denied') return { fix: `take back --deny-host ${rule}`, key: 'network.deny' }
  if (host === LOCAL_NAME) return { fix: `--allow-local ${port === 0 ? 'PORT' : port}`, key: 'network.local' }
  return allowFix(verdict === 'not-public' ? rule : host, port)
}

const isRefused = ({ verdict }: ReachedHost): boolean => ['not-listed', 'denied', 'not-public'].includes(verdict)

const targetOf = ({ host, port }: ReachedHost): string => (port === 0 ? host : `${bracketed(host)}:${port}`)

export function networkDenials({ network }: Outcome): readonly Denial[] {
  const connections = (network?.hosts ?? []).filter(isRefused).map(
    (use): Denial => ({
      layer: 'network',
      operation: use.port === 0 ? 'resolve' : 'connect',
      target: targetOf(use),
      count: use.connections,
      ...fixOf(use),
      evidence: 'sandbox',
    }),
  )
  return [...connections, ...(network?.terminated?.refused ?? []).map(requestDenial)]
}

function requestDenial({ kind, what, count, ...place }: RefusedRequest): Denial {
  const host = printHostPort(place)
  const fixes = {
    request: `network.requests: [ "${what.replace(' ', ` ${host}`)}" ]`,
    form: 'HTTP/1.1 in the form of the standard',
    plain: `https://${place.host}`,
    name: `a connection of its own for that host, with --allow-host`,
  }
  const key = kind === 'request' ? 'network.requests' : ''
  return {
    layer: 'network',
    operation: 'request',
    target: `${host}: ${what}`,
    count,
    fix: fixes[kind],
    key,
    evidence: 'sandbox',
  }
}

/** The flags that would allow what a recorded network has reached. */
export function recordHints({ network }: Outcome): readonly string[] {
  const flags = [...new Set((network?.hosts ?? []).flatMap(neededFor))]
  return flags.length === 0 ? [] : [`recorded: ${flags.join(' ')}`]
}

/** Hosts that one line names. */
const SHOWN = 3

const listed = (shown: readonly string[]): string =>
  shown.slice(0, SHOWN).join(', ') + (shown.length > SHOWN ? ` and ${shown.length - SHOWN} more` : '')

const HINTS: readonly (readonly [verdict: ReachedHost['verdict'], text: string])[] = [
  ['unreachable', 'allowed, but it could not be reached from this host:'],
  ['unresolved', 'allowed, but this host itself could not resolve:'],
  ['too-many', 'allowed, but there were too many connections at once:'],
]

/** Lines for a command that has failed, if it may have failed of what was allowed and did not come about. */
export function networkHints(outcome: Outcome): readonly string[] {
  const targetsOf = (verdict: string): readonly string[] =>
    (outcome.network?.hosts ?? []).filter((use) => use.verdict === verdict).map(targetOf)
  const notPublic = (outcome.network?.hosts ?? []).filter(({ verdict }) => verdict === 'not-public')
  return [
    ...notPublic.map(notPublicHint),
    ...HINTS.map(([verdict, text]) => [text, targetsOf(verdict)] as const).flatMap(([text, shown]) =>
      shown.length === 0 ? [] : [`${text} ${listed(shown)}`],
    ),
  ]
}

const notPublicHint = (use: ReachedHost): string =>
  `${use.host} is allowed, but leads to ${use.rule}, which is not public; to allow it: ${fixOf(use).fix}`

export function networkWarnings({ network }: Outcome): readonly string[] {
  if (network === undefined) return []
  return [
    ...(network.isLost
      ? ['the helper of the restricted network ended before the command: nothing could be reached any more']
      : []),
    ...(network.terminated?.isLost === true
      ? [
          'the terminator ended before the command: hosts of network.credentials and network.requests could not be reached any more',
        ]
      : []),
    ...((network.terminated?.omitted ?? 0) > 0
      ? [`the network report leaves out ${network.terminated?.omitted} refused requests of further kinds`]
      : []),
    ...(network.omitted > 0 ? [`the network report leaves out ${network.omitted} connections to further hosts`] : []),
  ]
}
