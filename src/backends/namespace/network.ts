/** The network of a plan in the words of the launch file. Pure. */
import { loopbackPorts, planAddresses } from '../../network/address-plan.ts'
import {
  allowedPorts,
  deniedPorts,
  type HostRule,
  LOCAL_NAME,
  LOCALHOST,
  parseRule,
  printPattern,
  printRule,
  rulesOf,
} from '../../network/host-rule.ts'
import { loopbackListeners, planListeners } from '../../network/listeners.ts'
import { terminatedHosts } from '../../network/termination.ts'
import type { PlannedNetwork } from '../../plan/plan.ts'
import { hasProxy } from '../../plan/proxy-variables.ts'
import { parsePublished } from '../../policy/readers.ts'
import type { NetworkPolicy } from '../../policy/values.ts'
import type { LaunchRecord } from './launch-file.ts'

/**
 * The mode, and for a restricted network: the address for each name, the diversions to the helper, and the helper's rules.
 * @param authorization for the operator's proxy: a secret, of a run that starts now
 */
export function networkRecords(network: PlannedNetwork, authorization?: string): readonly LaunchRecord[] {
  if (network.mode !== 'restricted') return [['net', network.mode]]
  const rules = rulesOf(network)
  const plan = planAddresses(rules)
  const { standIns, diversions } = plan
  const by = network.by ?? 'nftables'
  const listeners = by === 'listeners' ? planListeners(rules, plan) : loopbackListeners(rules)
  return [
    ['net', 'restricted'],
    ['net-by', by],
    ...standIns.map(({ addresses, pattern }): LaunchRecord => ['net-name', addresses, pattern]),
    ...diversions.map(({ addresses, port }): LaunchRecord => ['net-divert', addresses, port]),
    ...listeners.map(({ address, port }): LaunchRecord => ['net-listen', address, port]),
    ...(network.publish ?? []).flatMap(publishedRecord),
    ...hostRecords(LOCALHOST, loopbackPorts(rules)),
    ...ownNames(network),
    ...rules.allow.map((rule) => ruleRecord('net-allow', rule, allowedPorts(rule))),
    ...rules.deny.map((rule) => ruleRecord('net-deny', rule, deniedPorts(rule))),
    ...terminatedHosts(network).map(({ host, port }): LaunchRecord => ['net-terminate', host, port]),
    ...(hasProxy(network) ? [['net-proxy'] as const] : []),
    ...upstreamRecords(network, authorization),
    ...(network.grants === undefined ? [] : [['net-grants', network.grants] satisfies LaunchRecord]),
  ]
}

function upstreamRecords({ upstream }: PlannedNetwork, authorization = 'none'): readonly LaunchRecord[] {
  if (upstream === undefined) return []
  const { host, port, direct } = upstream
  return [
    ['net-upstream', host, port, authorization],
    ...direct
      .flatMap((text) => parseRule(text) ?? [])
      .map((rule) => ruleRecord('net-direct', rule, allowedPorts(rule))),
  ]
}

function publishedRecord(text: string): readonly LaunchRecord[] {
  const published = parsePublished(text)
  return published === undefined ? [] : [['net-publish', published.address, published.port, published.inside]]
}

/** Names that are answered without a query. */
function ownNames({ hosts = {}, local = [] }: NetworkPolicy): readonly LaunchRecord[] {
  return [
    ...hostRecords(LOCAL_NAME, local),
    ...Object.entries(hosts).map(([name, address]): LaunchRecord => ['net-host', name, address, 'none']),
  ]
}

/** Loopback is open on the listed ports, and for this name alone. */
function hostRecords(name: string, ports: readonly number[]): readonly LaunchRecord[] {
  return ports.length === 0 ? [] : LOOPBACK.map((address) => ['net-host', name, address, ports.join(' ')])
}

const LOOPBACK = ['127.0.0.1', '::1']

function ruleRecord(
  verb: 'net-allow' | 'net-deny' | 'net-direct',
  rule: HostRule,
  ports: readonly number[] | '*',
): LaunchRecord {
  return [verb, printPattern(rule.pattern), ports === '*' ? '*' : ports.join(' '), printRule(rule)]
}
