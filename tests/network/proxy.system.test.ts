/** The proxies of a restricted network: programs that use one, and what a command may send to them. Each refusal has its allowed twin. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { describeWith } from '../support/needs.ts'
import { ATTACKED } from './attacks.ts'
import { isPassed, PROXY_ATTACKS, SERVED } from './proxy-attacks.ts'
import { ATTACKED_ZONE, allow, PYTHON, python, resultOf, shell } from './ways.ts'
import { openWorld, type World } from './world.ts'

let world: World
let profile: string
let program: string

const run = (words: readonly string[], command: readonly string[]): Promise<Result> =>
  resultOf({ through: world.through, words: ['--profile', profile, ...words], command })

interface Asked {
  readonly port: number
  readonly sends: string
}

/** Sends each of them to a proxy, one after the other. */
async function send(requests: readonly Asked[], words: readonly string[]): Promise<readonly string[]> {
  const asked = requests.map(({ port, sends }) => JSON.stringify([port, sends]))
  const { stdout, stderr } = await run(words, python(program, ...asked))
  expect(stderr).toBe('')
  return stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { answer: string }).answer)
}

const http = (sends: string): Asked => ({ port: 3128, sends })
const connect = (target: string): Asked => http(`CONNECT ${target} HTTP/1.1\r\n\r\n`)
const socks = (request: string): Asked => ({ port: 1080, sends: `\x05\x01\0${request}` })
const say = (host: string, fields = ''): string =>
  `GET http://${host}/say HTTP/1.1\r\nHost: other.test\r\n${fields}\r\n`

describeWith('root', 'the proxies of a restricted network', () => {
  beforeAll(async () => {
    world = await openWorld(ATTACKED_ZONE)
    program = await readFile(join(import.meta.dirname, 'programs/proxy.py'), 'utf8')
    profile = join(world.files, 'proxy.yaml')
    await writeFile(profile, 'sandbox: { network: { mode: restricted, proxy: on } }\n')
    const version = { name: 'tiny', version: '1.2.3' }
    const npm = { name: 'tiny', 'dist-tags': { latest: '1.2.3' }, versions: { '1.2.3': version } }
    await writeFile(join(world.files, 'tiny'), JSON.stringify(npm))
    await execa('sh', ['-ec', 'git init -q --bare repo.git && git -C repo.git update-server-info'], {
      cwd: world.files,
    })
    await mkdir(join(world.files, 'empty'))
  })
  afterAll(() => world?.close())

  /** Each asks for something of a host at port 80, by the proxy. */
  const CLIENTS: readonly (readonly [what: string, client: (host: string) => string, says: string])[] = [
    ['curl by its variables', (host) => `curl -sS -m 5 http://${host}/say`, SERVED],
    ['curl through a tunnel', (host) => `curl -sS -m 5 -p -x http://198.18.0.1:3128 http://${host}/say`, SERVED],
    ['curl by SOCKS', (host) => `curl -sS -m 5 -x socks5h://198.18.0.1:1080 http://${host}/say`, SERVED],
    ['wget', (host) => `wget -q -T 5 -O - http://${host}/say`, SERVED],
    ['git', (host) => `cd /tmp && git clone -q http://${host}/repo.git && echo cloned`, 'cloned'],
    [
      'urllib',
      (host) => `${PYTHON} -c 'import urllib.request as u; print(u.urlopen("http://${host}/say").read())'`,
      SERVED,
    ],
    ['npm', (host) => `npm view tiny version --registry http://${host}/ --fetch-retries 0`, '1.2.3'],
  ]
  const RULE = '\n==\n'
  const askedBy = (host: string): readonly string[] =>
    shell(CLIENTS.map(([, client]) => `(${client(host)}) 2>&1; printf '${RULE}'`).join('\n'))
  const served = ({ stdout }: Result): readonly string[] => {
    const said = stdout.split(RULE)
    return CLIENTS.flatMap(([what, , says], at) => (said[at]?.includes(says) ? [what] : []))
  }

  test('every program reaches a listed host and no other', async () => {
    const allowed = await run(allow('api.test'), askedBy('api.test'))
    expect(served(allowed)).toEqual(CLIENTS.map(([what]) => what))
    expect(allowed.denials).toEqual([])
    expect(allowed.network).toMatchObject([{ host: 'api.test', port: 80, verdict: 'allowed', rule: 'api.test' }])
    const denied = await run(allow('api.test'), askedBy('other.test'))
    expect(served(denied)).toEqual([])
    // With a port: the name was not looked up, the proxy was asked for a connection.
    expect(denied.denials).toMatchObject([
      { operation: 'connect', target: 'other.test:80', fix: '--allow-host other.test' },
    ])
  })

  test('a program that looks names up and asks the SOCKS proxy for an address reaches the name', async () => {
    const command = shell('curl -sS -m 5 -x socks5://198.18.0.1:1080 http://api.test/say')
    const { stdout, network } = await run(allow('api.test'), command)
    expect(stdout).toContain(SERVED)
    expect(network).toMatchObject([{ host: 'api.test', port: 80, verdict: 'allowed' }])
  })

  test('a refusal names the flag that allows it on one line', async () => {
    const lines = [
      ['http://other.test/', 'llm-do: other.test:80 is not allowed: --allow-host other.test\n'],
      ['http://api.test:81/', 'llm-do: api.test:81 is not allowed: --allow-host api.test:81\n'],
      [
        'http://private.test/',
        "llm-do: private.test:80 leads to 10.1.2.3, which is private or this host's own: --allow-host 10.1.2.3\n",
      ],
      ['http://denied.test/', 'llm-do: denied.test:80 is denied by --deny-host denied.test\n'],
      ['http://127.0.0.1/', 'llm-do: 127.0.0.1:80 means the sandbox itself, and the proxy leads out of it\n'],
    ] as const
    const words = [...allow('api.test', 'private.test'), '--deny-host', 'denied.test']
    const { stdout } = await run(words, ['curl', '-sS', '--noproxy', 'none', ...lines.map(([url]) => url)])
    expect(stdout).toBe(lines.map(([, line]) => line).join(''))
  })

  const chunks = 'POST http://api.test/say HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
  const firsts = { get: say('api.test'), chunks, length: say('api.test', 'Content-Length: 0\r\n') }
  const seconds = Object.entries(firsts).flatMap(([first, sends]) =>
    ['other.test', 'api.test', 'third.test'].map((second): readonly [string, Asked, RegExp] => [
      `a second request, for ${second} after ${first}, is not served`,
      http(sends + say(second)),
      /^HTTP\/1.1 200 (?!.*host=.*host=).*host=api.test /s,
    ]),
  )
  const ANSWERS: readonly (readonly [what: string, asked: Asked, answer: RegExp])[] = [
    ['the server gets the host that was judged', http(say('api.test')), /host=api.test from=::ffff:203.0.114.1\n/],
    ['a name below a wildcard needs no look-up', http(say('a.wild.test')), /host=a.wild.test /],
    ...seconds,
    // An address that means the sandbox is not dialled, even where a rule lists it for names. The name is the control.
    ['the loopback', connect('127.0.0.1:53'), /^HTTP\/1.1 403/],
    ['the place of the name server', connect('198.18.0.1:53'), /^HTTP\/1.1 403/],
    ['a name that leads to the listed loopback of the host', connect('loop.test:53'), /^HTTP\/1.1 200/],
    ['a listed host without a listener', connect('api.test:81'), /^HTTP\/1.1 502/],
    ['a listed name without an address', connect('nowhere.test:80'), /^HTTP\/1.1 502/],
    ['SOCKS: no listener', socks('\x05\x01\0\x03\x08api.test\0\x51'), /^\x05\0\x05\x05\0\x01\0{6}$/],
    ['SOCKS: no address', socks('\x05\x01\0\x03\x0cnowhere.test\0\x50'), /^\x05\0\x05\x04\0\x01\0{6}$/],
  ]

  test('each answer is about the judged host and one request', async () => {
    const words = allow('api.test:*', 'third.test', '*.wild.test', 'nowhere.test', '127.0.0.1:*', '198.18.0.1:*')
    const asked = ANSWERS.map(([, request]) => request)
    const answers = await send(asked, [...words, ...allow('loop.test:53')])
    const wrong = ANSWERS.map(([what, , expected], at) => ({ what, expected, answer: answers[at] ?? '' }))
    expect(wrong.filter(({ expected, answer }) => !expected.test(answer))).toEqual([])
  })

  test('the server gets the judged host, and not what follows a request', async () => {
    // The server of port 7 sends back what it gets.
    const script = `
import socket
with socket.create_connection(('198.18.0.1', 3128), 60) as s:
    s.sendall(b'GET http://api.test:7/first HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\nGET http://other.test/second HTTP/1.1\\r\\n\\r\\n')
    s.shutdown(socket.SHUT_WR)
    data = b''
    while (got := s.recv(65536)): data += got
print(b'GET /first' in data, b'Host: api.test:7' in data, b'other.test' in data, b'second' in data)`
    const { stdout, stderr } = await run(allow('api.test:7'), python(script))
    expect({ stdout, stderr }).toEqual({ stdout: 'True True False False\n', stderr: '' })
  })

  test('bodies arrive whole, by length and in chunks', async () => {
    const script = `
import http.client
def post(body, **how):
    c = http.client.HTTPConnection('198.18.0.1', 3128, timeout=60)
    c.request('POST', 'http://api.test/count', body=body, **how)
    return c.getresponse().read()
print(post(bytes(3 << 20)), post(iter([bytes(70000)] * 30), encode_chunked=True), post(b''))`
    const { stdout, stderr } = await run(allow('api.test'), python(script))
    expect({ stdout, stderr }).toEqual({
      stdout: "b'3145728 bytes\\n' b'2100000 bytes\\n' b'0 bytes\\n'\n",
      stderr: '',
    })
  })

  test('every attack is refused without a wait, and the same form with a listed host is served', async () => {
    const words = allow(...ATTACKED)
    const met = await send(PROXY_ATTACKS, words)
    const wrong = PROXY_ATTACKS.map((attack, at) => ({ ...attack, met: met[at] ?? 'nothing' })).filter(
      // The refusal is the proxy's: a server would refuse some of them, too.
      (attack) => isPassed(attack, attack.met) || (attack.port === 3128 && !attack.met.includes('\r\n\r\nllm-do: ')),
    )
    expect(wrong).toEqual([])
    const controls = [...new Set(PROXY_ATTACKS.map(({ port, control }) => JSON.stringify({ port, sends: control })))]
    const answers = await send(
      controls.map((control) => JSON.parse(control)),
      words,
    )
    expect(answers.map((answer) => answer.includes(SERVED))).toEqual(controls.map(() => true))
  })

  test('without the request there is neither a proxy nor a variable', async () => {
    const command = shell('env | grep -i _proxy=; curl -sS -x http://198.18.0.1:3128 http://api.test/say')
    const { stdout, stderr } = await resultOf({ through: world.through, words: allow('api.test'), command })
    expect(stdout).toBe('')
    expect(stderr).toContain('Failed to connect to 198.18.0.1 port 3128')
    const asked = await run(allow('api.test'), shell('env | grep -i _proxy='))
    expect(asked.stdout.split('\n').filter(Boolean)).toHaveLength(9)
  })
})
