/** What else a command may try against a restricted network: the walls around it, and what is bounded. Each with its control. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statusLine } from '../../src/os/proc-status.ts'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { needsOf, WAYS, type Way } from './ways.ts'
import { openWorld, WORLD, type World } from './world.ts'

const PYTHON = '/usr/bin/python3'
const ATTACK = readFileSync(join(import.meta.dirname, 'programs/attack.py'), 'utf8')
const ABSTRACT = 'llm-do-test-attack'

const ZONE = {
  'api.test': [[WORLD]],
  'other.test': [[WORLD]],
  '*.many.test': [[WORLD]],
  'rebind.test': [[WORLD], ['127.0.0.1']],
  'fixed.test': [[WORLD]],
}

let world: World

const run = async (
  words: readonly string[],
  command: readonly string[],
  way: Way = WAYS[0],
  on = world,
): Promise<Result> => {
  const argv = ['--json', '--timeout', '2m', '--engine', way.engine, ...words, '--', ...command]
  const { stdout } = await runCli(argv, { through: on.through, as: way.as })
  return JSON.parse(stdout.toString()) as Result
}

const python = (script: string): readonly string[] => [PYTHON, '-c', script]

/* ---- walls ---- */

interface Wall {
  readonly what: string
  readonly attempt: string
  readonly meets: readonly string[]
  /** What root meets on the host; absent where it means nothing there. */
  readonly onHost?: string
}

const NO_FAMILY = ['EAFNOSUPPORT', 'EPROTONOSUPPORT', 'EPERM']
const TAKEN = ['EADDRINUSE', 'EACCES']
const WALLS: readonly Wall[] = [
  { what: 'a raw socket', attempt: 'raw', meets: NO_FAMILY, onHost: 'done' },
  { what: 'a packet socket', attempt: 'packet', meets: NO_FAMILY, onHost: 'done' },
  { what: 'a socket to the hypervisor', attempt: 'vsock', meets: NO_FAMILY, onHost: 'done' },
  { what: 'the socket of nftables', attempt: 'netfilter', meets: NO_FAMILY, onHost: 'done' },
  { what: 'the socket of IPsec', attempt: 'xfrm', meets: NO_FAMILY, onHost: 'done' },
  {
    what: 'an abstract socket of the host',
    attempt: `abstract=${ABSTRACT}`,
    meets: ['ECONNREFUSED', 'EPERM'],
    onHost: 'done',
  },
  { what: 'an address that is not its own', attempt: 'transparent', meets: ['EPERM'], onHost: 'done' },
  { what: 'another route', attempt: 'route', meets: ['EPERM'], onHost: 'done' },
  { what: 'another address', attempt: 'address', meets: ['EPERM'], onHost: 'done' },
  {
    what: 'the place of the name server (UDP)',
    attempt: 'take=198.18.0.1,53,udp',
    meets: TAKEN,
  },
  {
    what: 'the place of the name server (TCP)',
    attempt: 'take=198.18.0.1,53,tcp',
    meets: TAKEN,
  },
  {
    what: 'the place of diverted connections',
    attempt: 'take=198.18.0.1,1,tcp',
    meets: TAKEN,
  },
  // The control of the three: it is the place that is taken or needs a capability, not the address.
  { what: 'a free place at the same address', attempt: 'take=198.18.0.1,1024,tcp', meets: ['done'] },
  { what: 'a UNIX socket with a name', attempt: 'sockets', meets: ['ENOENT'], onHost: 'done' },
  { what: 'a process that relays', attempt: 'processes=net', meets: ['ESRCH'], onHost: 'done' },
  // Last: on the host it leads to another network.
  { what: 'a namespace in which it is root', attempt: 'raise', meets: ['EPERM'], onHost: 'done' },
]
const ATTEMPTS = [PYTHON, '-c', ATTACK, ...WALLS.map(({ attempt }) => attempt)]

const readResults = (stdout: string): ReadonlyMap<string, string> =>
  new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  )

const withResult = (wall: Wall, met: ReadonlyMap<string, string>) => ({ ...wall, met: met.get(wall.attempt) })

describeWith('root', 'attacks on a restricted network', () => {
  const state: { listener?: ReturnType<typeof spawn>; elsewhere?: World; rebound?: Promise<Result> } = {}

  beforeAll(async () => {
    world = await openWorld(ZONE)
    const listen = `import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0${ABSTRACT}'); s.listen(9); print(1, flush=True)\nwhile 1: s.accept()`
    const [file = '', ...words] = [...world.through, ...python(listen)]
    state.listener = spawn(file, words, { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(state.listener.stdout as NodeJS.ReadableStream, 'data')
    // Answers are believed for 30 seconds: the other tests run meanwhile, and look for the helper of a world of their own.
    state.elsewhere = await openWorld(ZONE)
    const hosts = ['--allow-host', 'rebind.test', '--allow-host', 'fixed.test']
    state.rebound = run(hosts, python(REBIND), WAYS[0], state.elsewhere)
  })
  afterAll(async () => {
    await state.rebound
    await state.elsewhere?.close()
    state.listener?.kill('SIGKILL')
    await world.close()
  })

  describe.each(WAYS)('$engine as $as', (way) => {
    testWith(needsOf(way), 'no wall gives way', async () => {
      const { stdout } = await run(['--allow-host', 'api.test'], ATTEMPTS, way)
      const met = readResults(stdout)
      const open = WALLS.filter(({ attempt, meets }) => !meets.includes(met.get(attempt) ?? ''))
      expect(open.map((wall) => withResult(wall, met))).toEqual([])
    })
  })

  test('root gets through on the host', async () => {
    const running = run(['--allow-host', 'api.test'], ['sleep', '5'])
    await world.helper() // A process that relays, on the host.
    const [file = '', ...words] = [...world.through, ...ATTEMPTS]
    const met = readResults((await execa(file, words)).stdout)
    expect(
      // A kernel may lack a family of sockets: the host says so in these words.
      WALLS.filter(
        ({ attempt, onHost }) =>
          onHost !== undefined && ![onHost, 'EAFNOSUPPORT', 'EPROTONOSUPPORT'].includes(met.get(attempt) ?? ''),
      ).map((wall) => withResult(wall, met)),
    ).toEqual([])
    await running
  })

  test('a name that leads elsewhere later is dialled where it was judged, and judged again when that is old', async () => {
    const { stdout, stderr, network } = (await state.rebound) as Result
    expect({ stdout, stderr }).toEqual({ stdout: 'rebind.test ok ECONNRESET\nfixed.test ok ok\n', stderr: '' })
    expect(network).toContainEqual(
      expect.objectContaining({ host: 'rebind.test', verdict: 'not-public', address: '127.0.0.1' }),
    )
  })

  test('a flood of questions leaves the names that are listed', async () => {
    const flood = `
import os, socket, urllib.request
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
sent = 0
for size in range(40000):
    try: sent += s.sendto(os.urandom(size % 600), ('198.18.0.1', 53)) >= 0
    except BlockingIOError: pass
print(sent > 10000, b'from=' in urllib.request.urlopen('http://api.test/say', timeout=20).read())`
    const { stdout, stderr } = await run(['--allow-host', 'api.test'], python(flood))
    expect({ stdout, stderr }).toEqual({ stdout: 'True True\n', stderr: '' })
  })

  test('a wildcard runs out of stand-ins: none stands for two names, and other hosts stay', async () => {
    const exhaust = `
import socket
found, refused = [], 0
for i in range(1100):
    try: found.append(socket.gethostbyname(f'n{i}.many.test'))
    except socket.gaierror: refused += 1
print(len(found), len(set(found)), refused, socket.gethostbyname('n5.many.test') == found[5])
with socket.create_connection(('api.test', 80), 5) as s: print('ok')`
    const { stdout, stderr } = await run(['--allow-host', 'api.test', '--allow-host', '*.many.test'], python(exhaust))
    expect({ stdout, stderr }).toEqual({ stdout: '1024 1024 76 True\nok\n', stderr: '' })
  })

  test('readers that take nothing are held in bounded memory', async () => {
    const slow = `
import socket, time
readers = [socket.create_connection(('api.test', 19), 20) for _ in range(300)]
print('begun', flush=True)
time.sleep(5)
with socket.create_connection(('api.test', 80), 5) as s:
    s.sendall(b'GET /say HTTP/1.0\\r\\n\\r\\n')
    print(b'200' in s.recv(100))`
    const running = run(['--allow-host', 'api.test:*'], python(slow))
    const helper = await world.helper()
    await setTimeout(4000)
    const kib = Number.parseInt(statusLine(readFileSync(`/proc/${helper}/status`, 'utf8'), 'VmHWM'), 10)
    expect((await running).stdout).toBe('begun\nTrue\n')
    expect(kib).toBeGreaterThan(1000)
    expect(kib).toBeLessThan(80 << 10)
  })
})

/** Connects twice to what each name meant at first: at once, and when the answer is no longer believed. */
const REBIND = `
import errno, socket, time
def ask(address):
    try:
        with socket.create_connection((address, 80), 20) as s:
            s.sendall(b'GET /say HTTP/1.0\\r\\n\\r\\n')
            return 'ok' if s.recv(100) else 'closed'
    except OSError as error: return errno.errorcode[error.errno]
names = ['rebind.test', 'fixed.test']
stand_ins = [socket.gethostbyname(name) for name in names]
first = [ask(address) for address in stand_ins]
time.sleep(32)
for name, address, result in zip(names, stand_ins, first): print(name, result, ask(address))`
