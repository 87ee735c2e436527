/** A network restricted by name: hosts that are reached, attacks on the list and on the walls around it, and the report. Each with its control. */
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runCli, runForResult } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/processes.ts'
import { ABSTRACT, ATTACKS, WALLS } from './attacks.ts'
import {
  ATTACKED_ZONE,
  allow,
  attacksThatAreWeak,
  attacksThatPass,
  attacksThatPassBy,
  eachWay,
  python,
  readAttempts,
  resultOf,
  resultsOf,
  shell,
  tryAll,
  type Way,
} from './ways.ts'
import { openWorld, startServer, WORLD, WORLD_V6, type World } from './world.ts'

let world: World

const run = (words: readonly string[], command: readonly string[], way?: Way): Promise<Result> =>
  resultOf({ through: world.through, words, command, ...(way && { way }) })

const onHost = async (command: readonly string[]): Promise<string> => {
  const [file = '', ...words] = [...world.through, ...command]
  return (await execa(file, words)).stdout
}

const ATTACK = readFileSync(join(import.meta.dirname, 'programs/attack.py'), 'utf8')
const WALLS_TRIED = python(ATTACK, ...WALLS.map(({ attempt }) => attempt))

describeWith('root', 'a network restricted by name', () => {
  beforeAll(async () => {
    world = await openWorld(
      { ...ATTACKED_ZONE, '*.many.test': [[WORLD]], 'rebind.test': [[WORLD], ['127.0.0.1']] },
      { hostServes: true },
    )
    const listen = `import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0${ABSTRACT}'); s.listen(9); print(1, flush=True)\nwhile 1: s.accept()`
    const listener = await startServer([...world.through, ...python(listen)])
    return () => void listener.kill('SIGKILL')
  })
  afterAll(() => world?.close())

  eachWay('every attack meets an error, and no wall gives way', async (way) => {
    const by = (words: readonly string[], command: readonly string[]) => run(words, command, way)
    expect(await attacksThatPassBy(by, ['tcp,api.test,80'])).toEqual([])
    const walls = await run(allow('api.test'), WALLS_TRIED, way)
    expect(attacksThatPass(readAttempts(walls.stdout), ({ meets }) => meets, WALLS)).toEqual([])
  })

  test('the host can do everything that the attacks try', async () => {
    const possible = ATTACKS.filter((attack) => attack.onHost !== undefined).map(({ attempt }) => attempt)
    expect(attacksThatAreWeak(readAttempts(await onHost(tryAll(possible))))).toEqual([])
    const stop = new AbortController()
    const running = runCli([...allow('api.test'), '--', 'sleep', '60'], { through: world.through, abort: stop.signal })
    await world.helper() // A process that relays, on the host.
    const met = await onHost(WALLS_TRIED)
    stop.abort()
    await running
    expect(attacksThatAreWeak(readAttempts(met), WALLS)).toEqual([])
  })

  test('the result names reached hosts, refused ones with their flags, and allowed ones that cannot be resolved or reached', async () => {
    const urls = ['api.test/say', 'gone.test/', 'api.test:82/', 'other.test/', 'api.test:81/']
    const command = shell(urls.map((url) => `curl -sS -m 5 http://${url}`).join('; '))
    const { stdout, denials, network, hints } = await run(allow('api.test', 'gone.test', 'api.test:82'), command)
    expect(stdout).toContain('from=::ffff:203.0.114.1')
    const rows = network?.map(({ host, port, verdict, rule }) => [host, port, verdict, rule])
    expect(rows).toEqual([
      ['api.test', 80, 'allowed', 'api.test'],
      ['gone.test', undefined, 'unresolved', 'gone.test'],
      ['api.test', 82, 'allowed', 'api.test:82'],
      ['api.test', 82, 'unreachable', 'api.test:82'],
      ['other.test', undefined, 'not-listed', undefined],
      ['api.test', 81, 'not-listed', undefined],
    ])
    expect(denials).toMatchObject([
      { operation: 'resolve', target: 'other.test', fix: '--allow-host other.test' },
      { operation: 'connect', target: 'api.test:81', fix: '--allow-host api.test:81' },
    ])
    expect(hints).toEqual(
      expect.arrayContaining([
        'allowed, but this host itself could not resolve: gone.test',
        'allowed, but it could not be reached from this host: api.test:82',
      ]),
    )
  })

  test('a failed command prints each refusal and the flag that allows it on one line', async () => {
    const script = 'curl -s http://other.test/ http://api.test:81/'
    const say = async (ending: string) =>
      (
        await runCli([...allow('api.test'), '--', ...shell(script + ending)], { through: world.through })
      ).stderr.toString()
    // One look-up asks for two kinds of addresses.
    expect(await say('')).toMatch(
      /^llm-do: denied: resolve other\.test( \(\d times\))?; to allow it: --allow-host other\.test\nllm-do: denied: connect api\.test:81( \(\d times\))?; to allow it: --allow-host api\.test:81\n/m,
    )
    expect(await say('; true')).not.toMatch(/hint|denied/)
  })

  test('another command in a named sandbox has its network, and the result of the run has both hosts', async () => {
    const name = `net-${process.pid}`
    const llmDo = (...words: readonly string[]) => runCli(words, { program: 'llm-do', through: world.through })
    const script = 'curl -sS -m 5 http://api.test/say; curl -sS -m 5 http://other.test/say'
    onTestFinished(async () => void (await llmDo('stop', name)))
    expect((await llmDo('run', '--name', name, ...allow('api.test'), '--', 'sleep', '300')).status).toBe(0)
    const { status, stdout } = await llmDo('exec', '--in', name, '--', ...shell(script))
    expect([status, stdout.toString()]).toEqual([6, expect.stringContaining('from=::ffff:203.0.114.1')]) // 6: the name leads nowhere
    expect((await llmDo('kill', name)).status).toBe(0)
    const networkOfEnded = async () => {
      const ended = (await llmDo('ps', '--ended', '--json')).stdout.toString().split('\n')
      const line = ended.find((one) => one.includes(`"${name}"`)) ?? '{}'
      return (JSON.parse(line) as { result?: Result }).result?.network
    }
    // The attendant of the run writes the result when the run is gone.
    await expect.poll(networkOfEnded).toMatchObject([
      { host: 'api.test', verdict: 'allowed', rule: 'api.test' },
      { host: 'other.test', verdict: 'not-listed' },
    ])
  })

  test('the name server answers many questions of one TCP connection, and outlives a client that goes away', async () => {
    const script = `
import socket, struct
def question(id, name):
    text = struct.pack('>6H', id, 256, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l for l in name.split(b'.')) + bytes([0, 0, 1, 0, 1])
    return struct.pack('>H', len(text)) + text
def connect(): return socket.create_connection(('198.18.0.1', 53), 60)
def answers(s):
    data = b''
    while (got := s.recv(65536)): data += got
    return data
for round in range(3):
    with connect() as s: s.sendall(question(0, b'api.test') * 30)
with connect() as s:
    s.sendall(b''.join(question(id, b'api.test' if id % 2 else b'other.test') for id in range(200)))
    s.shutdown(socket.SHUT_WR)
    data, codes = answers(s), []
    while data:
        size, id, flags = struct.unpack('>3H', data[:6])
        codes.append((id, flags & 15))
        data = data[2 + size:]
print(codes == [(id, 0 if id % 2 else 3) for id in range(200)])
with connect() as s:
    s.sendall(bytes([255, 255, 1]))
    print(answers(s))`
    const { stdout, stderr } = await run(allow('api.test'), python(script))
    expect({ stdout, stderr }).toEqual({ stdout: "True\nb''\n", stderr: '' })
  })

  test('names that are not listed leave no question at the name server of the host', async () => {
    const before = (await world.questions()).length
    const names = ['c2VjcmV0.tunnel.test', 'c2VjcmV0.api.test', 'api.test'].map((name) => `name,${name}`)
    await run(allow('api.test'), tryAll(names))
    const questions = (await world.questions()).slice(before)
    expect(questions).toContain('api.test')
    expect(questions.filter((name) => name.includes('c2vjcmv0'))).toEqual([])
  })

  test('a bad address among good ones is not dialled, and a name that leads elsewhere later is dialled where it was judged', async () => {
    const script = `
import socket, urllib.request
for name in ['mixed.test', 'rebind.test', 'rebind.test']: print(urllib.request.urlopen(f'http://{name}/say', timeout=20).read().decode(), end='')`
    const { stdout, network } = await run(allow('mixed.test', 'rebind.test'), python(script))
    expect(stdout.match(/from=\S+/g)).toEqual(Array(3).fill('from=::ffff:203.0.114.1'))
    expect(network).toContainEqual(
      expect.objectContaining({ host: 'mixed.test', verdict: 'not-public', address: '127.0.0.1' }),
    )
    expect((await world.questions()).filter((name) => name === 'rebind.test')).toHaveLength(2) // of both families
  })

  test('a denied address is denied in its IPv6 forms, too', async () => {
    const hosts = ['world.nat64.test', 'world.sixtofour.test']
    const attempts = tryAll(hosts.map((host) => `tcp,${host},80`))
    const resultsWith = async (...more: readonly string[]) =>
      resultsOf(readAttempts((await run([...allow(...hosts), ...more], attempts)).stdout))
    expect(await resultsWith()).toEqual(['ok', 'ok'])
    expect(await resultsWith('--deny-host', WORLD)).toEqual(['ECONNRESET', 'ECONNRESET'])
  })

  test('a private address and an IPv6 address are dialled where they are listed themselves', async () => {
    const attempts = ['private.test,80', '10.1.2.3,80', '10.1.2.3,7', `${WORLD_V6},80`, `${WORLD_V6},7`]
    const words = allow('private.test', '10.0.0.0/8', `[${WORLD_V6}]`)
    const { stdout } = await run(words, tryAll(attempts.map((attempt) => `tcp,${attempt}`)))
    expect(resultsOf(readAttempts(stdout))).toEqual(['ok', 'ok', 'ECONNREFUSED', 'ok', 'ECONNREFUSED'])
  })

  test('a wildcard runs out of stand-ins: none stands for two names, other hosts stay, and refusals leave room in the report', async () => {
    const script = `
import socket
found, refused = [], 0
for i in range(1100):
    try: found.append(socket.gethostbyname(f'n{i}.many.test'))
    except socket.gaierror: refused += 1
print(len(found), len(set(found)), refused, socket.gethostbyname('n5.many.test') == found[5])
for i in range(300):
    try: socket.gethostbyname(f'n{i}.other.test')
    except socket.gaierror: pass
with socket.create_connection(('api.test', 80), 60) as s: print('ok')`
    const { stdout, network, warnings } = await run(allow('api.test', '*.many.test'), python(script))
    expect({ stdout, rows: network?.length }).toEqual({ stdout: '1024 1024 76 True\nok\n', rows: 129 })
    expect(warnings).toContainEqual(expect.stringContaining('leaves out 172 connections'))
    expect(network).toContainEqual(expect.objectContaining({ host: 'api.test', verdict: 'allowed' }))
  })

  test('a server that speaks first, a client that half-closes, and a large answer arrive whole', async () => {
    const script = `
import socket
def ask(port, text):
    with socket.create_connection(('api.test', port), 60) as s:
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        size, data = 0, b''
        while (got := s.recv(1 << 20)): size, data = size + len(got), (data + got)[:40]
        return size, data
print(ask(7, b'abc'), ask(9, bytes(10 << 20)), ask(19, b'')[0])`
    const { stdout, stderr } = await run(allow('api.test:*'), python(script))
    expect({ stdout, stderr }).toEqual({ stdout: "(9, b'hello\\nabc') (9, b'10485760\\n') 67108864\n", stderr: '' })
  })

  test('a killed helper takes the network with it, and the result says so', async () => {
    const cwd = await temporaryDirectory({ mode: 0o777 })
    const script = `exec 3<>/dev/tcp/api.test/7; read line <&3; echo $line; >met; until [ -e killed ]; do sleep 0.05; done; read line <&3; echo "over $?"; curl -sS http://api.test/say; true`
    const argv = ['--rw', cwd, ...allow('api.test', 'api.test:7'), '--', 'bash', '-c', script]
    const running = runForResult(argv, { through: world.through, cwd })
    await until('the command', () => existsSync(join(cwd, 'met')) || undefined)
    const helper = await world.helper()
    process.kill(helper, 'SIGKILL')
    await writeFile(join(cwd, 'killed'), '')
    const { stdout, stderr, warnings } = await running
    expect(stdout).toBe('hello\nover 1\n')
    expect(stderr).toContain('Could not resolve host')
    expect(warnings).toContainEqual(expect.stringContaining('helper of the restricted network ended'))
  })

  test('runs at the same time know only their own hosts, and an empty list knows none', async () => {
    const attempts = tryAll(['tcp,api.test,80', 'tcp,other.test,80', `tcp,${WORLD},80`])
    const lists = [allow('api.test'), allow('other.test'), ['--net', 'restricted']]
    const all = await Promise.all(lists.map((words) => run(words, attempts)))
    expect(all.map(({ stdout }) => resultsOf(readAttempts(stdout)))).toEqual([
      ['ok', 'EAI_NONAME', 'ENETUNREACH'],
      ['EAI_NONAME', 'ok', 'ENETUNREACH'],
      ['EAI_NONAME', 'EAI_NONAME', 'ENETUNREACH'],
    ])
  })
})
