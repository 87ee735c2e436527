/** The proxies of a restricted network: programs that are told of one, and what a command may send to them. Each refusal has its allowed twin. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { ATTACKED } from './attacks.ts'
import { PROXY_ATTACKS, SERVED } from './proxy-attacks.ts'
import { AT_ONCE_MS, ATTACKED_ZONE, needsOf, PYTHON, WAYS, type Way } from './ways.ts'
import { openWorld, type World } from './world.ts'

const PROFILE = 'sandbox: { network: { mode: restricted, proxy: on } }\n'

let world: World
let profile: Awaited<ReturnType<typeof newDirectory>>
let program: string

async function run(words: readonly string[], command: readonly string[], way: Way = WAYS[0]): Promise<Result> {
  const argv = ['--json', '--profile', join(profile.path, 'proxy.yaml'), '--engine', way.engine, ...words, '--']
  const { stdout, stderr } = await runCli([...argv, ...command], { through: world.through, as: way.as })
  expect(stdout.toString(), stderr.toString()).toMatch(/^{/)
  return JSON.parse(stdout.toString()) as Result
}

const shell = (command: string): readonly string[] => ['sh', '-c', command]

interface Answer {
  readonly answer: string
  readonly ms: number
}

/** Sends each of them to a proxy, one after the other. */
async function send(
  requests: readonly { readonly port: number; readonly sends: string }[],
  words: readonly string[],
  way: Way = WAYS[0],
): Promise<readonly Answer[]> {
  const asked = requests.map(({ port, sends }) => JSON.stringify([port, sends]))
  const { stdout, stderr } = await run(words, [PYTHON, '-c', program, ...asked], way)
  expect(stderr).toBe('')
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer)
}

const allow = (...hosts: readonly string[]): readonly string[] => hosts.flatMap((host) => ['--allow-host', host])

describeWith('root', 'the proxies of a restricted network', () => {
  beforeAll(async () => {
    world = await openWorld(ATTACKED_ZONE)
    profile = await newDirectory({ mode: 0o755 })
    program = await readFile(join(import.meta.dirname, 'programs/proxy.py'), 'utf8')
    await writeFile(join(profile.path, 'proxy.yaml'), PROFILE)
    const npm = {
      name: 'tiny',
      'dist-tags': { latest: '1.2.3' },
      versions: { '1.2.3': { name: 'tiny', version: '1.2.3' } },
    }
    await writeFile(join(world.files, 'tiny'), JSON.stringify(npm))
    await execa('sh', ['-ec', 'git init -q --bare repo.git && git -C repo.git update-server-info'], {
      cwd: world.files,
    })
    await mkdir(join(world.files, 'empty'))
  })
  afterAll(async () => {
    await world.close()
    await profile.remove()
  })

  /** Each asks for something of a host at port 80, by the proxy. */
  const CLIENTS: readonly (readonly [what: string, client: (host: string) => string, says: string])[] = [
    ['curl by its variables', (host) => `curl -sS -m 5 http://${host}/say`, SERVED],
    ['curl -x', (host) => `curl -sS -m 5 -x http://198.18.0.1:3128 http://${host}/say`, SERVED],
    ['curl through a tunnel', (host) => `curl -sS -m 5 -p -x http://198.18.0.1:3128 http://${host}/say`, SERVED],
    ['curl by SOCKS', (host) => `curl -sS -m 5 -x socks5h://198.18.0.1:1080 http://${host}/say`, SERVED],
    ['wget', (host) => `wget -q -T 5 -O - http://${host}/say`, SERVED],
    ['git', (host) => `cd /tmp && git clone -q http://${host}/repo.git && echo cloned`, 'cloned'],
    [
      'urllib',
      (host) => `${PYTHON} -c 'import urllib.request as u; print(u.urlopen("http://${host}/say").read())'`,
      SERVED,
    ],
    [
      'requests',
      (host) =>
        `${PYTHON} -c 'from pip._vendor import requests; r = requests.get("http://${host}/say"); r.raise_for_status(); print(r.text)'`,
      SERVED,
    ],
    ['npm', (host) => `npm view tiny version --registry http://${host}/ --fetch-retries 0`, '1.2.3'],
  ]

  test.each(CLIENTS)('%s reaches a listed host and no other', { timeout: 60_000 }, async (_, client, says) => {
    const allowed = await run(allow('api.test'), shell(client('api.test')))
    expect(allowed).toMatchObject({ exitCode: 0, denials: [] })
    expect(allowed.stdout).toContain(says)
    expect(allowed.network).toMatchObject([{ host: 'api.test', port: 80, verdict: 'allowed', rule: 'api.test' }])
    const denied = await run(allow('api.test'), shell(client('other.test')))
    expect(denied.stdout).not.toContain(says)
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

  test('a name below a wildcard is reached, and nobody has to have looked it up', async () => {
    const [answer] = await send(
      [{ port: 3128, sends: 'GET http://a.wild.test/say HTTP/1.1\r\n\r\n' }],
      allow('*.wild.test'),
    )
    expect(answer?.answer).toContain('host=a.wild.test')
  })

  test('a refusal says in one line which flag allows it', async () => {
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

  test('what a listed host does not answer is told apart from what is refused', async () => {
    const asked = [
      { port: 3128, sends: 'CONNECT api.test:81 HTTP/1.1\r\n\r\n' },
      { port: 3128, sends: 'CONNECT nowhere.test:80 HTTP/1.1\r\n\r\n' },
      { port: 1080, sends: '\x05\x01\0\x05\x01\0\x03\x08api.test\0\x51' },
      { port: 1080, sends: '\x05\x01\0\x05\x01\0\x03\x0cnowhere.test\0\x50' },
    ]
    const answers = await send(asked, allow('api.test:*', 'nowhere.test'))
    expect(answers.map(({ answer }) => answer.slice(0, 12))).toEqual([
      'HTTP/1.1 502',
      'HTTP/1.1 502',
      '\x05\0\x05\x05\0\x01\0\0\0\0\0\0',
      '\x05\0\x05\x04\0\x01\0\0\0\0\0\0',
    ])
  })

  test('bodies arrive whole, by length and in chunks', async () => {
    const script = `
import http.client
def post(body, **how):
    c = http.client.HTTPConnection('198.18.0.1', 3128, timeout=5)
    c.request('POST', 'http://api.test/count', body=body, **how)
    return c.getresponse().read()
print(post(bytes(3 << 20)), post(iter([bytes(70000)] * 30), encode_chunked=True), post(b''))`
    const { stdout, stderr } = await run(allow('api.test'), [PYTHON, '-c', script])
    expect({ stdout, stderr }).toEqual({
      stdout: "b'3145728 bytes\\n' b'2100000 bytes\\n' b'0 bytes\\n'\n",
      stderr: '',
    })
  })

  const say = (host: string, fields = ''): string =>
    `GET http://${host}/say HTTP/1.1\r\nHost: other.test\r\n${fields}\r\n`

  test('the host that the server hears is the one that was judged', async () => {
    const [answer] = await send([{ port: 3128, sends: say('api.test') }], allow('api.test'))
    expect(answer?.answer).toContain(`host=api.test ${SERVED}`)
  })

  test('a second request on the same connection is not served, whichever host it names', async () => {
    const chunks = 'POST http://api.test/say HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    const asked = ['other.test', 'api.test', 'third.test'].flatMap((second) => [
      { port: 3128, sends: say('api.test') + say(second) },
      { port: 3128, sends: chunks + say(second) },
      { port: 3128, sends: say('api.test', 'Content-Length: 0\r\n') + say(second) },
    ])
    const words = allow('api.test', 'third.test')
    const answers = await send(asked, words)
    expect(answers.map(({ answer }) => answer.match(/host=\S+/g))).toEqual(asked.map(() => ['host=api.test']))
    // The control: each is served on a connection of its own.
    const alone = await send([{ port: 3128, sends: say('api.test') }], words)
    expect(alone[0]?.answer).toContain(SERVED)
  })

  describe.each(WAYS)('$engine as $as', (way) => {
    testWith(
      needsOf(way),
      'every attack is refused at once, and the same form with a listed host is served',
      async () => {
        const words = allow(...ATTACKED)
        const met = await send(PROXY_ATTACKS, words, way)
        const wrong = PROXY_ATTACKS.map((attack, at) => ({ ...attack, met: met[at] })).filter(
          ({ meets, met: got }) =>
            got === undefined ||
            !got.answer.startsWith(meets) ||
            got.answer.includes('from=') ||
            got.ms > AT_ONCE_MS ||
            (meets === '' && got.answer !== '' && got.answer !== 'RESET'),
        )
        expect(wrong).toEqual([])
        const controls = [
          ...new Set(PROXY_ATTACKS.map(({ port, control }) => JSON.stringify({ port, sends: control }))),
        ]
        const served = await send(
          controls.map((control) => JSON.parse(control)),
          words,
          way,
        )
        expect(served.map(({ answer }) => answer.includes(SERVED))).toEqual(controls.map(() => true))
      },
    )
  })

  test('an address that means the sandbox is not dialled, even where a rule lists it for names', async () => {
    const words = allow('127.0.0.1:*', '198.18.0.1:*', 'loop.test:53')
    const asked = ['127.0.0.1:53', '198.18.0.1:53'].map((target) => ({
      port: 3128,
      sends: `CONNECT ${target} HTTP/1.1\r\n\r\n`,
    }))
    const answers = await send([...asked, { port: 3128, sends: 'CONNECT loop.test:53 HTTP/1.1\r\n\r\n' }], words)
    // The last one is the control: a name that leads to the host's loopback, which is listed, reaches the name server there.
    expect(answers.map(({ answer }) => answer.slice(0, 12))).toEqual(['HTTP/1.1 403', 'HTTP/1.1 403', 'HTTP/1.1 200'])
  })

  test('a client that does not say where it wants to go is sent away, and does not keep others waiting', {
    timeout: 40_000,
  }, async () => {
    const script = `
import select, socket, time
begun = time.monotonic()
slow = [socket.create_connection(('198.18.0.1', port), 20) for port in (3128, 1080)]
slow[0].sendall(b'GET http://api'), slow[1].sendall(bytes([5]))
with socket.create_connection(('198.18.0.1', 3128), 5) as s:
    s.sendall(b'GET http://api.test/say HTTP/1.1\\r\\n\\r\\n')
    print(b'from=' in s.recv(4096) + s.recv(4096), select.select(slow, [], [], 0)[0])
print([s.recv(1) for s in slow], time.monotonic() - begun >= 10)`
    const { stdout, stderr } = await run([...allow('api.test'), '--timeout', '30s'], [PYTHON, '-c', script])
    expect({ stdout, stderr }).toEqual({ stdout: "True []\n[b'', b''] True\n", stderr: '' })
  })

  test('300 connections at once are all served', async () => {
    const script = `
import socket
all = [socket.create_connection(('198.18.0.1', 3128), 20) for _ in range(300)]
for s in all: s.sendall(b'CONNECT api.test:7 HTTP/1.1\\r\\n\\r\\nx'); s.shutdown(socket.SHUT_WR)
def whole(s):
    data = b''
    while (got := s.recv(1000)): data += got
    return data
print(sum(whole(s).endswith(b'hello\\nx') for s in all))`
    const { stdout, stderr } = await run(allow('api.test:7'), [PYTHON, '-c', script])
    expect({ stdout, stderr }).toEqual({ stdout: '300\n', stderr: '' })
  })

  test('without the request there is neither a proxy nor a variable', async () => {
    const command = shell('env | grep -i _proxy; curl -sS -x http://198.18.0.1:3128 http://api.test/say')
    const argv = ['--json', '--allow-host', 'api.test', '--', ...command]
    const { stdout } = await runCli(argv, { through: world.through })
    const result = JSON.parse(stdout.toString()) as Result
    expect(result.stdout).toBe('')
    expect(result.stderr).toContain('Failed to connect to 198.18.0.1 port 3128')
    const asked = await run(allow('api.test'), shell('env | grep -i _proxy= | sort'))
    expect(asked.stdout.split('\n').filter(Boolean)).toHaveLength(9)
  })
})
