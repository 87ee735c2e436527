/** What a command may try against a restricted network: each attack with what it must meet, and what it meets on the host. Data. */
import { HOST, HOST_ANY, HOST_SECOND, HOST_V6, WORLD, WORLD_V6 } from './world.ts'

export interface Attack {
  readonly what: string
  /** A line of the program `try.py`: `tcp,HOST,PORT` or `udp,HOST,PORT`. */
  readonly attempt: string
  /** Errors of which one must come, at once. */
  readonly meets: readonly string[]
  /** What the same attempt meets on the host; absent where it means nothing there. */
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
}

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
  {
    what: 'a stand-in of a wildcard that nobody has asked for',
    attempt: 'tcp,198.18.64.200,80',
    meets: ['ECONNRESET'],
  },
  { what: 'the place where diverted connections arrive', attempt: 'tcp,198.18.0.1,1', meets: ['ECONNRESET'] },
  { what: 'another port of the name server', attempt: 'tcp,198.18.0.1,80', meets: ['ECONNREFUSED'] },
  { what: 'UDP to a listed name', attempt: 'udp,api.test,9', meets: ['EPERM'] },
  { what: 'UDP to an address', attempt: `udp,${WORLD},9`, meets: ['ENETUNREACH'] },
  { what: 'a name that leads to 127.0.0.1', attempt: 'tcp,loop.test,80', meets: NO_NAME, onHost: 'ok' },
  { what: 'a name that leads to ::1', attempt: 'tcp,loop6.test,80', meets: NO_NAME, onHost: 'ok' },
  { what: 'a name that leads to ::ffff:127.0.0.1', attempt: 'tcp,mapped.test,80', meets: NO_NAME },
  { what: 'a name that leads to 64:ff9b::127.0.0.1', attempt: 'tcp,nat64.test,80', meets: NO_NAME, onHost: 'ok' },
  {
    what: `a name that leads to 64:ff9b::${HOST}`,
    attempt: 'tcp,self.nat64.test,80',
    meets: NO_NAME,
    onHost: 'ok',
  },
  {
    what: `a name that leads to the 6to4 form of ${HOST}`,
    attempt: 'tcp,self.sixtofour.test,80',
    meets: NO_NAME,
    onHost: 'ok',
  },
  { what: 'a name that leads to 0.0.0.0', attempt: 'tcp,zero.test,80', meets: NO_NAME, onHost: 'ok' },
  { what: `a name that leads to the host itself (${HOST})`, attempt: 'tcp,self.test,80', meets: NO_NAME, onHost: 'ok' },
  {
    what: `a name that leads to a second address of the host (${HOST_SECOND})`,
    attempt: 'tcp,second.test,80',
    meets: NO_NAME,
    onHost: 'ok',
  },
  {
    what: `a name that leads to a range that a route makes the host's (${HOST_ANY})`,
    attempt: 'tcp,any.test,80',
    meets: NO_NAME,
    onHost: 'ok',
  },
  {
    what: `a name that leads to the host itself (${HOST_V6})`,
    attempt: 'tcp,self6.test,80',
    meets: NO_NAME,
    onHost: 'ok',
  },
  { what: 'a name that leads to 10.1.2.3', attempt: 'tcp,private.test,80', meets: NO_NAME, onHost: 'ok' },
  { what: 'a name that leads to 169.254.169.254', attempt: 'tcp,metadata.test,80', meets: NO_NAME, onHost: 'ok' },
  ...Object.entries(NOT_PUBLIC).map(
    ([name, { address, isReached }]): Attack => ({
      what: `a name that leads to ${address}`,
      attempt: `tcp,${name},80`,
      meets: NO_NAME,
      ...(isReached && { onHost: 'ok' }),
    }),
  ),
]

/** All names of the attacks that lead to a bad address are listed: the address is what stands in the way. */
export const ATTACKED = [
  'api.test',
  '*.wild.test',
  'loop.test',
  'loop6.test',
  'mapped.test',
  'nat64.test',
  'self.nat64.test',
  'self.sixtofour.test',
  'zero.test',
  'self.test',
  'second.test',
  'any.test',
  'self6.test',
  'private.test',
  'metadata.test',
  'mixed.test',
  ...Object.keys(NOT_PUBLIC),
] as const
