/** Credentials that stay outside: the terminator adds them to requests of the command, within limits, and nothing else sees them. */
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../real/in-process.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { readOr, until } from '../support/processes.ts'
import {
  curl,
  NETWORK,
  openTerminationWorld,
  SECRET,
  type SecretRun,
  type TerminationWorld,
} from './termination-world.ts'
import { python, shell, WAYS } from './ways.ts'

let site: TerminationWorld

const run = (command: readonly string[], options?: SecretRun) => site.run(command, options)

/** A command that continues with `after` when `open` has been called. */
async function gated(after: string) {
  const gate = await temporaryDirectory({ mode: 0o755 })
  return {
    words: ['--ro', gate],
    command: shell(`until [ -e ${gate}/open ]; do sleep 0.05; done\n${after}`),
    open: () => writeFile(join(gate, 'open'), ''),
  }
}

/** Sends bytes over TLS and a request behind them that ends the connection; prints the status of each answer. */
const RAW = `
import re, ssl, socket, sys
for attack in sys.argv[1:]:
    data = b''
    try:
        with ssl.create_default_context().wrap_socket(socket.create_connection(('api.test', 443), 10), server_hostname='api.test') as s:
            s.sendall(attack.encode().decode('unicode_escape').encode('latin1'))
            s.sendall(b'GET /allowed HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n')
            while (got := s.recv(65536)): data += got
    except (OSError, ssl.SSLError): pass
    print(','.join(code.decode() for code in re.findall(rb'HTTP/1.1 (\\d+)', data)) or 'closed')`

/** The same for a protocol that continues: the server's greeting, and its replies. */
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

describeWith(['root', 'python'], 'credentials that stay outside', () => {
  beforeAll(async () => {
    site = await openTerminationWorld()
  })
  afterAll(() => site?.close())

  test.each(WAYS)(
    'the header arrives, and nothing inside, in the result or in the log has it ($engine, $as)',
    async (way) => {
      const { path: logs, remove } = await newDirectory({ owner: way.as })
      const log = join(logs, 'audit')
      const script = `curl -sS -m 20 https://api.test/hello | grep -c "Bearer $(echo "$0" | head -c 3)"
      env; cat /proc/*/environ /proc/*/cmdline /proc/self/mountinfo 2>/dev/null; cat /etc/.llm-do/* | tail -3
      grep -rsl "$0" /etc /run /tmp /home /workspace /var; true`
      const command = [...shell(script), SECRET.slice(0, 6)]
      const result = await run(command, { way, words: ['--audit', log] })
      expect(result.stderr).toBe('')
      expect(result.stdout.split('\n')[0]).toBe('1')
      expect(await site.requests()).toContain('GET /hello')
      for (const text of [JSON.stringify(result), await readFile(log, 'utf8')]) expect(text).not.toContain(SECRET)
      expect(await readFile(log, 'utf8')).toContain('api.test')
      await remove()
    },
  )

  test('neither the plan nor a file of the caller has the secret', async () => {
    const home = await temporaryDirectory()
    const env = { TOKEN: SECRET, HOME: home }
    const plan = JSON.stringify(await run(['true'], { words: ['--plan=json'], env }))
    await run(['true'], { env })
    const { stdout: files } = await execa('grep', ['-rl', SECRET, home, '/run/llm-do'], { reject: false })
    expect(JSON.parse(plan).network.credentials).toEqual([
      { host: 'api.test', header: 'Authorization', from: 'env:TOKEN', format: 'Bearer {}' },
    ])
    expect([plan, files].join('')).not.toContain(SECRET)
  })

  test('the secret of a file arrives, the switch may be a flag, and headers of the same name from the command do not', async () => {
    const file = join(site.directory, 'token')
    await writeFile(file, `${SECRET}\n`)
    const network = `allow: [ api.test ]\ncredentials: [ { host: api.test, header: X-Key, from: "file:${file}" } ]`
    const headers = ['X-Key: mine', 'x-key: too', 'Other: kept'].flatMap((header) => ['-H', header])
    const words = ['--terminate-tls']
    const { stdout } = await run(curl('https://api.test/own', ...headers), { network, words })
    const { rawHeaders } = JSON.parse(stdout) as { rawHeaders: readonly string[] }
    expect(stdout).not.toMatch(/mine|too/)
    expect(rawHeaders.filter((name) => name.toLowerCase() === 'x-key')).toEqual(['X-Key'])
    expect(stdout).toContain(`"X-Key","${SECRET}"`)
    expect(stdout).toContain('"Other","kept"')
  })

  test('other hosts are not looked into, and get nothing', async () => {
    const issuers = `for host in api.test other.test; do curl -svm 20 https://$host/ 2>&1 | grep -E 'issuer|earer'; done`
    const { stdout } = await run(shell(issuers))
    expect(stdout).toMatch(/issuer: CN=llm-do run [0-9a-f]{16}\n.*Bearer hidden.*\n.*issuer: CN=ca\n$/)
  })

  const upgrade = (path: string) =>
    `GET ${path} HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Key: a\\r\\n\\r\\n`

  test('methods and paths outside of network.requests are refused, for WebSockets too, and reported', async () => {
    const network = `${NETWORK}\nrequests: [ "GET api.test/org/*", "POST api.test/exact" ]`
    const allowed = ['GET /org/a?b=/../c', 'POST /exact']
    const refused = [
      ...['GET /', 'POST /org/a', 'GET /org/../x', 'GET /org/%2e%2E/x', 'GET /org/..;/x', 'GET /org//x', 'GET /exact'],
      ...['POST /exact/more', 'HEAD /org/a'],
    ]
    const tried = [...allowed, ...refused]
    const script = tried.map((one) => {
      const [method = '', path = ''] = one.split(' ')
      return `curl -sS -o /dev/null -w '%{http_code}\\n' ${method === 'HEAD' ? '-I' : `-X ${method}`} --path-as-is 'https://api.test${path}'`
    })
    const { stdout, network: rows, denials } = await run(shell(script.join('\n')), { network })
    const codes = stdout.trim().split('\n')
    expect(tried.map((one, index) => `${one} ${codes[index]}`)).toEqual([
      ...allowed.map((one) => `${one} 200`),
      ...refused.map((one) => `${one} 403`),
    ])
    const row = { host: 'api.test', port: 443, verdict: 'refused', request: 'POST /org/a', connections: 1 }
    expect(rows).toContainEqual(expect.objectContaining(row))
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
    const sockets = await run(python(SOCKET, upgrade('/org/socket'), upgrade('/other')), { network })
    expect(sockets.stdout).toMatch(/^101 .*Bearer hidden.*ping\n403 /s)
  })

  test('a connection is for its own name only: another one by SNI, none, and another by Host are refused', async () => {
    const script = `
      curl -sSm 20 --connect-to other.test:443:api.test:443 https://other.test/ >/dev/null 2>&1; echo $?
      curl -sSm 20 -H 'Host: other.test' https://api.test/named
      printf 'GET /nameless HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n' | openssl s_client -quiet -noservername -connect api.test:443 2>/dev/null
      curl -sSm 20 http://api.test/plain`
    const { stdout, network } = await run(shell(script))
    expect(stdout).toMatch(
      /^35\nllm-do: the connection is for api.test, and the request is for other.test\nllm-do: api.test is reached by TLS only/,
    )
    const refused = network?.filter(({ verdict }) => verdict === 'refused').map(({ request }) => request)
    expect(refused?.sort()).toEqual(['Host other.test', 'SNI ', 'SNI other.test', 'plain HTTP'])
    expect((await site.requests()).filter((one) => /nameless|named|plain/.test(one))).toEqual([])
  })

  test('a server whose certificate this host does not trust gets no request', async () => {
    const hosts = ['"stranger.test:9443"', '"api.test:8443"']
    const credentials = hosts.map((host) => `{ host: ${host}, header: X-Key, from: env:TOKEN }`)
    const network = `terminate: true\nallow: [ ${hosts} ]\ncredentials: [ ${credentials} ]`
    const script = 'curl -sS https://stranger.test:9443/untrusted; curl -sS https://api.test:8443/trusted'
    const { stdout } = await run(shell(script), { network })
    expect(stdout).toMatch(/^llm-do: stranger.test: (unable to|self-signed)[^\n]*\n\{.*\/trusted/)
    expect((await site.requests()).filter((one) => one.includes('trusted'))).toEqual(['GET /trusted'])
  })

  test('nothing is smuggled past the limits', async () => {
    const network = `${NETWORK}\nrequests: [ "* api.test/allowed" ]`
    const request = (first: string, ...fields: readonly string[]) =>
      [`${first} HTTP/1.1`, 'Host: api.test', ...fields, '', ''].join('\\r\\n')
    const smuggled = request('GET /smuggled')
    const chunked = `0\\r\\n\\r\\n${smuggled}`
    const attacks = [
      request('POST /allowed', 'Content-Length: 4', 'Transfer-Encoding: chunked') + chunked,
      request('POST /allowed', 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + chunked,
      request('POST /allowed', 'Transfer-Encoding: xchunked') + chunked,
      request('POST /allowed', 'Content-Length: 0', 'Content-Length: 44') + smuggled,
      request('GET /allowed', 'Host: other.test'),
      request('GET /allowed', 'X: a', ' GET /smuggled HTTP/1.1'),
      (request('GET /allowed', 'X: a') + smuggled).replaceAll('\\r', ''),
      request('GET https://api.test/smuggled'),
      request('GET /allowed#/../smuggled'),
      request('TRACE /allowed'),
      request('CONNECT api.test:443'),
      request('GET /allowed', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk') +
        smuggled,
      request('GET /allowed', 'Connection: Upgrade', 'Upgrade: websocket', 'Content-Length: 44') + smuggled,
      'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n',
    ]
    // These pass: a request may follow another, and behind more fields than node keeps a body is the body of one request.
    const good = request('GET /allowed') + smuggled
    const many = request('GET /allowed', ...Array<string>(2100).fill('a:'), 'Transfer-Encoding: chunked')
    const before = await site.requests()
    const { stdout, stderr } = await run(
      python(RAW, ...attacks, good, `${many}2a\\r\\n${smuggled}\\r\\n0\\r\\n\\r\\n`),
      { network },
    )
    expect(stderr).toBe('')
    const answers = stdout.trim().split('\n')
    expect(answers.slice(-2)).toEqual(['200,403,200', '200,200'])
    expect(answers.slice(0, -2)).toEqual(attacks.map(() => expect.stringMatching(/^(400|403|405|421|closed)(,200)?$/)))
    const got = (await site.requests()).slice(before.length)
    expect(got.filter((one) => one !== 'GET /allowed' && one !== 'POST /allowed')).toEqual([])
  })

  test('an answer that cannot be passed on is an error of its own request alone, and HTTP/2 is not offered', async () => {
    const alpn = `
import ssl, socket
context = ssl.create_default_context()
context.set_alpn_protocols(['h2', 'http/1.1'])
with context.wrap_socket(socket.create_connection(('api.test', 443)), server_hostname='api.test') as s: print(s.selected_alpn_protocol(), s.version())`
    const script = `for path in odd/reason odd/status after; do curl -sS -m 20 -o out -w '%{http_code} ' https://api.test/$path; grep -o 'llm-do: .*\\|Bearer' out; done`
    const { stdout, warnings } = await run([...shell(`cd /tmp; ${script}; exec "$0" "$@"`), ...python(alpn)])
    expect(stdout).toMatch(
      /^502 llm-do: api.test: Invalid character.*\n502 llm-do: api.test: Invalid status.*\n200 Bearer\nhttp\/1.1 TLSv1.3\n$/,
    )
    expect(warnings.join()).not.toContain('terminator')
  })

  test('the authority is another one for each run, and its key and certificate are nowhere on this host', async () => {
    const last = shell('tail -n 5 /etc/.llm-do/ca-bundle.pem')
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
    const script = 'ls /etc/.llm-do; env | grep -c CERT; curl -sv https://api.test 2>&1 | grep issuer'
    const { words, command, open } = await gated(script)
    const running = run(command, { network: 'allow: [ api.test ]', words })
    await site.world.helper()
    expect(site.terminators()).toEqual([])
    await open()
    expect((await running).stdout).toMatch(/^0\n.*issuer: CN=ca\n$/)
  })

  test('the terminator has no secret in its words and variables, no root, and ends with the run', async () => {
    const { words, command, open } = await gated('')
    const running = run(command, { words })
    const pid = await site.terminator()
    const own = /^Uid:\t(19\d{8})\t\1\t\1\t\1$/m
    await until('its own id', () => own.test(readOr(`/proc/${pid}/status`)) || undefined)
    const [argv, variables] = ['cmdline', 'environ'].map((name) => readOr(`/proc/${pid}/${name}`))
    expect(argv).toContain('terminator')
    expect(`${argv}${variables}`).not.toContain(SECRET)
    await open()
    await running
    expect(readOr(`/proc/${pid}/comm`)).toBe('')
  })

  test('a killed terminator takes its hosts with it, and the result says so', async () => {
    const { words, command, open } = await gated(
      'curl -sSm 20 https://api.test/late; curl -sSm 20 https://other.test/ | grep -c other',
    )
    const running = run(command, { words })
    const pid = await site.terminator()
    await site.world.helper()
    process.kill(pid, 'SIGKILL')
    await open()
    const { stdout, warnings } = await running
    expect(stdout).toBe('1\n')
    expect(warnings).toContainEqual(expect.stringContaining('the terminator ended before the command'))
    expect(await site.requests()).not.toContain('GET /late')
  })

  test.each(['net', 'launch', 'runner'])('nothing is left of the terminator when %s is killed', async (which) => {
    const running = run(['sleep', '60']).catch(() => undefined)
    const pid = await site.terminator()
    const helper = await site.world.helper()
    const launch = Number(/^PPid:\t(\d+)/m.exec(readOr(`/proc/${helper}/status`))?.[1])
    const runner = Number(/^PPid:\t(\d+)/m.exec(readOr(`/proc/${pid}/status`))?.[1])
    process.kill({ net: helper, launch, runner }[which] ?? 0, 'SIGKILL')
    await until('its end', () => readOr(`/proc/${pid}/comm`) === '' || undefined)
    // With the network gone the command may go on; its runner is then asked to end.
    if (which === 'net') process.kill(runner, 'SIGTERM')
    await running
    expect(site.world.helpers()).toEqual([])
  })

  describe('is refused before the run, without a word of the secret', () => {
    const credential = (from: string) => NETWORK.replace('env:TOKEN', from)
    const oneLine = 'expected one line of printable ASCII'
    test.each<SecretRun & { what: string; said: string; from?: string }>([
      { what: 'a missing variable', env: {}, said: 'expected the variable TOKEN, got none of that name' },
      { what: 'an empty secret', env: { TOKEN: '' }, said: `${oneLine}, got nothing` },
      { what: 'a newline in it', env: { TOKEN: `${SECRET}\r\nX: y` }, said: oneLine },
      { what: 'a missing file', from: 'file:/nonexistent', said: 'cannot be read (ENOENT)' },
      { what: 'a directory', from: 'file:/etc', said: 'got something else' },
      { what: 'a variable that the command inherits', words: ['--env', 'TOKEN'], said: 'TOKEN to stay outside' },
      { what: 'a file of a zone', from: 'file:SHOWN/token', words: ['--ro', 'SHOWN'], said: 'to stay outside' },
      {
        what: 'a file behind a link that the command could replace',
        from: 'file:SHOWN/link',
        words: ['--rw', 'SHOWN'],
        said: 'a command could replace the link',
      },
      {
        what: 'a file of the system',
        from: 'file:/usr/share/common-licenses/GPL-3',
        said: 'a file that /usr shows to the command',
      },
      { what: 'no switch', network: NETWORK.replace('terminate: true', ''), said: '--terminate-tls' },
      { what: 'a network without walls', words: ['--net', 'host'], said: 'expected a restricted network' },
    ])('$what', async ({ said, from, words = [], network, env }) => {
      const shown = join(site.directory, 'shown')
      await mkdir(shown, { recursive: true })
      await writeFile(join(shown, 'token'), SECRET)
      await writeFile(join(site.directory, 'outside'), SECRET)
      await rm(join(shown, 'link'), { force: true })
      await symlink('../outside', join(shown, 'link'))
      const filled = (text: string) => text.replace('SHOWN', shown)
      const profile = await site.profileOf(network ?? credential(filled(from ?? 'env:TOKEN')))
      const argv = ['--profile', profile, ...words.map(filled), '--', 'touch', join(site.directory, 'ran')]
      const result = await runHere(argv, { env: env ?? { TOKEN: SECRET } })
      expect(result.error?.message).toContain(said)
      expect(JSON.stringify(result)).not.toContain(SECRET)
    })
  })
})
