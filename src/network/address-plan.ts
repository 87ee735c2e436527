/**
 * Gives each name an address inside a sandbox, and selects the ports that lead out: decided with the plan, so it is the same in
 * every run of it. Pure.
 *
 * All addresses are of 198.18.0.0/15, which RFC 2544 keeps for benchmarks: no host has them, and browsers take them for public ones.
 * Names with the same ports share a block, so the kernel needs one rule a block and port, however many names there are.
 */
import { NET_OWN_RANGES } from '../contract.ts'
import { type AddressRange, parseRange, printRange, rangeCovers } from './address.ts'
import {
  allowedPorts,
  type HostPattern,
  type HostRule,
  type HostRules,
  judge,
  LOCAL_NAME,
  LOCALHOST,
  patternCovers,
  printPattern,
  printRule,
} from './host-rule.ts'

export interface StandIn {
  /** IPv4 addresses in CIDR notation. */
  readonly addresses: string
  /** A name, or `*.NAME`: each name below it gets one of the addresses when it is first asked for. */
  readonly pattern: string
}

export interface Diversion {
  readonly addresses: string
  readonly port: number | '*'
}

export interface AddressPlan {
  readonly standIns: readonly StandIn[]
  /** Connections that go to the helper; the kernel itself refuses every other port. */
  readonly diversions: readonly Diversion[]
}

/** 198.18.1.0 up to 198.18.63.255 for names, from there up to the end of the range for wildcards. */
const FIRST_NAME = 0xc6120100
const FIRST_WILDCARD = 0xc6124000
const WILDCARD_BITS = 10
/** For every name that is reached while a network is recorded, and for those that are allowed while the command runs. */
const FIRST_RECORDED = 0xc613c000
const RECORDED_BITS = 14

export const MAX_NAMES = 4096
export const MAX_WILDCARDS = (FIRST_RECORDED - FIRST_WILDCARD) >> WILDCARD_BITS
/** Kernel rules. */
export const MAX_DIVERSIONS = 256
/** Each has two listeners inside. */
export const MAX_LOOPBACK = 16

/** Addresses of the sandbox itself, or of no host: a listed one permits names that lead there, and is not diverted. */
const OWN_RANGES = NET_OWN_RANGES.split(' ').flatMap((text) => parseRange(text) ?? [])

const isOwn = (range: AddressRange): boolean => OWN_RANGES.some((own) => rangeCovers(own, range))
const holdsOwn = (range: AddressRange): boolean => !isOwn(range) && OWN_RANGES.some((own) => rangeCovers(range, own))

type Ports = readonly number[] | '*'

/** The ports on which something of the pattern may be reachable: all that allow rules name, without what is denied for all of it. */
function portsOf(rules: HostRules, pattern: HostPattern): Ports {
  if (rules.canGrow === true) return '*'
  const covering = rules.allow.filter((rule) => patternCovers(rule.pattern, pattern)).map(allowedPorts)
  if (covering.includes('*')) return '*'
  const ports = [...new Set(covering.flat() as readonly number[])].sort((a, b) => a - b)
  return ports.filter((port) => judge(rules, pattern, port).isAllowed)
}

const ipv4 = (address: number): string => [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.')

const RECORDED: StandIn = { addresses: `${ipv4(FIRST_RECORDED)}/${32 - RECORDED_BITS}`, pattern: '*' }

const portList = (ports: Ports): readonly (number | '*')[] => (ports === '*' ? ['*'] : ports)

interface Block {
  readonly patterns: readonly string[]
  readonly ports: Ports
  readonly first: number
  readonly bits: number
}

/** Blocks of a power of two, one behind the other, each at a multiple of its size. */
function blocksOf(groups: readonly Pick<Block, 'patterns' | 'ports'>[]): readonly Block[] {
  let free = FIRST_NAME
  return groups.map((group) => {
    const bits = Math.ceil(Math.log2(group.patterns.length))
    const first = Math.ceil(free / 2 ** bits) * 2 ** bits
    free = first + 2 ** bits
    return { ...group, first, bits }
  })
}

const uniquePatterns = (rules: HostRules, kind: HostPattern['kind']): readonly HostPattern[] => {
  const patterns = rules.allow.map(({ pattern }) => pattern).filter((pattern) => pattern.kind === kind)
  return [...new Map(patterns.map((pattern) => [printPattern(pattern), pattern])).values()]
}

function planNames(rules: HostRules): AddressPlan {
  const named = uniquePatterns(rules, 'name').map((pattern) => ({
    name: printPattern(pattern),
    ports: portsOf(rules, pattern),
  }))
  const open = named.filter(({ ports }) => ports.length > 0)
  const keyOf = (ports: Ports): string => portList(ports).join(' ')
  const keys = [...new Set(open.map(({ ports }) => keyOf(ports)))]
  const groups = keys.map((key) => open.filter(({ ports }) => keyOf(ports) === key))
  const blocks = blocksOf(
    groups.map((group) => ({ patterns: group.map(({ name }) => name), ports: group[0]?.ports ?? [] })),
  )
  return {
    standIns: blocks.flatMap(({ patterns, first }) =>
      patterns.map((pattern, at) => ({ addresses: ipv4(first + at), pattern })),
    ),
    diversions: blocks.flatMap(({ ports, first, bits }) =>
      portList(ports).map((port) => ({ addresses: `${ipv4(first)}/${32 - bits}`, port })),
    ),
  }
}

function planWildcards(rules: HostRules): AddressPlan {
  const wildcards = uniquePatterns(rules, 'below')
    .map((pattern) => ({ pattern: printPattern(pattern), ports: portsOf(rules, pattern) }))
    .filter(({ ports }) => ports.length > 0)
    .map((wildcard, at) => ({
      ...wildcard,
      addresses: `${ipv4(FIRST_WILDCARD + (at << WILDCARD_BITS))}/${32 - WILDCARD_BITS}`,
    }))
  return {
    standIns: wildcards.map(({ addresses, pattern }) => ({ addresses, pattern })),
    diversions: wildcards.flatMap(({ addresses, ports }) => portList(ports).map((port) => ({ addresses, port }))),
  }
}

function planRanges(rules: HostRules): readonly Diversion[] {
  return uniquePatterns(rules, 'range').flatMap((pattern) => {
    if (pattern.kind !== 'range' || isOwn(pattern.range)) return []
    return portList(portsOf(rules, pattern)).map((port) => ({ addresses: printRange(pattern.range), port }))
  })
}

/** Ports of the sandbox's own loopback that lead to the host's. Only what a rule names: no wildcard and no recorded network means this host. */
export function loopbackPorts(rules: HostRules): readonly number[] {
  const named = rules.allow.filter(({ pattern }) => pattern.kind === 'name' && pattern.name === LOCALHOST)
  const ports = new Set(named.flatMap(({ port }) => (typeof port === 'number' ? [port] : [])))
  return [...ports].filter((port) => judge(rules, { kind: 'name', name: LOCALHOST }, port).isAllowed)
}

export function planAddresses(rules: HostRules): AddressPlan {
  const [names, wildcards] = [planNames(rules), planWildcards(rules)]
  const recorded = rules.canGrow === true || uniquePatterns(rules, 'any').length > 0 ? [RECORDED] : []
  return {
    standIns: [...names.standIns, ...wildcards.standIns, ...recorded],
    diversions: [
      ...names.diversions,
      ...wildcards.diversions,
      ...recorded.map(({ addresses }): Diversion => ({ addresses, port: '*' })),
      ...planRanges(rules),
    ],
  }
}

/** Inside, an address of the loopback is the sandbox's own: a rule about one says where another name may lead. */
function uselessRanges(rules: HostRules): readonly string[] {
  const mayLeadThere = ({ pattern }: HostRule) =>
    pattern.kind !== 'range' && !(pattern.kind === 'name' && [LOCALHOST, LOCAL_NAME].includes(pattern.name))
  if (rules.canGrow === true || rules.allow.some(mayLeadThere)) return []
  return rules.allow
    .filter(({ pattern }) => pattern.kind === 'range' && isOwn(pattern.range))
    .map(
      (rule) =>
        `network.allow: expected a name that leads to it as well, or a port of this host (--allow-host ${LOCALHOST}:${rule.port ?? 'PORT'}), got ${printRule(rule)}.`,
    )
}

/** Problems of a policy that cannot be planned. */
export function addressProblems(rules: HostRules): readonly string[] {
  const ranges = uniquePatterns(rules, 'range').filter((pattern) => pattern.kind === 'range' && holdsOwn(pattern.range))
  const counts = [
    { what: 'names', max: MAX_NAMES, count: uniquePatterns(rules, 'name').length },
    { what: 'wildcards', max: MAX_WILDCARDS, count: uniquePatterns(rules, 'below').length },
    { what: `ports of ${LOCALHOST}`, max: MAX_LOOPBACK, count: loopbackPorts(rules).length },
    {
      what: 'groups of names, wildcards and ranges, times their ports',
      max: MAX_DIVERSIONS,
      count: planAddresses(rules).diversions.length,
    },
  ]
  return [
    ...uselessRanges(rules),
    ...ranges.map(
      (pattern) => `network.allow: expected a range without the sandbox's own addresses, got ${printPattern(pattern)}.`,
    ),
    ...counts
      .filter(({ count, max }) => count > max)
      .map(({ what, max, count }) => `network.allow: expected at most ${max} ${what}, got ${count}.`),
  ]
}
