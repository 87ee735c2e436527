/**
 * Plans the listeners inside a sandbox where the kernel has no nftables to divert connections. Pure.
 *
 * All addresses of the plan are local to the sandbox, so an accepted socket has the address that was dialled for its own, and the helper
 * judges by it as always. A port of few addresses has a listener at each, so its other addresses refuse connections, and the command may
 * listen there itself. A port of many (wildcards, ranges) has one listener for all addresses: what is not allowed is accepted and reset.
 *
 * A port of the loopback that leads to the host has listeners with nftables, too: the command cannot bind it, so no client of a server
 * inside ever meets the host's in its place.
 */
import { NET_PROXY_PORT, NET_SOCKS_PORT } from '../contract.ts'
import { parseRange, printRange, rangeCovers } from './address.ts'
import { type AddressPlan, type Diversion, loopbackPorts, planAddresses } from './address-plan.ts'
import type { HostRules } from './host-rule.ts'

export interface Listener {
  /** `0.0.0.0` and `::` mean all addresses. */
  readonly address: string
  readonly port: number
}

/** They go to the helper in one message, with those of the name server, the proxies and the stock (native/lib/net-protocol.h: NET_SOCKETS_MAX). */
export const MAX_LISTENERS = 116
/** Where the sandbox's own address is listened on: by its name server and its proxies. */
const OWN_PORTS: readonly number[] = [53, NET_PROXY_PORT, NET_SOCKS_PORT]

const isV4 = ({ addresses }: Diversion): boolean => !addresses.includes(':')
const allOf = (diversion: Diversion): string => (isV4(diversion) ? '0.0.0.0' : '::')

/** One by one; none where they are too many for that. */
function fewAddresses({ addresses }: Diversion, { standIns }: AddressPlan): readonly string[] {
  const range = parseRange(addresses)
  if (range === undefined || standIns.length > MAX_LISTENERS) return []
  if (range.length === 128) return [printRange(range)]
  return standIns.map((standIn) => standIn.addresses).filter((address) => isWithin(address, range))
}

function isWithin(text: string, outer: Parameters<typeof rangeCovers>[0]): boolean {
  const address = parseRange(text)
  return address?.length === 128 && rangeCovers(outer, address)
}

/** Diversions of one port in one address family. */
function byPort(diversions: readonly Diversion[]): readonly (readonly [port: number, of: readonly Diversion[]])[] {
  const ports = [...new Set(diversions.flatMap(({ port }) => (port === '*' ? [] : [port])))]
  return ports.flatMap((port) => {
    const same = diversions.filter((diversion) => diversion.port === port)
    return [same.filter(isV4), same.filter((diversion) => !isV4(diversion))].flatMap((of) =>
      of.length === 0 ? [] : [[port, of] as const],
    )
  })
}

function listenersFor(plan: AddressPlan, isEach: boolean): readonly Listener[] {
  return byPort(plan.diversions).flatMap(([port, of]) => {
    const few = of.map((diversion) => fewAddresses(diversion, plan))
    const addresses = isEach && few.every(({ length }) => length > 0) ? new Set(few.flat()) : new Set(of.map(allOf))
    return [...addresses].map((address) => ({ address, port }))
  })
}

const ALL = { '127.0.0.1': '0.0.0.0', '::1': '::' } as const

/** @param others that may take all addresses */
export function loopbackListeners(rules: HostRules, others: readonly Listener[] = []): readonly Listener[] {
  const isTaken = (all: string, at: number) => others.some(({ address, port }) => address === all && port === at)
  return loopbackPorts(rules).flatMap((port) =>
    Object.entries(ALL).flatMap(([address, all]) => (isTaken(all, port) ? [] : [{ address, port }])),
  )
}

export function planListeners(rules: HostRules, plan = planAddresses(rules)): readonly Listener[] {
  const withLoopback = (isEach: boolean): readonly Listener[] => {
    const listeners = listenersFor(plan, isEach)
    return [...listeners, ...loopbackListeners(rules, listeners)]
  }
  const each = withLoopback(true)
  return each.length <= MAX_LISTENERS ? each : withLoopback(false)
}

/** Why listeners cannot do what the rules say; undefined when they can. */
export function listenerObstacle(rules: HostRules): string | undefined {
  if (rules.canGrow === true) return 'hosts can be added while the command runs (network.grants)'
  const plan = planAddresses(rules)
  const listeners = planListeners(rules, plan)
  if (plan.diversions.some(({ port }) => port === '*')) return 'a rule is for every port'
  const own = listeners.find(({ address, port }) => ['0.0.0.0', '::'].includes(address) && OWN_PORTS.includes(port))
  if (own !== undefined)
    return `a wildcard or range is for port ${own.port}, where the sandbox's own name server or proxy listens`
  if (listeners.length > MAX_LISTENERS) return `the rules are for more than ${MAX_LISTENERS} ports`
  return undefined
}
