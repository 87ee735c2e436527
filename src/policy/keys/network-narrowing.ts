/** Compares network grants, and computes the remaining grant. Pure. */
import { allowsAllOf, LOCALHOST, parseRule } from '../../network/host-rule.ts'
import { isToolRule } from '../../network/tools/names.ts'
import { GRANTS, type GrantsChoice, type NetworkPolicy } from '../values.ts'
import { unite } from './key.ts'
import type { Narrowing } from './narrowing.ts'
import { modeOf, networkPolicy, type ParsedNetwork, wordOf } from './network-layers.ts'

const WIDTH = { none: 0, restricted: 1, record: 2, host: 3 } as const

/** True when everything that the request allows is reachable by the grant too. */
function isWithinNetwork(wanted: ParsedNetwork, grant: NetworkPolicy): boolean {
  const [word, granted] = [wanted.mode ?? wordOf(grant), wordOf(grant)]
  if (WIDTH[word] > WIDTH[granted] || !areGrantedAddresses(wanted, grant)) return false
  if (namesTermination(wanted)) return false
  if (growth(wanted.grants) > growth(grant.grants)) return false
  if (!(wanted.publish ?? []).every((server) => grant.publish?.includes(server) === true)) return false
  const hosts = hostsMeant(wanted.allow, grant)
  // The hosts of a tool are only known where the operator has asked.
  if (hosts === undefined) return false
  if (granted === 'host') return true
  if (!(wanted.local ?? []).every((port) => grant.local?.includes(port) === true)) return false
  if (word === 'none') return true
  const judged = granted === 'record' ? hosts.filter((host) => !isPublicName(host)) : hosts
  return judged.every((host) => grant.allow.some((rule) => coversHost(rule, host)))
}

/** A recorded network reaches it without a list. Addresses and ports of this host must be listed. */
function isPublicName(host: string): boolean {
  const { pattern } = parseRule(host) ?? {}
  return pattern?.kind === 'below' || (pattern?.kind === 'name' && pattern.name !== LOCALHOST)
}

/** Only the operator may say which secret goes where, and whose TLS is ended, also where it would change nothing. */
const namesTermination = ({ terminate, credentials = [], requests = [] }: ParsedNetwork): boolean =>
  terminate !== undefined || credentials.length + requests.length > 0

/** How far the list may grow. */
const growth = (grants: GrantsChoice = 'no'): number => GRANTS.indexOf(grants)

/** A name leads where the operator says, or where the host's resolver does. */
const areGrantedAddresses = ({ hosts = {} }: ParsedNetwork, grant: NetworkPolicy): boolean =>
  Object.entries(hosts).every(([name, address]) => grant.hosts?.[name] === address)

/** The hosts of a request, in which the name of a tool means what the operator's own means; undefined where the operator has not named it. */
function hostsMeant(wanted: readonly string[], { tools = [] }: NetworkPolicy): readonly string[] | undefined {
  const known = tools.map(({ name }): string => name)
  if (!wanted.every((host) => !isToolRule(host) || known.includes(host))) return undefined
  return wanted.flatMap((host) => tools.find(({ name }) => name === host)?.hosts ?? [host])
}

/** `*.example.org:*` covers `a.example.org:22`, and `*.example.org` covers `*.a.example.org`: the same names, on the ports that are meant. */
export function coversHost(granted: string, wanted: string): boolean {
  const [outer, inner] = [parseRule(granted), parseRule(wanted)]
  return outer !== undefined && inner !== undefined && allowsAllOf(outer, inner)
}

/** The grant, narrowed by a request that is within it. */
function takeNetwork(wanted: ParsedNetwork, grant: NetworkPolicy, isFlagged: boolean): NetworkPolicy {
  const compared: ParsedNetwork = isFlagged ? { allow: [], deny: wanted.deny } : wanted
  const word = compared.mode ?? wordOf(grant)
  const deny = unite(grant.deny, compared.deny)
  const isListed = compared.mode === 'restricted' || compared.mode === 'record'
  const listed = isListed ? (hostsMeant(compared.allow, grant) ?? []) : grant.allow
  const isRestricted = modeOf(word) === 'restricted'
  const local = compared.local ?? (isListed ? [] : grant.local)
  const { record: _record, local: _local, publish: granted, grants: grown = 'no', afterSecrets, ...rest } = grant
  const grants = wanted.grants ?? grown
  const publish = compared.publish ?? granted
  return networkPolicy({
    ...rest,
    mode: modeOf(word),
    allow: isRestricted ? listed.filter((host) => !deny.includes(host)) : [],
    deny,
    local: isRestricted ? local : undefined,
    publish: isRestricted ? publish : undefined,
    record: word === 'record' || undefined,
    proxy: grant.proxy ?? wanted.proxy,
    grants: isRestricted && grants !== 'no' ? grants : undefined,
    afterSecrets: wanted.afterSecrets === 'deny' ? 'deny' : afterSecrets,
  })
}

type Shown = Omit<ParsedNetwork, 'mode' | 'deny' | 'proxy' | 'afterSecrets'> & { readonly mode?: string }

/** For people: `restricted (a.example, b.example)`. */
export function showNetwork({ mode, allow, local = [], publish = [], hosts = {}, grants, ...more }: Shown): string {
  const names = Object.entries(hosts).map(([name, address]) => `${name} at ${address}`)
  const servers = publish.map((server) => `published ${server}`)
  const all = [
    ...servers,
    ...showTermination(more),
    ...allow,
    ...local.map((port) => `port ${port} of this host`),
    ...names,
    ...(grants === undefined || grants === 'no' ? [] : [`more hosts: ${grants}`]),
  ]
  return all.length === 0 ? (mode ?? 'the same mode') : `${mode ?? 'restricted'} (${all.join(', ')})`
}

const showTermination = ({ terminate, credentials = [], requests = [] }: Partial<Shown>): readonly string[] => [
  ...(terminate === true ? ['TLS ended on the host'] : []),
  ...credentials.map(({ host, header, from }) => `${header} for ${host} of ${from}`),
  ...requests,
]

export const narrowNetwork: Narrowing<ParsedNetwork, NetworkPolicy> = {
  isWider: (wanted, granted) => !isWithinNetwork(wanted, granted),
  takes: takeNetwork,
  adds: true,
  shows: showNetwork,
  grants: (granted) => showNetwork({ ...granted, mode: wordOf(granted) }),
  fix: ({ mode, allow, local = [], publish = [] }) => {
    const flags = [
      ...publish.map((server) => `--publish ${server}`),
      ...allow.map((host) => `--allow-host ${host}`),
      ...local.map((port) => `--allow-local ${port}`),
    ]
    return flags.length === 0 ? `--net ${mode ?? 'restricted'}` : flags.join(' ')
  },
}
