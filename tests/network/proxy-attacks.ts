/** Attacks on the proxies of a restricted network: each with what it must meet, and the same form with a listed host. Data. */
import { WORLD, WORLD_V6 } from './world.ts'

export interface ProxyAttack {
  readonly what: string
  readonly port: 3128 | 1080
  /** Latin-1. */
  readonly sends: string
  /** The beginning of the answer. */
  readonly meets: string
  /** The same form with what is allowed, which is served. */
  readonly control: string
}

/** A server of the world says this to an allowed client. */
export const SERVED = 'from=::ffff:203.0.114.1'

const SAY = 'GET /say HTTP/1.0\r\n\r\n'
const connect = (target: string, version = 'HTTP/1.1'): string => `CONNECT ${target} ${version}\r\n\r\n${SAY}`
const get = (url: string, fields = ''): string => `GET ${url} HTTP/1.1\r\nHost: x\r\n${fields}\r\n`

const OK = { connect: connect('api.test:80'), get: get('http://api.test/say') }

interface Http {
  readonly what: string
  readonly sends: string
  readonly status?: number
  readonly control?: string
}

const http = ({ what, sends, status = 400, control = OK.get }: Http): ProxyAttack => ({
  what,
  port: 3128,
  sends,
  meets: `HTTP/1.1 ${status} `,
  control,
})

const CONNECTS: readonly (readonly [what: string, target: string, status: number])[] = [
  ['a name that is not listed', 'other.test:80', 403],
  ['a port that is not listed', 'api.test:7', 403],
  ['a literal IPv4 address', `${WORLD}:80`, 403],
  ['a literal IPv6 address', `[${WORLD_V6}]:80`, 403],
  ['an IPv4 address in IPv6', `[::ffff:${WORLD}]:80`, 403],
  ['the loopback of the host', '127.0.0.1:53', 403],
  ['the unspecified address', '0.0.0.0:53', 403],
  ['the place of the proxy itself', '198.18.0.1:3128', 403],
  ['a decimal address', '3405804042:80', 400],
  ['an octal address', '0313.0.0162.012:80', 400],
  ['a short address', '127.1:53', 400],
  ['an address with leading zeros', '203.000.114.010:80', 400],
  ['an IPv6 address with a zone', `[${WORLD_V6}%25lo]:80`, 400],
  ['an IPv6 address without brackets', `${WORLD_V6}:80`, 400],
  ['a name in brackets', '[api.test]:80', 400],
  ['an empty port', 'api.test:', 400],
  ['port 0', 'api.test:0', 400],
  ['a port beyond 65535', 'api.test:65616', 400],
  ['a user', 'api.test@other.test:80', 400],
  ['a percent in the name', 'api%2etest:80', 400],
  ['a NUL in the name', 'api.test\0.other.test:80', 400],
  ['a letter outside ASCII', 'äpi.test:80', 400],
  ['a path', 'api.test:80/say', 400],
  ['an empty label', 'api..test:80', 400],
  ['a listed name that leads to 127.0.0.1', 'loop.test:80', 403],
  ['a listed name that leads to the host itself', 'self.test:80', 403],
  ['a listed name that leads to 10.1.2.3', 'private.test:80', 403],
]

const URLS: readonly (readonly [what: string, url: string, status: number])[] = [
  ['a name that is not listed', 'http://other.test/say', 403],
  ['a listed name as its user', 'http://api.test@other.test/say', 400],
  ['a backslash', 'http://other.test\\@api.test/say', 400],
  ['another scheme', 'ftp://api.test/say', 400],
  ['https', 'https://api.test/say', 400],
  ['a path alone', '/say', 400],
  ['a listed name that leads to 10.1.2.3', 'http://private.test/say', 403],
]

const HEADS: readonly Http[] = [
  { what: 'a word too much', sends: 'GET http://api.test/say x HTTP/1.1\r\n\r\n' },
  { what: 'a tab', sends: 'GET\thttp://api.test/say HTTP/1.1\r\n\r\n' },
  { what: 'HTTP/2.0', sends: connect('api.test:80', 'HTTP/2.0'), control: OK.connect },
  { what: 'a lower-case method', sends: 'connect api.test:80 HTTP/1.1\r\n\r\n', control: OK.connect },
  { what: 'lines that end with LF', sends: 'GET http://api.test/say HTTP/1.1\nHost: x\r\n\r\n' },
  { what: 'a bare CR', sends: get('http://api.test/say', 'A: b\rHost: other.test\r\n') },
  { what: 'a NUL in a field', sends: get('http://api.test/say', 'A: \0\r\n') },
  { what: 'a folded line', sends: get('http://api.test/say', 'A: b\r\n c\r\n') },
  { what: 'a space before the colon', sends: get('http://api.test/say', 'Content-Length : 5\r\n') },
  { what: 'two lengths', sends: get('http://api.test/say', 'Content-Length: 5\r\nContent-Length: 6\r\n') },
  {
    what: 'a length and chunks',
    sends: get('http://api.test/say', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'),
  },
  { what: 'a length with a sign', sends: get('http://api.test/say', 'Content-Length: +5\r\n') },
  { what: 'a head of more than 8 KiB', sends: get('http://api.test/say', `A: ${'x'.repeat(9000)}\r\n`), status: 431 },
]

/** Greeting and request in one: a client may send them so, if it does not care for authentication. */
const socks = (request: string): string => `\x05\x01\0${request}`
const socksName = (name: string, port = 80, command = '\x01'): string =>
  socks(`\x05${command}\0\x03${String.fromCharCode(name.length)}${name}${socksPort(port)}${SAY}`)
const socksPort = (port: number): string => String.fromCharCode(port >> 8, port & 0xff)
const socksV4 = (address: string, port = 80): string =>
  socks(`\x05\x01\0\x01${String.fromCharCode(...address.split('.').map(Number))}${socksPort(port)}${SAY}`)

const GREETED = '\x05\0'
const SOCKS: readonly (readonly [what: string, sends: string, meets: string])[] = [
  ['a name that is not listed', socksName('other.test'), `${GREETED}\x05\x02`],
  ['a port that is not listed', socksName('api.test', 7), `${GREETED}\x05\x02`],
  ['BIND', socksName('api.test', 80, '\x02'), `${GREETED}\x05\x07`],
  ['UDP ASSOCIATE', socksName('api.test', 80, '\x03'), `${GREETED}\x05\x07`],
  ['a literal address', socksV4(WORLD), `${GREETED}\x05\x02`],
  ['the loopback of the host', socksV4('127.0.0.1', 53), `${GREETED}\x05\x02`],
  ['an address and a NUL as a name', socksName(`${WORLD}\0.api.test`), `${GREETED}\x05\x01`],
  ['a NUL in the name', socksName('api.test\0.other.test'), `${GREETED}\x05\x01`],
  ['a decimal address', socksName('3405804042'), `${GREETED}\x05\x01`],
  ['port 0', socksName('api.test', 0), `${GREETED}\x05\x01`],
  ['another kind of address', socks('\x05\x01\0\x02\x01\x02\x03\x04\0\x50'), `${GREETED}\x05\x08`],
  ['a listed name that leads to 127.0.0.1', socksName('loop.test'), `${GREETED}\x05\x02`],
  ['a password', `\x05\x01\x02${SAY}`, '\x05\xff'],
  ['version 4', `\x04\x01\0\x50\x01\x02\x03\x04\0${SAY}`, ''],
]

export const PROXY_ATTACKS: readonly ProxyAttack[] = [
  ...CONNECTS.map(([what, target, status]) =>
    http({ what: `CONNECT: ${what}`, sends: connect(target), status, control: OK.connect }),
  ),
  ...URLS.map(([what, url, status]) => http({ what: `URL: ${what}`, sends: get(url), status })),
  ...HEADS.map((row) => http(row)),
  ...SOCKS.map(
    ([what, sends, meets]): ProxyAttack => ({
      what: `SOCKS: ${what}`,
      port: 1080,
      sends,
      meets,
      control: socksName('api.test'),
    }),
  ),
]

/** An answer that comes late, is another one, or is a server's. */
export const isPassed = ({ meets }: ProxyAttack, answer: string): boolean =>
  !answer.startsWith(meets) ||
  /from=|TIMEOUT|timed out/.test(answer) ||
  (meets === '' && answer !== '' && answer !== 'RESET')
