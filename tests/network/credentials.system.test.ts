import { readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { kernelThat } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { newerNodes } from '../support/nodes.ts'
import { packageCopy } from '../support/package.ts'
import { readOr, until } from '../support/processes.ts'
import { openTerminationWorld, type TerminationWorld } from './termination-world.ts'
import { PYTHON, WAYS, type Way } from './ways.ts'

let site: TerminationWorld

const SECRET = 'hidden-7c1f0d'
const CREDENTIAL = `{ host: api.test, header: Authorization, from: "env:TOKEN", format: "Bearer {}" }`

interface Run {
  readonly network?: string
  readonly words?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly way?: Way
  readonly engine?: string
  readonly through?: readonly string[]
}

async function profileOf(network: string): Promise<string> {
  const path = join(site.directory, `profile-${Math.random().toString(36).slice(2)}.yaml`)
  await writeFile(path, `sandbox:\n  network:\n${network.replace(/^/gm, '    ')}\n`)
  await chmod(path, 0o644)
  return path
}

const NETWORK = `terminate: true\nallow: [ api.test, other.test ]\ncredentials: [ ${CREDENTIAL} ]`

async function start(
  command: readonly string[],
  { network = NETWORK, words = [], env = { TOKEN: SECRET }, way = WAYS[0], ...more }: Run = {},
) {
  const profile = await profileOf(network)
  const argv = ['--json', '--profile', profile, '--engine', more.engine ?? way.engine, ...words, '--', ...command]
  return runCli(argv, { through: more.through ?? site.world.through, as: way.as, env })
}

async function run(command: readonly string[], options: Run = {}): Promise<Result> {
  const { stdout, stderr } = await start(command, options)
  try {
    return JSON.parse(stdout.toString()) as Result
  } catch {
    throw new Error(`${stdout}${stderr}`)
  }
}

const curl = (url: string, ...words: readonly string[]) => ['curl', '-sS', '-m', '20', ...words, url]

/** Sends bytes over TLS, and prints the status of each answer. */
const RAW = `
import re, ssl, socket, sys
for attack in sys.argv[1:]:
    data = b''
    try:
        with ssl.create_default_context().wrap_socket(socket.create_connection(('api.test', 443), 10), server_hostname='api.test') as s:
            s.sendall(attack.encode().decode('unicode_escape').encode('latin1'))
            s.settimeout(1)
            while (got := s.recv(65536)): data += got
    except (OSError, ssl.SSLError): pass
    print(','.join(code.decode() for code in re.findall(rb'HTTP/1.1 (\\d+)', data)) or 'closed')`

/** The same for a protocol that goes on: what the server says, and what it sends back. */
const SOCKET = `
import ssl, socket, sys
for request in sys.argv[1:]:
    with ssl.create_default_context().wrap_socket(socket.create_connection(('api.test', 443), 10), server_hostname='api.test') as s:
        s.sendall(request.encode().decode('unicode_escape').encode())
        data = b''
        while b'\\n' not in data.partition(b'\\r\\n\\r\\n')[2]: data += s.recv(65536)
        if b' 101 ' in data:
            s.sendall(b'ping\\n')
            data += s.recv(100)
        print(data.decode()[9:], end='')`

const terminatorsOf = (): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readOr(`/proc/${name}/cmdline`).includes('dist/terminator.cjs\0'))
    .map(Number)

/** KiB, while it lives. */
async function peakOf(pid: number): Promise<number> {
  const peak = (): number => Number(/^VmHWM:\s+(\d+)/m.exec(readOr(`/proc/${pid}/status`))?.[1] ?? 0)
  for (let last = peak(); ; ) {
    await sleep(50)
    const now = peak()
    if (now === 0) return last
    last = now
  }
}

describeWith('root', 'credentials that stay outside', () => {
  beforeAll(async () => {
    site = await openTerminationWorld()
  })
  afterAll(() => site?.close())

  test.each(WAYS)(
    'the header arrives, and nothing inside, in the result or in the log has it ($engine, $as)',
    async (way) => {
      const { path: logs, remove } = await newDirectory({ owner: way.as })
      const log = join(logs, 'audit')
      const script = `curl -sS -m 20 https://api.test/hello | grep -c 'Bearer ${SECRET.slice(0, 3)}'
      env; cat /proc/*/environ /proc/*/cmdline /proc/self/mountinfo 2>/dev/null; cat /etc/.llm-do/* | tail -3
      grep -rsl ${SECRET.slice(0, 6)} /etc /run /tmp /home /workspace /var; true`
      const { stdout, stderr } = await start(
        ['sh', '-c', script.replace(SECRET.slice(0, 6), '"$0"'), SECRET.slice(0, 6)],
        {
          way,
          words: ['--audit', log],
        },
      )
      const result = JSON.parse(stdout.toString()) as Result
      expect(result.stderr).toBe('')
      expect(result.stdout.split('\n')[0]).toBe('1')
      expect(await site.requests()).toContain('GET /hello')
      for (const text of [stdout, stderr, await readFile(log)]) expect(text.toString()).not.toContain(SECRET)
      expect((await readFile(log)).toString()).toContain('api.test')
      await remove()
    },
  )

  test('neither the plan nor a file of the caller has the secret', async () => {
    const { path: home, remove } = await newDirectory()
    const env = { TOKEN: SECRET, HOME: home }
    const { stdout } = await start(['true'], { words: ['--plan=json'], env })
    await start(['true'], { env })
    const { stdout: files } = await execa('grep', ['-rl', SECRET, home, '/run/llm-do'], { reject: false })
    await remove()
    expect(JSON.parse(stdout.toString()).network.credentials).toEqual([
      { host: 'api.test', header: 'Authorization', from: 'env:TOKEN', format: 'Bearer {}' },
    ])
    expect([stdout.toString(), files].join('')).not.toContain(SECRET)
  })

  test('the secret of a file arrives, too, and headers of the same name that the command sends do not', async () => {
    const file = join(site.directory, 'token')
    await writeFile(file, `${SECRET}\n`)
    const network = `terminate: true\nallow: [ api.test ]\ncredentials: [ { host: api.test, header: X-Key, from: "file:${file}" } ]`
    const { stdout } = await run(
      curl('https://api.test/own', '-H', 'X-Key: mine', '-H', 'x-key: too', '-H', 'Other: kept'),
      { network },
    )
    const { rawHeaders } = JSON.parse(stdout) as { rawHeaders: readonly string[] }
    expect(stdout).not.toMatch(/mine|too/)
    expect(rawHeaders.filter((name) => name.toLowerCase() === 'x-key')).toEqual(['X-Key'])
    expect(stdout).toContain(`"X-Key","${SECRET}"`)
    expect(stdout).toContain('"Other","kept"')
  })

  test('other hosts are not looked into, and get nothing', async () => {
    const issuers = `for host in api.test other.test; do curl -svm 20 https://$host/ 2>&1 | grep -E 'issuer|earer'; done`
    const { stdout } = await run(['sh', '-c', issuers])
    expect(stdout).toMatch(/issuer: CN=llm-do run [0-9a-f]{16}\n.*Bearer hidden.*\n.*issuer: CN=ca\n$/)
  })

  test('every program trusts the certificates: curl, git, node, Python, requests, npm, openssl', async () => {
    const clients = {
      curl: 'curl -sS https://api.test/client',
      git: 'git clone -q https://api.test/repo.git cloned && cat cloned/note',
      node: `node -e 'fetch("https://api.test/client").then((r) => r.text()).then(console.log)'`,
      python: `/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("https://api.test/client").read().decode())'`,
      requests: `/usr/bin/python3 -c 'import requests; print(requests.get("https://api.test/client").text)'`,
      npm: `npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --registry https://api.test/npm/ tiny >log 2>&1; tail -n 5 log; node -p 'require("tiny")'`,
      openssl: `printf 'GET /client HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -servername api.test -connect api.test:443 2>/dev/null`,
    }
    for (const [name, script] of Object.entries(clients)) {
      const { stdout, stderr } = await run(['sh', '-c', `cd "$HOME"; ${script}`], { words: ['--timeout', '90s'] })
      expect({ name, stdout, stderr }).toEqual({
        name,
        stderr: '',
        stdout: expect.stringMatching(/Bearer hidden|^noted\n$|from=tiny/),
      })
    }
  })

  test('methods and paths outside of network.requests are refused, and reported', async () => {
    const network = `${NETWORK}\nrequests: [ "GET api.test/org/*", "POST api.test/exact" ]`
    const tried = [
      'GET /org/a?b=/../c',
      'POST /exact',
      'GET /',
      'POST /org/a',
      'GET /org/../x',
      'GET /org/%2e%2E/x',
      'GET /org/..;/x',
      'GET /org//x',
      'GET /exact',
      'POST /exact/more',
      'HEAD /org/a',
    ]
    const script = tried.map((one) => {
      const [method = '', path = ''] = one.split(' ')
      return `curl -sS -o /dev/null -w '%{http_code}\\n' ${method === 'HEAD' ? '-I' : `-X ${method}`} --path-as-is 'https://api.test${path}'`
    })
    const { stdout, network: rows, denials } = await run(['sh', '-c', script.join('\n')], { network })
    const codes = stdout.trim().split('\n')
    expect(Object.fromEntries(tried.map((one, index) => [one, codes[index]]))).toEqual(
      Object.fromEntries(tried.map((one, index) => [one, index < 2 ? '200' : '403'])),
    )
    expect(rows).toContainEqual(
      expect.objectContaining({
        host: 'api.test',
        port: 443,
        verdict: 'refused',
        request: 'POST /org/a',
        connections: 1,
      }),
    )
    expect(denials).toContainEqual({
      layer: 'network',
      operation: 'request',
      target: 'api.test: GET /',
      count: 1,
      fix: 'network.requests: [ "GET api.test/" ]',
      key: 'network.requests',
      evidence: 'sandbox',
    })
    expect((await site.requests()).filter((one) => /\/x$|exact\/more/.test(one))).toEqual([])
  })

  test('a connection is for its own name only: another one by SNI, none, and another by Host are refused', async () => {
    const script = `
      curl -sSm 20 --connect-to other.test:443:api.test:443 https://other.test/ >/dev/null 2>&1; echo $?
      curl -sSm 20 -H 'Host: other.test' https://api.test/named
      printf 'GET /nameless HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n' | openssl s_client -quiet -noservername -connect api.test:443 2>/dev/null
      curl -sSm 20 http://api.test/plain`
    const { stdout, network } = await run(['sh', '-c', script])
    expect(stdout).toMatch(
      /^35\nllm-do: the connection is for api.test, and the request is for other.test\nllm-do: api.test is reached by TLS only/,
    )
    const refused = network?.filter(({ verdict }) => verdict === 'refused').map(({ request }) => request)
    expect(refused?.sort()).toEqual(['Host other.test', 'SNI ', 'SNI other.test', 'plain HTTP'])
    expect((await site.requests()).filter((one) => /nameless|named|plain/.test(one))).toEqual([])
  })

  test('a server whose certificate this host does not trust gets no request', async () => {
    const network = `terminate: true\nallow: [ "stranger.test:9443", "api.test:8443" ]\ncredentials: [ { host: "stranger.test:9443", header: X-Key, from: env:TOKEN }, { host: "api.test:8443", header: X-Key, from: env:TOKEN } ]`
    const script = 'curl -sS https://stranger.test:9443/untrusted; curl -sS https://api.test:8443/trusted'
    const { stdout } = await run(['sh', '-c', script], { network })
    expect(stdout).toMatch(/^llm-do: stranger.test: (unable to|self-signed)[^\n]*\n\{.*\/trusted/)
    expect((await site.requests()).filter((one) => one.includes('trusted'))).toEqual(['GET /trusted'])
  })

  test('nothing is smuggled past the limits', async () => {
    const network = `${NETWORK}\nrequests: [ "* api.test/allowed" ]`
    const attacks = [
      'POST /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'POST /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nTransfer-Encoding: chunked\\r\\nTransfer-Encoding: identity\\r\\n\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'POST /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nTransfer-Encoding: xchunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'POST /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: 0\\r\\nContent-Length: 44\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'GET /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nHost: other.test\\r\\n\\r\\n',
      'GET /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nX: a\\r\\n GET /smuggled HTTP/1.1\\r\\n\\r\\n',
      'GET /allowed HTTP/1.1\\nHost: api.test\\nX: a\\n\\nGET /smuggled HTTP/1.1\\nHost: api.test\\n\\n',
      'GET https://api.test/smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'GET /allowed#/../smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'TRACE /allowed HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'CONNECT api.test:443 HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'GET /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\nHTTP2-Settings: AAMAAABk\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'GET /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nContent-Length: 44\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n',
      'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n',
    ]
    const before = await site.requests()
    const { stdout, stderr } = await run([PYTHON, '-c', RAW, ...attacks], { network })
    expect(stderr).toBe('')
    const answers = stdout.trim().split('\n')
    expect(answers).toHaveLength(attacks.length)
    expect(answers.filter((one) => !/^(400|403|405|421|closed)$/.test(one))).toEqual([])
    const got = (await site.requests()).slice(before.length)
    expect(got.filter((one) => one !== 'GET /allowed' && one !== 'POST /allowed')).toEqual([])
    // What is in order passes, and one request may follow the other.
    const good =
      'GET /allowed HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n'
    expect((await run([PYTHON, '-c', RAW, good], { network })).stdout).toBe('200,403\n')
    // A length behind more fields than node keeps: its body is the body of one request.
    const head = `GET /allowed HTTP/1.1\\r\\nHost: api.test\\r\\n${'a:\\r\\n'.repeat(2100)}Transfer-Encoding: chunked`
    const hidden = `${head}\\r\\n\\r\\n2a\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n\\r\\n0\\r\\n\\r\\n`
    expect((await run([PYTHON, '-c', RAW, hidden], { network })).stdout).toBe('200\n')
    expect(await site.requests()).not.toContain('GET /smuggled')
  })

  test('an answer that cannot be passed on is an error of its own request, and of nothing else', async () => {
    const script = `for path in odd/reason odd/status after; do curl -sS -m 20 -o out -w '%{http_code} ' https://api.test/$path; grep -o 'llm-do: .*\\|Bearer' out; done`
    const { stdout, warnings } = await run(['sh', '-c', `cd /tmp; ${script}`])
    expect(stdout).toMatch(
      /^502 llm-do: api.test: Invalid character.*\n502 llm-do: api.test: Invalid status.*\n200 Bearer\n$/,
    )
    expect(warnings.join()).not.toContain('terminator')
  })

  test('HTTP/2 is not offered', async () => {
    const script = `
import ssl, socket
context = ssl.create_default_context()
context.set_alpn_protocols(['h2', 'http/1.1'])
with context.wrap_socket(socket.create_connection(('api.test', 443)), server_hostname='api.test') as s: print(s.selected_alpn_protocol(), s.version())`
    expect((await run([PYTHON, '-c', script])).stdout).toBe('http/1.1 TLSv1.3\n')
  })

  test('a WebSocket passes where its path is allowed, with the header, and nowhere else', async () => {
    const network = `${NETWORK}\nrequests: [ "GET api.test/socket" ]`
    const upgrade = (path: string) =>
      `GET ${path} HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Key: a\\r\\n\\r\\n`
    const { stdout } = await run([PYTHON, '-c', SOCKET, upgrade('/socket'), upgrade('/other')], { network })
    expect(stdout).toMatch(/^101 .*Bearer hidden.*ping\n403 /s)
  })

  test('long bodies arrive whole both ways, with slow readers, in bounded memory', async () => {
    const script = `
      head -c 50000000 /dev/zero | curl -sS -m 60 -T - https://api.test/upload | grep -o '"size":[0-9]*'
      head -c 3000000 /dev/zero | curl -sS -m 60 -H 'Expect: 100-continue' --data-binary @- https://api.test/upload | grep -o '"size":[0-9]*'
      curl -sS -m 60 https://api.test/large | wc -c
      curl -sS -m 60 --limit-rate 20M https://api.test/large | wc -c
      curl -sS -m 60 https://api.test/closing https://api.test/closing https://api.test/large | wc -c
      curl -sS -m 60 https://api.test/cut; echo " $?"; sleep 3`
    const running = run(['bash', '-c', script], { words: ['--timeout', '120s'] })
    const terminator = await until('a terminator', () => terminatorsOf()[0])
    const { stdout } = await Promise.all([running, peakOf(terminator)]).then(([result, peak]) => {
      expect(peak).toBeLessThan(256 * 1024)
      return result
    })
    expect(stdout).toBe(`"size":50000000\n"size":3000000\n67108864\n67108864\n${67108864 + 16}\nbegun 18\n`)
  })

  test('a hundred connections at once are all served', async () => {
    const script = `for i in $(seq 100); do curl -sS -m 60 https://api.test/at-once?$i & done | grep -c 'Bearer hidden'; wait`
    const { stdout, stderr } = await run(['bash', '-c', script], { words: ['--timeout', '120s'] })
    expect({ stdout, stderr }).toEqual({ stdout: '100\n', stderr: '' })
  })

  test('connections count while they last: six hundred one after the other are served', async () => {
    const script = `
import ssl, socket
context = ssl.create_default_context()
def once(i):
    with context.wrap_socket(socket.create_connection(('api.test', 443), 20), server_hostname='api.test') as s:
        s.sendall(b'GET /again HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n')
        data = b''
        while (got := s.recv(65536)): data += got
        return b'Bearer hidden' in data
print(sum(once(i) for i in range(600)))`
    expect((await run([PYTHON, '-c', script], { words: ['--timeout', '120s'] })).stdout).toBe('600\n')
  })

  test('by a proxy and without nftables it is the same', async () => {
    const script = `curl -sSm 20 https://api.test/proxied | grep -c Bearer; curl -sSm 20 http://api.test/plain-proxied; curl -sSm 20 -x socks5h://198.18.0.1:1080 https://api.test/socks | grep -c Bearer`
    const through = [
      ...site.world.through,
      ...(await kernelThat([{ refuses: ['socket'], with: 'EPROTONOSUPPORT', only: { argument: 2, value: 12 } }])),
    ]
    for (const way of [site.world.through, through]) {
      const { stdout } = await run(['sh', '-c', script], { network: `${NETWORK}\nproxy: on`, through: way })
      expect(stdout).toMatch(/^1\nllm-do: api.test is reached by TLS only[^\n]*\n1\n$/)
    }
  })

  test('the authority is another one for each run, and its key and certificate are nowhere on this host', async () => {
    const last = ['sh', '-c', 'tail -n 5 /etc/.llm-do/ca-bundle.pem']
    const before = join(site.directory, 'before')
    await writeFile(before, '')
    const [one, two] = [await run(last), await run(last)]
    expect(one.stdout).toContain('END CERTIFICATE')
    expect(one.stdout).not.toBe(two.stdout)
    const line = one.stdout.split('\n')[1] ?? ''
    // No program can set back when a file was last changed (ctime): older ones need not be read.
    const words = ['/etc/ssl', '/run/llm-do', '/tmp', '-type', 'f', '-cnewer', before]
    const grep = ['-exec', 'grep', '-lsF', '--', line, '{}', '+']
    const holders = async () => (await execa('find', [...words, ...grep], { reject: false })).stdout
    expect(await holders()).toBe('')
    const control = join(site.directory, 'control')
    await writeFile(control, line)
    expect(await holders()).toBe(control)
  })

  test('without termination nothing of it is there: no process, no certificates, no variables', async () => {
    const network = 'allow: [ api.test ]'
    const running = run(
      ['sh', '-c', 'sleep 2; ls /etc/.llm-do; env | grep -c CERT; curl -sv https://api.test 2>&1 | grep issuer'],
      { network },
    )
    await site.world.helper()
    expect(terminatorsOf()).toEqual([])
    expect((await running).stdout).toMatch(/^0\n.*issuer: CN=ca\n$/)
  })

  test('the terminator has no secret in its words and variables, no root, and ends with the run', async () => {
    const running = run(['sleep', '2'])
    const pid = await until('a terminator', () => terminatorsOf()[0])
    const own = /^Uid:\t(19\d{8})\t\1\t\1\t\1$/m
    await until('an id of its own', () => (own.test(readOr(`/proc/${pid}/status`)) ? true : undefined))
    const [words, variables] = ['cmdline', 'environ'].map((name) => readOr(`/proc/${pid}/${name}`))
    expect(words).toContain('terminator')
    expect(`${words}${variables}`).not.toContain(SECRET)
    await running
    expect(readOr(`/proc/${pid}/comm`)).toBe('')
  })

  test('a killed terminator takes its hosts with it, and the result says so', async () => {
    const { path: gate, remove } = await newDirectory()
    const script = `until [ -e ${gate}/open ]; do sleep 0.1; done
      curl -sSm 20 https://api.test/late; curl -sSm 20 https://other.test/ | grep -c other`
    const running = run(['sh', '-c', script], { words: ['--ro', gate] })
    const terminator = await until('a terminator', () => terminatorsOf()[0])
    await site.world.helper()
    process.kill(terminator, 'SIGKILL')
    await writeFile(join(gate, 'open'), '')
    const { stdout, warnings } = await running
    await remove()
    expect(stdout).toBe('1\n')
    expect(warnings).toContainEqual(expect.stringContaining('the terminator ended before the command'))
    expect(await site.requests()).not.toContain('GET /late')
  })

  test.each(['net', 'launch', 'runner'])('nothing is left of the terminator when %s is killed', async (which) => {
    const running = start(['sleep', '60'])
    const terminator = await until('a terminator', () => terminatorsOf()[0])
    const helper = await site.world.helper()
    const launch = Number(/^PPid:\t(\d+)/m.exec(readOr(`/proc/${helper}/status`))?.[1])
    const runner = Number(/^PPid:\t(\d+)/m.exec(readOr(`/proc/${terminator}/status`))?.[1])
    process.kill({ net: helper, launch, runner }[which] ?? 0, 'SIGKILL')
    // With the network gone the command may go on; its runner is then asked to end.
    await until('the end of the terminator', () => (readOr(`/proc/${terminator}/comm`) === '' ? true : undefined))
    if (which === 'net') process.kill(runner, 'SIGTERM')
    await running
    expect(await site.world.helpers()).toEqual([])
  })

  describeWith('newer-nodes', 'with another line of node', () => {
    // Sockets are handed over in the form in which node's own processes exchange them, which no document promises.
    test.each(newerNodes())('the header arrives by node $major', async ({ file }) => {
      const [copy, { path: gate, remove }] = [await packageCopy(), await newDirectory()]
      copy.recordNode(file)
      const script = `curl -sS -m 20 https://api.test/hello; until [ -e ${gate}/open ]; do sleep 0.1; done`
      const argv = ['--json', '--profile', await profileOf(NETWORK), '--ro', gate, '--', 'sh', '-c', script]
      const [program = '', ...words] = [...site.world.through, join(copy.root, 'bin/llm-do-exec'), ...argv]
      const env = { TOKEN: SECRET, PATH: process.env['PATH'], HOME: gate }
      const running = execa(program, words, { cwd: '/', env, extendEnv: false, reject: false })
      const terminator = await until('a terminator', () => terminatorsOf()[0])
      const node = readlinkSync(`/proc/${terminator}/exe`)
      await writeFile(join(gate, 'open'), '')
      const { stdout } = JSON.parse((await running).stdout) as Result
      await Promise.all([copy.remove(), remove()])
      expect([node, stdout]).toEqual([realpathSync(file), expect.stringContaining(`Bearer ${SECRET}`)])
    })
  })

  describe('is refused before the run, without a word of the secret', () => {
    const credential = (from: string) => NETWORK.replace('env:TOKEN', from)
    test.each([
      { what: 'a variable that is missing', env: {}, said: 'expected the variable TOKEN, got none of that name' },
      { what: 'an empty secret', env: { TOKEN: '' }, said: 'expected one line of printable ASCII, got nothing' },
      { what: 'a newline in it', env: { TOKEN: `${SECRET}\r\nX: y` }, said: 'expected one line of printable ASCII' },
      {
        what: 'a file that is missing',
        network: () => credential('file:/nonexistent'),
        said: 'cannot be read (ENOENT)',
      },
      { what: 'a directory', network: () => credential('file:/etc'), said: 'got something else' },
      {
        what: 'a variable that the command inherits',
        words: ['--env', 'TOKEN'],
        said: 'expected TOKEN to stay outside',
      },
      {
        what: 'a file that a zone shows',
        network: () => credential(`file:${site.directory}/shown/token`),
        zone: true,
        said: 'to stay outside',
      },
      {
        what: 'a file that the system’s part of the tree shows',
        network: () => credential('file:/usr/share/common-licenses/GPL-3'),
        said: 'a file that /usr shows to the command',
      },
      { what: 'no switch', network: () => NETWORK.replace('terminate: true', ''), said: '--terminate-tls' },
      { what: 'a network without walls', words: ['--net', 'host'], said: 'expected a restricted network' },
      { what: 'the docker backend', words: ['--backend', 'docker'], said: 'held for the namespace backend only' },
    ])('$what', async ({ env, network, words = [], said, zone }) => {
      await mkdir(join(site.directory, 'shown'), { recursive: true })
      await writeFile(join(site.directory, 'shown/token'), SECRET)
      const shown = zone === true ? ['--ro', join(site.directory, 'shown')] : []
      const isDocker = words.includes('docker')
      const { stdout, stderr } = await start(['touch', join(site.directory, 'ran')], {
        ...(env === undefined ? {} : { env }),
        ...(network === undefined ? {} : { network: network() }),
        words: [...words, ...shown],
        ...(isDocker ? { engine: 'auto' } : {}),
      })
      expect(JSON.parse(stdout.toString()).error.message).toContain(said)
      expect(`${stdout}${stderr}`).not.toContain(SECRET)
    })
  })

  test('the switch may come by a flag, and a profile without it is refused', async () => {
    const network = NETWORK.replace('terminate: true\n', '')
    const { stdout } = await run(curl('https://api.test/flag'), { network, words: ['--terminate-tls'] })
    expect(stdout).toContain(SECRET)
  })
})
