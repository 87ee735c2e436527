/**
 * Rules of a restricted network: which hosts, on which ports. Pure. native/net/rules.c judges by the same rules while a sandbox runs;
 * tests/network/judgements.yaml is the table of both.
 */
import { NET_LOCAL_NAME } from '../contract.ts'
import { type AddressRange, embeddedRange, isIpv4, parseRange, printRange, rangeCovers } from './address.ts'

/** Ports of a rule that allows a host and names none. */
export const DEFAULT_PORTS: readonly number[] = [80, 443]

/** Stands for the host's own loopback, on the ports of `network.local`. */
export const LOCAL_NAME = NET_LOCAL_NAME

/** Inside, the name of the sandbox's own loopback; of a port that a rule allows, that of the host's. */
export const LOCALHOST = 'localhost'

/** A name, all names below one (`*.example.org`, which is not `example.org`), addresses, or every name, which has no spelling. */
export type HostPattern =
  | { readonly kind: 'any' }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'below'; readonly name: string }
  | { readonly kind: 'range'; readonly range: AddressRange }

export interface HostRule {
  readonly pattern: HostPattern
  /** Absent: the rule names no port. */
  readonly port?: number | '*'
}

const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/
/** URL parsers and libc take a name with such an end for an IPv4 address in another spelling. */
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/

/** Lower case, without one final dot; undefined for an invalid host name. Names in other alphabets have to come as A-labels. */
export function canonicalName(text: string): string | undefined {
  const name = text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).replace(/\.$/, '')
  const labels = name.split('.')
  if (name.length > 253 || !labels.every((label) => LABEL.test(label)) || NUMBER.test(labels.at(-1) ?? ''))
    return undefined
  return name
}

/** `example.org`, `*.example.org:443`, `example.org:*`, `192.0.2.1`, `192.0.2.0/24:22`, `[2001:db8::1]:443`, `[2001:db8::/32]`. */
export function parseRule(text: string): HostRule | undefined {
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::(\*|\d{1,5}))?$/.exec(text)
  const pattern = match === null ? undefined : parsePattern(match[1] ?? '')
  const port = match?.[2] === undefined || match[2] === '*' ? match?.[2] : Number(match[2])
  if (pattern === undefined || (typeof port === 'number' && (port < 1 || port > 65_535))) return undefined
  return { pattern, ...(port === undefined ? {} : { port: port as number | '*' }) }
}

function parsePattern(text: string): HostPattern | undefined {
  const isBracketed = text.startsWith('[')
  const range = parseRange(isBracketed ? text.slice(1, -1) : text)
  if (range !== undefined && isBracketed === text.includes(':')) return { kind: 'range', range }
  if (isBracketed) return undefined
  const isBelow = text.startsWith('*.')
  const name = canonicalName(isBelow ? text.slice(2) : text)
  return name === undefined ? undefined : { kind: isBelow ? 'below' : 'name', name }
}

/** The pattern as launch files have it. */
export function printPattern(pattern: HostPattern): string {
  if (pattern.kind === 'range') return printRange(pattern.range)
  if (pattern.kind === 'any') return '*'
  return pattern.kind === 'below' ? `*.${pattern.name}` : pattern.name
}

/** In canonical form, as policies, plans and messages have it. */
export function printRule({ pattern, port }: HostRule): string {
  const text = printPattern(pattern)
  const host = pattern.kind === 'range' && !isIpv4(pattern.range) ? `[${text}]` : text
  return port === undefined ? host : `${host}:${port}`
}

/** True when all that `inner` means is meant by `outer`, too. */
export function patternCovers(outer: HostPattern, inner: HostPattern): boolean {
  if (outer.kind === 'range' || inner.kind === 'range')
    return outer.kind === 'range' && inner.kind === 'range' && rangeCovers(outer.range, inner.range)
  if (outer.kind === 'any' || inner.kind === 'any') return outer.kind === 'any'
  if (outer.kind === 'name') return inner.kind === 'name' && inner.name === outer.name
  return inner.name.endsWith(`.${outer.name}`) || (inner.kind === 'below' && inner.name === outer.name)
}

export const allowedPorts = ({ port }: HostRule): readonly number[] | '*' =>
  port === undefined ? DEFAULT_PORTS : port === '*' ? '*' : [port]

/** The ports that a rule denies: all where it names none. */
export const deniedPorts = ({ port }: HostRule): readonly number[] | '*' =>
  port === undefined || port === '*' ? '*' : [port]

const includesPort = (ports: readonly number[] | '*', port: number): boolean => ports === '*' || ports.includes(port)

/** True when every host and port of the rule `inner` is allowed by the rule `outer`. */
export function allowsAllOf(outer: HostRule, inner: HostRule): boolean {
  const [wide, wanted] = [allowedPorts(outer), allowedPorts(inner)]
  const hasPorts = wide === '*' || (wanted !== '*' && wanted.every((port) => wide.includes(port)))
  return hasPorts && patternCovers(outer.pattern, inner.pattern)
}

export interface HostRules {
  readonly allow: readonly HostRule[]
  readonly deny: readonly HostRule[]
  /** Rules can be added while the sandbox runs. */
  readonly canGrow?: true
}

export interface Judgement {
  readonly isAllowed: boolean
  /** The rule that decided; absent where none covers the host, which is then denied. */
  readonly rule?: HostRule
}

/** A denied IPv4 address is denied in its IPv6 forms, too. */
function denies({ pattern }: HostRule, host: HostPattern): boolean {
  const embedded = host.kind === 'range' ? embeddedRange(host.range) : undefined
  return (
    patternCovers(pattern, host) ||
    (embedded !== undefined && patternCovers(pattern, { kind: 'range', range: embedded }))
  )
}

/** Deny wins over allow, and what no rule allows is denied. `host`: a canonical name, or an address. */
export function judge({ allow, deny }: HostRules, host: HostPattern, port: number): Judgement {
  const denial = deny.find((rule) => denies(rule, host) && includesPort(deniedPorts(rule), port))
  if (denial !== undefined) return { isAllowed: false, rule: denial }
  const grant = allow.find((rule) => patternCovers(rule.pattern, host) && includesPort(allowedPorts(rule), port))
  return grant === undefined ? { isAllowed: false } : { isAllowed: true, rule: grant }
}

/** The parts of a policy that become rules. */
export interface WrittenRules {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  readonly local?: readonly number[]
  readonly record?: true
  readonly grants?: string
}

const parseAll = (texts: readonly string[]): readonly HostRule[] => texts.flatMap((text) => parseRule(text) ?? [])

/** The rule by which a network that is recorded lets every name through; the last one, so that rows name a written one first. */
const RECORD: HostRule = { pattern: { kind: 'any' }, port: '*' }

/** The rules of a policy, which has them in canonical form. */
export function rulesOf({ allow, deny, local = [], record, grants }: WrittenRules): HostRules {
  const own = local.map((port): HostRule => ({ pattern: { kind: 'name', name: LOCAL_NAME }, port }))
  return {
    allow: [...parseAll(allow), ...own, ...(record === true ? [RECORD] : [])],
    deny: parseAll(deny),
    ...(grants === undefined ? {} : { canGrow: true }),
  }
}
