import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { ATTACKED, ATTACKS } from './attacks.ts'
import {
  ATTACKED_ZONE,
  attacksThatAreWeak,
  attacksThatPass,
  needsOf,
  PYTHON,
  readAttempts,
  resultsOf,
  tryAll,
  WAYS,
  type Way,
} from './ways.ts'
import { openWorld, WORLD, WORLD_V6, type World } from './world.ts'

let world: World

const run = async (words: readonly string[], command: readonly string[], way: Way = WAYS[0]): Promise<Result> => {
  const argv = ['--json', '--engine', way.engine, ...words, '--', ...command]
  const { stdout } = await runCli(argv, { through: world.through, as: way.as })
  return JSON.parse(stdout.toString()) as Result
}

describeWith('root', 'a network restricted by name', () => {
  beforeAll(async () => {
    world = await openWorld(ATTACKED_ZONE, { hostServes: true })
  })
  afterAll(() => world?.close())

  test('another command in a named sandbox has its network, and the result of the run tells of both', async () => {
    const name = `net-${process.pid}`
    const llmDo = (...words: readonly string[]) => runCli(words, { program: 'llm-do', through: world.through })
    const curl = (host: string) => llmDo('exec', '--in', name, '--', 'curl', '-sS', '-m', '5', `http://${host}/say`)
    onTestFinished(async () => void (await llmDo('stop', name)))
    expect((await llmDo('run', '--name', name, '--allow-host', 'api.test', '--', 'sleep', '300')).status).toBe(0)
    expect((await curl('api.test')).stdout.toString()).toContain('from=::ffff:203.0.114.1')
    expect((await curl('other.test')).status).toBe(6) // curl: the name leads nowhere
    expect((await llmDo('kill', name)).status).toBe(0)
    const ended = (await llmDo('ps', '--ended', '--json')).stdout.toString().split('\n')
    const line = ended.find((one) => one.includes(`"${name}"`)) ?? '{}'
    expect((JSON.parse(line) as { result?: Result }).result?.network).toMatchObject([
      { host: 'api.test', verdict: 'allowed', rule: 'api.test' },
      { host: 'other.test', verdict: 'not-listed' },
    ])
  })

  test('the result tells which host was reached and which one was refused', async () => {
    const curl = (host: string) => ['curl', '-sS', '-m', '5', `http://${host}/say`]
    const allowed = await run(['--allow-host', 'api.test'], curl('api.test'))
    expect(allowed).toMatchObject({ exitCode: 0, message: '' })
    expect(allowed.stdout).toContain(`from=::ffff:203.0.114.1`)
    expect(allowed.network).toMatchObject([{ host: 'api.test', port: 80, verdict: 'allowed', rule: 'api.test' }])
    const denied = await run(['--allow-host', 'api.test'], curl('other.test'))
    expect(denied.exitCode).not.toBe(0)
    expect(denied.denials).toMatchObject([
      { operation: 'resolve', target: 'other.test', fix: '--allow-host other.test' },
    ])
  })

  test('the name server answers many questions of one TCP connection, and outlives a client that goes away', async () => {
    const script = `
import socket, struct
def question(id, name):
    text = struct.pack('>6H', id, 256, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l for l in name.split(b'.')) + bytes([0, 0, 1, 0, 1])
    return struct.pack('>H', len(text)) + text
def connect(): return socket.create_connection(('198.18.0.1', 53), 5)
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
    const { stdout, stderr } = await run(['--allow-host', 'api.test'], [PYTHON, '-c', script])
    expect({ stdout, stderr }).toEqual({ stdout: "True\nb''\n", stderr: '' })
  })

  test('the name server closes connections that keep silent for ten seconds, in the middle of a question, too', async () => {
    const script = `
import socket, time
begun = time.monotonic()
silent = [socket.create_connection(('198.18.0.1', 53), 30) for _ in range(64)]
silent[0].sendall(bytes([0, 40, 1]))
print({s.recv(1) for s in silent}, time.monotonic() - begun >= 10, socket.gethostbyname('api.test') != '')`
    const { stdout, stderr } = await run(['--allow-host', 'api.test', '--timeout', '60s'], [PYTHON, '-c', script])
    expect({ stdout, stderr }).toEqual({ stdout: "{b''} True True\n", stderr: '' })
  })

  test('a command that fails hears in one line what was refused and which flag allows it', async () => {
    const argv = ['--allow-host', 'api.test', '--', 'sh', '-c', 'curl -s http://other.test/ http://api.test:81/']
    const { stderr } = await runCli(argv, { through: world.through })
    // One look-up asks for two kinds of addresses.
    expect(stderr.toString()).toMatch(
      /^llm-do: denied: resolve other\.test( \(\d times\))?; to allow it: --allow-host other\.test\nllm-do: denied: connect api\.test:81( \(\d times\))?; to allow it: --allow-host api\.test:81\n/m,
    )
  })

  describe.each(WAYS)('$engine as $as', (way) => {
    testWith(needsOf(way), 'every attack meets an error at once', async () => {
      const words = [...ATTACKED.flatMap((host) => ['--allow-host', host]), '--deny-host', 'b.wild.test']
      const tried = await run(words, tryAll(['tcp,api.test,80', ...ATTACKS.map(({ attempt }) => attempt)]), way)
      const met = readAttempts(tried.stdout)
      expect(met.get('tcp,api.test,80')).toMatchObject({ result: 'ok' })
      expect(attacksThatPass(met)).toEqual([])
    })
  })

  test('the host can do what every attack tries', async () => {
    const [file = '', ...words] = [...world.through, ...tryAll(ATTACKS.map(({ attempt }) => attempt))]
    expect(attacksThatAreWeak(readAttempts((await execa(file, words)).stdout))).toEqual([])
  })

  test('names that are not listed leave no question at the name server of the host', async () => {
    const before = (await world.questions()).length
    await run(
      ['--allow-host', 'api.test'],
      tryAll(['name,c2VjcmV0.tunnel.test', 'name,c2VjcmV0.api.test', 'name,api.test']),
    )
    const questions = (await world.questions()).slice(before)
    expect(questions).toContain('api.test')
    expect(questions.filter((name) => name.includes('c2vjcmv0'))).toEqual([])
  })

  test('a bad address among good ones is left out, and on record', async () => {
    const { stdout, network } = await run(['--allow-host', 'mixed.test'], tryAll(['tcp,mixed.test,80']))
    expect(stdout).toContain('ok')
    expect(network).toContainEqual(
      expect.objectContaining({ host: 'mixed.test', verdict: 'not-public', address: '127.0.0.1' }),
    )
  })

  test('a denied address is denied in its IPv6 forms, too', async () => {
    const hosts = ['world.nat64.test', 'world.sixtofour.test']
    const words = hosts.flatMap((host) => ['--allow-host', host])
    const attempts = tryAll(hosts.map((host) => `tcp,${host},80`))
    const resultsWith = async (...more: readonly string[]) =>
      resultsOf(readAttempts((await run([...words, ...more], attempts)).stdout))
    expect(await resultsWith()).toEqual(['ok', 'ok'])
    expect(await resultsWith('--deny-host', WORLD)).toEqual(['ECONNRESET', 'ECONNRESET'])
  })

  test('a private address is dialled where it is listed itself', async () => {
    const words = ['--allow-host', 'private.test', '--allow-host', '10.0.0.0/8']
    const { stdout } = await run(words, tryAll(['tcp,private.test,80', 'tcp,10.1.2.3,80', 'tcp,10.1.2.3,7']))
    expect(resultsOf(readAttempts(stdout))).toEqual(['ok', 'ok', 'ECONNREFUSED'])
  })

  test('a listed IPv6 address is reached', async () => {
    const { stdout } = await run(['--allow-host', `[${WORLD_V6}]`], tryAll([`tcp,${WORLD_V6},80`, `tcp,${WORLD_V6},7`]))
    expect(resultsOf(readAttempts(stdout))).toEqual(['ok', 'ECONNREFUSED'])
  })

  test('what was refused leaves room in the report for what was reached', async () => {
    const script = `
import socket, urllib.request
for i in range(300):
    try: socket.gethostbyname(f'n{i}.other.test')
    except socket.gaierror: pass
print(urllib.request.urlopen('http://api.test/say', timeout=20).status)`
    const { stdout, network, warnings } = await run(['--allow-host', 'api.test'], [PYTHON, '-c', script])
    expect({ stdout, rows: network?.length }).toEqual({ stdout: '200\n', rows: 129 })
    expect(warnings).toContainEqual(expect.stringContaining('leaves out 172 connections'))
    expect(network).toContainEqual(expect.objectContaining({ host: 'api.test', verdict: 'allowed' }))
  })

  test('a name that is allowed and that the host itself cannot resolve is on record', async () => {
    const curl = ['curl', '-sS', 'http://missing.test/']
    const { exitCode, network, denials, hints } = await run(['--allow-host', 'missing.test'], curl)
    expect(exitCode).toBe(6)
    expect(network).toMatchObject([{ host: 'missing.test', verdict: 'unresolved', rule: 'missing.test' }])
    expect(denials).toEqual([])
    expect(hints).toContain('allowed, but this host itself could not resolve: missing.test')
  })

  test('a host that is allowed and cannot be reached is on record', async () => {
    const { network, denials, hints } = await run(
      ['--allow-host', 'api.test:82'],
      ['curl', '-sS', 'http://api.test:82/'],
    )
    const verdicts = network?.map(({ verdict, connections }) => [verdict, connections])
    expect({ verdicts, denials }).toEqual({
      verdicts: [
        ['allowed', 1],
        ['unreachable', 1],
      ],
      denials: [],
    })
    expect(hints).toContain('allowed, but it could not be reached from this host: api.test:82')
  })

  test('an empty list denies everything', async () => {
    const { stdout } = await run(['--net', 'restricted'], tryAll(['tcp,api.test,80', `tcp,${WORLD},80`]))
    expect(resultsOf(readAttempts(stdout))).toEqual(['EAI_NONAME', 'ENETUNREACH'])
  })

  test('a server that speaks first, a client that half-closes, and a large answer arrive whole', async () => {
    const script = `
import socket, hashlib
def ask(port, text):
    with socket.create_connection(('api.test', port), 5) as s:
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        size = 0
        data = b''
        while (got := s.recv(1 << 20)):
            size += len(got)
            data = (data + got)[:40]
        return size, data
print(ask(7, b'abc'), ask(9, bytes(10 << 20)), ask(19, b'')[0])`
    const { stdout, stderr } = await run(['--allow-host', 'api.test:*'], [PYTHON, '-c', script])
    expect({ stdout, stderr }).toEqual({ stdout: "(9, b'hello\\nabc') (9, b'10485760\\n') 67108864\n", stderr: '' })
  })

  test('a thousand connections at once are all served', async () => {
    const script = `
import socket
all = [socket.create_connection(('api.test', 7), 20) for _ in range(1000)]
for s in all: s.sendall(b'x'); s.shutdown(socket.SHUT_WR)
def whole(s):
    data = b''
    while (got := s.recv(100)): data += got
    return data
print(sum(whole(s) == b'hello\\nx' for s in all))`
    const { stdout, stderr } = await run(['--allow-host', 'api.test:7'], [PYTHON, '-c', script])
    expect({ stdout, stderr }).toEqual({ stdout: '1000\n', stderr: '' })
  })

  test('nothing is left of the helper when the run is over', async () => {
    await run(['--allow-host', 'api.test'], ['sh', '-c', 'sleep 60 & curl -sS http://api.test/say'])
    expect(await world.helpers()).toEqual([])
  })

  test('a killed helper takes the network with it, and the result says so', async () => {
    const { path: cwd, remove } = await newDirectory({ mode: 0o777 })
    const script = `exec 3<>/dev/tcp/api.test/7; read line <&3; echo $line; >met; until [ -e killed ]; do sleep 0.05; done; read line <&3; echo "over $?"; curl -sS http://api.test/say; true`
    const hosts = ['--allow-host', 'api.test', '--allow-host', 'api.test:7']
    const argv = ['--json', '--rw', cwd, ...hosts, '--', 'bash', '-c', script]
    const running = runCli(argv, { through: world.through, cwd })
    const helper = await world.helper()
    while (!existsSync(join(cwd, 'met'))) await setTimeout(20)
    process.kill(helper, 'SIGKILL')
    await writeFile(join(cwd, 'killed'), '')
    const { stdout, stderr, warnings } = JSON.parse((await running).stdout.toString()) as Result
    await remove()
    expect(stdout).toBe('hello\nover 1\n')
    expect(stderr).toContain('Could not resolve host')
    expect(warnings).toContainEqual(expect.stringContaining('helper of the restricted network ended'))
  })

  test('two runs at once know their own hosts only', async () => {
    const attempts = tryAll(['tcp,api.test,80', 'tcp,other.test,80'])
    const both = await Promise.all([
      run(['--allow-host', 'api.test'], attempts),
      run(['--allow-host', 'other.test'], attempts),
    ])
    const results = both.map(({ stdout }) => resultsOf(readAttempts(stdout)))
    expect(results).toEqual([
      ['ok', 'EAI_NONAME'],
      ['EAI_NONAME', 'ok'],
    ])
  })
})
