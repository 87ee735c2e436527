/** Services of this host that a restricted command reaches on purpose, and nothing next to them: ports, sockets, planned names. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { eachWay, resultOf, shell, type Way } from './ways.ts'
import { openWorld, startServer, WORLD, type World } from './world.ts'

const ZONE = { 'api.test': [[WORLD]], 'other.test': [[WORLD]], 'loop.test': [['127.0.0.1']] } as const
const [OPEN, CLOSED, PUBLISHED] = [18901, 18902, 18903]
const LOCAL = 'http://host.llm-do.internal'

let world: World
let directory: Awaited<ReturnType<typeof newDirectory>>
let sockets: readonly Server[]

const run = (words: readonly string[], script: string, way?: Way): Promise<Result> =>
  resultOf({ through: world.through, words, command: shell(script), ...(way && { way }) })

const ask = (...urls: readonly string[]): string =>
  urls.map((url) => `curl -s -o /dev/null -m 3 -w '%{http_code} ' ${url}`).join('; ')

const SERVE = `
const serve = (port, host) => new Promise((up) => require('http').createServer((_, r) => r.end('own')).listen(port, host, up))
Promise.all([serve(${OPEN}, '127.0.0.1'), serve(${CLOSED}, '127.0.0.1')]).then(() => console.log('up'))`

const listen = async (path: string): Promise<Server> => {
  const server = createServer((client) => client.end('hello'))
  await once(server.listen({ path, readableAll: true, writableAll: true }), 'listening')
  return server
}

describeWith(['root', 'python'], 'the own services of this host', () => {
  beforeAll(async () => {
    world = await openWorld(ZONE)
    const servers = await startServer([...world.through, process.execPath, '-e', SERVE])
    directory = await newDirectory({ mode: 0o755 })
    sockets = await Promise.all(
      ['one.sock', 'two.sock', 'docker.sock'].map((name) => listen(join(directory.path, name))),
    )
    return () => void servers.kill('SIGKILL')
  })
  afterAll(async () => {
    for (const server of sockets) server.close()
    await world.close()
    await directory.remove()
  })

  const UNIX = `
import os, socket
def try_one(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        return s.recv(9).decode()
for path in PATHS:
    try: print(try_one(path), end=' ')
    except OSError as error: print(type(error).__name__, end=' ')`
  const unix = (...paths: readonly string[]) =>
    `/usr/bin/python3 - <<'END'\n${UNIX.replace('PATHS', JSON.stringify(paths))}\nEND\n`

  /** Ends when it is asked for `/over`. */
  const SERVER = `
import http.server, os, socket, sys
class Server(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200), self.send_header('Content-Length', '0'), self.end_headers()
        if self.path == '/over': self.wfile.flush(), os._exit(0)
Server((sys.argv[1], 8000), Handler).serve_forever()`
  const serverAt = (address: string) => `/usr/bin/python3 - ${address} 2>/dev/null <<'END'\n${SERVER}\nEND\n`
  const onHost = async (script: string): Promise<string> => {
    const { stdout } = await execa('sh', [...world.through.slice(1), ...shell(script)], { reject: false })
    return stdout
  }
  const untilServed = `until curl -s -o /dev/null -m 1 http://127.0.0.1:${PUBLISHED}; do sleep 0.1; done`
  /** More connections than there are sockets in the stock. */
  const eighty = `curl -s -o /dev/null -m 60 -H 'Connection: close' -w '%{http_code} ' 'http://127.0.0.1:${PUBLISHED}/[1-80]'`
  const end = `curl -s -o /dev/null http://127.0.0.1:${PUBLISHED}/over`

  /** Can a server of the command's own take the port? At one address, at all of them, and next to another server. */
  const binds = (...ports: readonly number[]) => `/usr/bin/python3 - <<'END'
import errno, socket
def bind(address, port, option):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, option, 1), s.bind((address, port)), s.listen()
for port in ${JSON.stringify(ports)}:
    for place in [('127.0.0.1', socket.SO_REUSEADDR), ('0.0.0.0', socket.SO_REUSEADDR), ('127.0.0.1', socket.SO_REUSEPORT)]:
        try: bind(place[0], port, place[1]), print('bound', end=' ')
        except OSError as error: print(errno.errorcode[error.errno], end=' ')
    print()
END
`

  eachWay('--allow-local opens one port by one name, and --socket shows one socket', async (way) => {
    const [one = '', two = ''] = ['one.sock', 'two.sock'].map((name) => join(directory.path, name))
    const urls = [`${LOCAL}:${OPEN}`, `${LOCAL}:${CLOSED}`, `http://127.0.0.1:${OPEN}`, `http://loop.test:${OPEN}`]
    const words = ['--allow-local', `${OPEN}`, '--allow-host', 'loop.test:*', '--socket']
    const script = `${ask(...urls)}; ${unix(one, two, '/run/mine.sock')}`
    const opened = await run([...words, one], script, way)
    expect(opened.stdout).toBe('200 000 000 000 hello FileNotFoundError FileNotFoundError ')
    expect(opened.denials).toContainEqual(
      expect.objectContaining({ target: `host.llm-do.internal:${CLOSED}`, fix: `--allow-local ${CLOSED}` }),
    )
    const both = await run([...words, `${one}:/run/mine.sock`, '--allow-local', `${CLOSED}`], script, way)
    expect(both.stdout).toBe('200 200 000 000 FileNotFoundError FileNotFoundError hello ')
  })

  eachWay('--allow-host localhost:PORT leads one port of the loopback to this host', async (way) => {
    const urls = [`localhost:${OPEN}`, `127.0.0.1:${OPEN}`, `[::1]:${OPEN}`, `localhost:${CLOSED}`, `loop.test:${OPEN}`]
    const script = `${ask(...urls.map((url) => `http://${url}`))}; ${binds(OPEN, CLOSED)}`
    const words = ['--allow-host', 'loop.test:*', '--allow-host', `localhost:${OPEN}`]
    const free = `${'bound '.repeat(3)}\n`
    expect((await run(words.slice(0, 2), script, way)).stdout).toBe(`${'000 '.repeat(5)}${free}${free}`)
    expect((await run(words, script, way)).stdout).toBe(`200 200 200 000 000 ${'EADDRINUSE '.repeat(3)}\n${free}`)
    expect((await run([...words, '--deny-host', `localhost:${OPEN}`], script, way)).stdout).toMatch(/^(000 ){5}/)
  })

  eachWay('--publish lets this host in, and nothing out', async (way) => {
    const inside = `${ask('http://api.test/say', `${LOCAL}:${OPEN}`)}; ${serverAt('127.0.0.1')}`
    const running = run(['--net', 'none', '--publish', `${PUBLISHED}:8000`], inside, way)
    expect(await onHost(`${untilServed}; ${eighty}; ${ask('http://127.0.0.1:8000')}`)).toBe(`${'200 '.repeat(80)}000 `)
    const second = await run(['--publish', `${PUBLISHED}:8000`], 'echo ran', way)
    expect(second).toMatchObject({ stdout: '', error: { hint: expect.stringContaining('--publish') } })
    await onHost(end)
    const { stdout, exitCode, network } = await running
    expect({ stdout, exitCode }).toEqual({ stdout: '000 000 ', exitCode: 0 })
    const row = { host: '127.0.0.1', port: PUBLISHED, verdict: 'published', inside: 8000 }
    expect(network).toContainEqual(expect.objectContaining(row))
    expect(await onHost(ask(`http://127.0.0.1:${PUBLISHED}`))).toBe('000 ')
  })

  test('a published server may listen on ::1 alone', async () => {
    const running = run(['--publish', `${PUBLISHED}:8000`], serverAt('::1'))
    expect(await onHost(`${untilServed}; ${eighty}; ${end}`)).toBe('200 '.repeat(80))
    expect((await running).exitCode).toBe(0)
  })

  test('a rule for every port of the name opens no port of this host, and a deny rule closes an open one', async () => {
    const words = ['--allow-local', `${OPEN}`]
    const urls = [`${LOCAL}:${OPEN}`, `${LOCAL}:${CLOSED}`]
    expect((await run([...words, '--allow-host', 'host.llm-do.internal:*'], ask(...urls))).stdout).toBe('200 000 ')
    expect((await run([...words, '--deny-host', '127.0.0.0/8,[::1]'], ask(...urls))).stdout).toBe('000 000 ')
  })

  test('a planned name leads where the policy says, as far as rules go; without network it is in /etc/hosts', async () => {
    const file = join(directory.path, 'hosts.yaml')
    const profile = async (hosts: string) => {
      const network = `{ allow: [own.test, "db.test:${OPEN}"], hosts: { ${hosts} } }`
      await writeFile(file, `sandbox: { extends: default, network: ${network} }`)
      return ['--profile', file]
    }
    const words = await profile(`own.test: ${WORLD}, db.test: 127.0.0.1, unlisted.test: ${WORLD}`)
    const urls = ['http://own.test/say', 'http://unlisted.test/say', `http://db.test:${OPEN}`]
    expect((await run(words, ask(...urls))).stdout).toBe('200 000 000 ')
    expect((await run([...words, '--allow-host', `127.0.0.1:${OPEN}`], ask(...urls))).stdout).toBe('200 000 200 ')
    expect((await run([...words, '--net', 'none'], 'getent hosts own.test')).stdout).toContain(WORLD)
    expect((await run(await profile('x.test: 192.0.2.7'), ask(...urls))).stdout).toBe('000 000 000 ')
  })

  test('a network that is recorded reaches public names only, and lists the flags for them', async () => {
    const urls = ['http://api.test/say', 'http://other.test:81/', `http://loop.test:${OPEN}`, `http://${WORLD}/say`]
    const result = await run(['--net', 'record'], ask(...urls))
    expect(result.stdout).toBe('200 000 000 000 ')
    expect(result.network).toContainEqual(expect.objectContaining({ host: 'api.test', needs: '--allow-host api.test' }))
    expect(result.network).toContainEqual(expect.objectContaining({ host: 'loop.test', verdict: 'not-public' }))
    expect(result.hints).toContainEqual('recorded: --allow-host api.test --allow-host other.test:81')
    expect(result.warnings).toContainEqual(expect.stringContaining('recorded, not restricted'))
    expect(result.isolation?.net).toBe('record')
    const listed = await run(['--net', 'record', '--allow-host', `127.0.0.1:${OPEN}`], ask(`http://loop.test:${OPEN}`))
    expect(listed.stdout).toBe('200 ')
  })

  test('a socket of a container engine is warned about, and a path without a socket is refused', async () => {
    const [docker, plain] = ['docker.sock', 'one.sock'].map((name) => join(directory.path, name))
    const { warnings } = await run(['--socket', `${docker}`, '--socket', `${plain}`], 'true')
    expect(warnings).toContainEqual(expect.stringContaining(`${docker} is a container engine`))
    expect(warnings).not.toContainEqual(expect.stringContaining('one.sock'))
    const refused = await run(['--socket', directory.path], 'true')
    expect(refused.error?.message).toContain('expected a socket, got a directory')
    const missing = await run(['--socket', join(directory.path, 'none.sock')], 'true')
    expect(missing.error?.message).toContain('it does not exist; start its server first')
  })

  test('next to a secret zone nothing gets out', async () => {
    const file = join(directory.path, 'secret.yaml')
    const policy = (more: string) =>
      `sandbox: { extends: default, zones: [{ name: keys, hostPath: ${directory.path}${more} }], network: { allow: [api.test], afterSecrets: deny } }`
    const asked = (...words: readonly string[]) => run(['--profile', file, ...words], ask('http://api.test/say'))
    await writeFile(file, policy(''))
    expect((await asked()).stdout).toBe('200 ')
    await writeFile(file, policy(', secret: true'))
    expect(await asked()).toMatchObject({ stdout: '000 ', isolation: { net: 'none' } })
    const both = await asked('--allow-host', 'api.test')
    expect(both.error).toMatchObject({ code: 'POLICY_INVALID', hint: expect.stringContaining('--after-secrets allow') })
    expect((await asked('--allow-host', 'api.test', '--after-secrets', 'allow')).stdout).toBe('200 ')
  })
})
