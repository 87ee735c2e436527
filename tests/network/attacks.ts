/** Attacks on a restricted network, each with what it must meet, and what it meets on the host. Data. */
import { HOST, HOST_ANY, HOST_SECOND, HOST_V6, WORLD, WORLD_V6 } from './world.ts'

export interface Attack {
  readonly what: string
  /** A word of the program `try.py`: `tcp,HOST,PORT` or `udp,HOST,PORT`. */
  readonly attempt: string
  /** One of these errors must come, and no timeout. */
  readonly meets: readonly string[]
  /** The same attempt on the host; absent where it means nothing there. */
  readonly onHost?: string
}

const NO_NAME = ['EAI_NONAME']

/** One of each kind that is not in the list below. The host has a way to those that the world's routes take in. */
export const NOT_PUBLIC: Readonly<Record<string, { readonly address: string; readonly isReached?: true }>> = {
  'shared.private.test': { address: '100.64.1.2', isReached: true },
  'twelve.private.test': { address: '172.16.1.2', isReached: true },
  'sixteen.private.test': { address: '192.168.1.2', isReached: true },
  'assigned.private.test': { address: '192.0.0.8' },
  'example.private.test': { address: '192.0.2.8' },
  'bench.private.test': { address: '198.18.1.8' },
  'group.private.test': { address: '224.0.0.251' },
  'broadcast.private.test': { address: '255.255.255.255' },
  'unique.private.test': { address: 'fd00::8' },
  'link.private.test': { address: 'fe80::8' },
  'unspecified.private.test': { address: '::' },
  'sixtofour.private.test': { address: '2002:7f00:1::1', isReached: true },
  'teredo.private.test': { address: '2001::8' },
  'azure.private.test': { address: '168.63.129.16' },
  'isatap.private.test': { address: '2606:4700::5efe:7f00:1' },
  'own.isatap.private.test': { address: '2606:4700::200:5efe:7f00:1' },
}

const leadsTo = (address: string, name: string, onHost?: 'ok'): Attack => ({
  what: `a name that leads to ${address}`,
  attempt: `tcp,${name},80`,
  meets: NO_NAME,
  ...(onHost && { onHost }),
})

export const ATTACKS: readonly Attack[] = [
  { what: 'a literal address', attempt: `tcp,${WORLD},80`, meets: ['ENETUNREACH'], onHost: 'ok' },
  { what: 'a literal IPv6 address', attempt: `tcp,${WORLD_V6},80`, meets: ['ENETUNREACH'], onHost: 'ok' },
  { what: 'the loopback of the host', attempt: 'udp,127.0.0.1,53', meets: ['ECONNREFUSED'], onHost: 'ok' },
  { what: 'another name', attempt: 'tcp,other.test,80', meets: NO_NAME, onHost: 'ok' },
  { what: 'another port of a listed name', attempt: 'tcp,api.test,7', meets: ['ECONNREFUSED'], onHost: 'ok' },
  { what: 'a name above a wildcard', attempt: 'tcp,wild.test,80', meets: NO_NAME, onHost: 'ok' },
  { what: 'a denied name below a wildcard', attempt: 'tcp,b.wild.test,80', meets: NO_NAME, onHost: 'ok' },
  { what: 'a name below a listed one', attempt: 'tcp,secret.api.test,80', meets: NO_NAME, onHost: 'ok' },
  { what: 'a stand-in of no name', attempt: 'tcp,198.18.1.200,80', meets: ['ECONNREFUSED', 'ECONNRESET'] },
  { what: 'a stand-in that a wildcard has not given', attempt: 'tcp,198.18.64.200,80', meets: ['ECONNRESET'] },
  { what: 'the place where diverted connections arrive', attempt: 'tcp,198.18.0.1,1', meets: ['ECONNRESET'] },
  { what: 'another port of the name server', attempt: 'tcp,198.18.0.1,80', meets: ['ECONNREFUSED'] },
  { what: 'UDP to a listed name', attempt: 'udp,api.test,9', meets: ['EPERM'] },
  { what: 'UDP to an address', attempt: `udp,${WORLD},9`, meets: ['ENETUNREACH'] },
  leadsTo('127.0.0.1', 'loop.test', 'ok'),
  leadsTo('::1', 'loop6.test', 'ok'),
  leadsTo('::ffff:127.0.0.1', 'mapped.test'),
  leadsTo('64:ff9b::127.0.0.1', 'nat64.test', 'ok'),
  leadsTo(`64:ff9b::${HOST}`, 'self.nat64.test', 'ok'),
  leadsTo(`the 6to4 form of ${HOST}`, 'self.sixtofour.test', 'ok'),
  leadsTo('0.0.0.0', 'zero.test', 'ok'),
  leadsTo(`the host itself (${HOST})`, 'self.test', 'ok'),
  leadsTo(`a second address of the host (${HOST_SECOND})`, 'second.test', 'ok'),
  leadsTo(`a range that a route makes the host's (${HOST_ANY})`, 'any.test', 'ok'),
  leadsTo(`the host itself (${HOST_V6})`, 'self6.test', 'ok'),
  leadsTo('10.1.2.3', 'private.test', 'ok'),
  leadsTo('169.254.169.254', 'metadata.test', 'ok'),
  ...Object.entries(NOT_PUBLIC).map(([name, { address, isReached }]) => leadsTo(address, name, isReached && 'ok')),
]

/** Listed, all of them: the address stands in the way of those that lead to a bad one. */
export const ATTACKED: readonly string[] = [
  'api.test',
  '*.wild.test',
  'mixed.test',
  ...ATTACKS.filter(({ what }) => what.startsWith('a name that leads to')).map(
    ({ attempt }) => attempt.split(',')[1] ?? '',
  ),
]

/* ---- walls around the list; attempts are words of the program attack.py ---- */

/** Name of an abstract socket that the host listens at. */
export const ABSTRACT = 'llm-do-test-attack'
const NO_FAMILY = ['EAFNOSUPPORT', 'EPROTONOSUPPORT', 'EPERM']
const TAKEN = ['EADDRINUSE', 'EACCES']

export const WALLS: readonly Attack[] = [
  { what: 'a raw socket', attempt: 'raw', meets: NO_FAMILY, onHost: 'done' },
  { what: 'a packet socket', attempt: 'packet', meets: NO_FAMILY, onHost: 'done' },
  { what: 'a socket to the hypervisor', attempt: 'vsock', meets: NO_FAMILY, onHost: 'done' },
  { what: 'the socket of nftables', attempt: 'netfilter', meets: NO_FAMILY, onHost: 'done' },
  { what: 'the socket of IPsec', attempt: 'xfrm', meets: NO_FAMILY, onHost: 'done' },
  { what: 'an abstract socket', attempt: `abstract=${ABSTRACT}`, meets: ['ECONNREFUSED', 'EPERM'], onHost: 'done' },
  { what: 'an address that is not its own', attempt: 'transparent', meets: ['EPERM'], onHost: 'done' },
  { what: 'another route', attempt: 'route', meets: ['EPERM'], onHost: 'done' },
  { what: 'another address', attempt: 'address', meets: ['EPERM'], onHost: 'done' },
  { what: 'the place of the name server (UDP)', attempt: 'take=198.18.0.1,53,udp', meets: TAKEN },
  { what: 'the place of the name server (TCP)', attempt: 'take=198.18.0.1,53,tcp', meets: TAKEN },
  { what: 'the place of diverted connections', attempt: 'take=198.18.0.1,1,tcp', meets: TAKEN },
  // The control of the three: the place is taken or needs a capability, not the address.
  { what: 'a free place at the same address', attempt: 'take=198.18.0.1,1024,tcp', meets: ['done'] },
  { what: 'a UNIX socket with a name', attempt: 'sockets', meets: ['ENOENT'], onHost: 'done' },
  { what: 'a process that relays', attempt: 'processes=net', meets: ['ESRCH'], onHost: 'done' },
  // Last: on the host it leads to another network.
  { what: 'a namespace in which it is root', attempt: 'raise', meets: ['EPERM'], onHost: 'done' },
]
