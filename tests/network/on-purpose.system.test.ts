/** What of this host a restricted command reaches on purpose, and nothing next to it: ports of its loopback, sockets, planned names. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { needsOf, WAYS, type Way } from './ways.ts'
import { openWorld, WORLD, type World } from './world.ts'

const ZONE = { 'api.test': [[WORLD]], 'other.test': [[WORLD]], 'loop.test': [['127.0.0.1']] } as const
const [OPEN, CLOSED] = [18901, 18902]

let world: World
let servers: ChildProcess
let directory: Awaited<ReturnType<typeof newDirectory>>
let sockets: readonly Server[]

const run = async (words: readonly string[], script: string, { engine, as }: Way = WAYS[0]): Promise<Result> => {
  const argv = ['--json', '--engine', engine, ...words, '--', 'sh', '-c', script]
  const { stdout } = await runCli(argv, { through: world.through, as })
  return JSON.parse(stdout.toString()) as Result
}

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

describeWith('root', 'the own services of this host', () => {
  beforeAll(async () => {
    world = await openWorld(ZONE as never)
    servers = spawn(world.through[0] ?? '', [...world.through.slice(1), process.execPath, '-e', SERVE], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(servers.stdout as NodeJS.ReadableStream, 'data')
    directory = await newDirectory({ mode: 0o755 })
    sockets = await Promise.all(
      ['one.sock', 'two.sock', 'docker.sock'].map((name) => listen(join(directory.path, name))),
    )
  })
  afterAll(async () => {
    for (const server of sockets) server.close()
    servers.kill('SIGKILL')
    await world.close()
    await directory.remove()
  })

  const LOCAL = 'http://host.llm-do.internal'

  for (const way of WAYS)
    testWith(needsOf(way), `--allow-local opens one port by one name, as ${way.as} with ${way.engine}`, async () => {
      const urls = [`${LOCAL}:${OPEN}`, `${LOCAL}:${CLOSED}`, `http://127.0.0.1:${OPEN}`, `http://loop.test:${OPEN}`]
      const words = ['--allow-local', `${OPEN}`, '--allow-host', 'loop.test:*']
      const opened = await run(words, ask(...urls), way)
      expect(opened.stdout).toBe('200 000 000 000 ')
      expect(opened.denials).toContainEqual(
        expect.objectContaining({ target: `host.llm-do.internal:${CLOSED}`, fix: `--allow-local ${CLOSED}` }),
      )
      const both = await run([...words, '--allow-local', `${CLOSED}`], ask(...urls), way)
      expect(both.stdout).toBe('200 200 000 000 ')
    })

  test('a rule for every port of the name opens no port of this host', async () => {
    const words = ['--allow-local', `${OPEN}`, '--allow-host', 'host.llm-do.internal:*']
    const urls = [`${LOCAL}:${OPEN}`, `${LOCAL}:${CLOSED}`]
    expect((await run(words, ask(...urls))).stdout).toBe('200 000 ')
  })

  test('a deny rule wins over a port of this host', async () => {
    const words = ['--allow-local', `${OPEN}`, '--deny-host', '127.0.0.0/8,[::1]']
    expect((await run(words, ask(`${LOCAL}:${OPEN}`))).stdout).toBe('000 ')
  })

  test('a planned name leads where the policy says, as far as rules go', async () => {
    const profile = async (hosts: string) => {
      const file = join(directory.path, 'hosts.yaml')
      await writeFile(
        file,
        `sandbox: { extends: default, network: { allow: [own.test, "db.test:${OPEN}"], hosts: { ${hosts} } } }`,
      )
      return ['--profile', file]
    }
    const words = await profile(`own.test: ${WORLD}, db.test: 127.0.0.1, unlisted.test: ${WORLD}`)
    const urls = ['http://own.test/say', 'http://unlisted.test/say', `http://db.test:${OPEN}`]
    expect((await run(words, ask(...urls))).stdout).toBe('200 000 000 ')
    expect((await run([...words, '--allow-host', `127.0.0.1:${OPEN}`], ask(...urls))).stdout).toBe('200 000 200 ')
    expect((await run(await profile('x.test: 192.0.2.7'), ask(...urls))).stdout).toBe('000 000 000 ')
    expect((await run([...words, '--net', 'none'], 'getent hosts own.test')).stdout).toBe('')
  })

  const PUBLISHED = 18903
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
    const { stdout } = await execa('sh', [...world.through.slice(1), 'sh', '-c', script], { reject: false })
    return stdout
  }
  const untilServed = `for try in $(seq 100); do curl -s -o /dev/null -m 1 http://127.0.0.1:${PUBLISHED} && break; sleep 0.1; done`

  const end = `curl -s -o /dev/null http://127.0.0.1:${PUBLISHED}/over`

  for (const way of WAYS)
    testWith(
      needsOf(way),
      `--publish lets this host in, and nothing out, as ${way.as} with ${way.engine}`,
      async () => {
        const inside = `${ask('http://api.test/say', `${LOCAL}:${OPEN}`)}; ${serverAt('127.0.0.1')}`
        const running = run(['--net', 'none', '--publish', `${PUBLISHED}:8000`], inside, way)
        const many = `for i in $(seq 80); do curl -s -o /dev/null -m 3 -w '%{http_code} ' http://127.0.0.1:${PUBLISHED}; done`
        expect(await onHost(`${untilServed}; ${many}; ${ask('http://127.0.0.1:8000')}`)).toBe(
          `${'200 '.repeat(80)}000 `,
        )
        const second = await run(['--publish', `${PUBLISHED}:8000`], 'echo ran', way)
        expect(second).toMatchObject({ stdout: '', error: { hint: expect.stringContaining('--publish') } })
        await onHost(end)
        const { stdout, exitCode, network } = await running
        expect({ stdout, exitCode }).toEqual({ stdout: '000 000 ', exitCode: 0 })
        const row = { host: '127.0.0.1', port: PUBLISHED, verdict: 'published', inside: 8000 }
        expect(network).toContainEqual(expect.objectContaining(row))
        expect(await onHost(ask(`http://127.0.0.1:${PUBLISHED}`))).toBe('000 ')
      },
    )

  test('a published server may listen on ::1 alone', async () => {
    const running = run(['--publish', `${PUBLISHED}:8000`], serverAt('::1'))
    const many = `for i in $(seq 80); do curl -s -o /dev/null -m 3 -w '%{http_code} ' http://127.0.0.1:${PUBLISHED}; done`
    expect(await onHost(`${untilServed}; ${many}; ${end}`)).toBe('200 '.repeat(80))
    expect((await running).exitCode).toBe(0)
  })

  test('a network that is recorded reaches public names only, and says which flags they need', async () => {
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

  for (const way of WAYS)
    testWith(needsOf(way), `--socket shows one socket, as ${way.as} with ${way.engine}`, async () => {
      const [one, two] = ['one.sock', 'two.sock'].map((name) => join(directory.path, name)) as [string, string]
      const script = unix(one, two, '/run/mine.sock')
      expect((await run(['--socket', one], script, way)).stdout).toBe('hello FileNotFoundError FileNotFoundError ')
      expect((await run(['--socket', `${one}:/run/mine.sock`], script, way)).stdout).toBe(
        'FileNotFoundError FileNotFoundError hello ',
      )
    })

  test('a socket that gives more than a service is named, and what is no socket is refused', async () => {
    const docker = join(directory.path, 'docker.sock')
    const { warnings } = await run(['--socket', docker], 'true')
    expect(warnings).toContainEqual(expect.stringContaining(`${docker} is a container engine`))
    const plain = await run(['--socket', join(directory.path, 'one.sock')], 'true')
    expect(plain.warnings).not.toContainEqual(expect.stringContaining('one.sock'))
    const refused = await run(['--socket', directory.path], 'true')
    expect(refused.error?.message).toContain('expected a socket, got a directory')
    const missing = await run(['--socket', join(directory.path, 'none.sock')], 'true')
    expect(missing.error?.message).toContain('it does not exist; start its server first')
  })

  test('beside a secret zone nothing gets out', async () => {
    const file = join(directory.path, 'secret.yaml')
    const policy = (more: string) =>
      `sandbox: { extends: default, zones: [{ name: keys, hostPath: ${directory.path}${more} }], network: { allow: [api.test], afterSecrets: deny } }`
    await writeFile(file, policy(''))
    expect((await run(['--profile', file], ask('http://api.test/say'))).stdout).toBe('200 ')
    await writeFile(file, policy(', secret: true'))
    const closed = await run(['--profile', file], ask('http://api.test/say'))
    expect(closed).toMatchObject({ stdout: '000 ', isolation: { net: 'none' } })
    const both = await run(['--profile', file, '--allow-host', 'api.test'], ask('http://api.test/say'))
    expect(both.error).toMatchObject({ code: 'POLICY_INVALID', hint: expect.stringContaining('--after-secrets allow') })
    const anyway = ['--profile', file, '--allow-host', 'api.test', '--after-secrets', 'allow']
    expect((await run(anyway, ask('http://api.test/say'))).stdout).toBe('200 ')
  })
})
