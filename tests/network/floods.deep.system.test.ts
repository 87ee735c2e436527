/** A restricted network under load, over time, by the other engine and in a warm sandbox. */
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statusLine } from '../../src/os/proc-status.ts'
import type { Result } from '../../src/report/result.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { readOr, until } from '../support/processes.ts'
import {
  ATTACKED_ZONE,
  allow,
  attacksThatPassBy,
  eachWay,
  OTHER_WAYS,
  python,
  resultOf,
  shell,
  type Way,
} from './ways.ts'
import { openWorld, WORLD, type World } from './world.ts'

let world: World

const run = (words: readonly string[], command: readonly string[], on = world): Promise<Result> =>
  resultOf({ through: on.through, words: ['--timeout', '3m', ...words], command })

const proxied = async (): Promise<readonly string[]> => {
  const profile = join(await temporaryDirectory({ mode: 0o755 }), 'proxy.yaml')
  await writeFile(profile, 'sandbox: { network: { mode: restricted, proxy: on } }\n')
  return ['--profile', profile]
}

const lineOf = (pid: number, name: string): string => statusLine(readOr(`/proc/${pid}/status`), name)

describeWith('root', 'a network restricted by name', () => {
  beforeAll(async () => {
    world = await openWorld({ ...ATTACKED_ZONE, 'rebind.test': [[WORLD], ['127.0.0.1']], 'fixed.test': [[WORLD]] })
  })
  afterAll(() => world?.close())

  const attackedBy = (way: Way) =>
    attacksThatPassBy(
      (words, command) => resultOf({ through: world.through, words, command, way }),
      ['tcp,api.test,80'],
    )
  eachWay('every attack meets an error', async (way) => expect(await attackedBy(way)).toEqual([]), OTHER_WAYS)

  test('a name that leads elsewhere later is judged again when its answer is old', async () => {
    // Both were right at first. The second one is asked for again whenever its answer is old: the event that the first waits for.
    const script = `
import errno, socket, time
def ask(address):
    try:
        with socket.create_connection((address, 80), 20) as s:
            s.sendall(b'GET /say HTTP/1.0\\r\\n\\r\\n')
            return 'ok' if s.recv(100) else 'closed'
    except OSError as error: return errno.errorcode[error.errno]
rebind, fixed = [socket.gethostbyname(name) for name in ('rebind.test', 'fixed.test')]
print(ask(rebind), ask(fixed))
while (last := ask(rebind)) == 'ok': time.sleep(1)
print(last, ask(fixed))`
    const { stdout, network } = await run(allow('rebind.test', 'fixed.test'), python(script))
    expect(stdout).toBe('ok ok\nECONNRESET ok\n')
    expect(network).toContainEqual(
      expect.objectContaining({ host: 'rebind.test', verdict: 'not-public', address: '127.0.0.1' }),
    )
  })

  test('a flood of questions leaves the listed names', async () => {
    const flood = `
import os, socket, urllib.request
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
sent = 0
for size in range(40000):
    try: sent += s.sendto(os.urandom(size % 600), ('198.18.0.1', 53)) >= 0
    except BlockingIOError: pass
print(sent > 10000, b'from=' in urllib.request.urlopen('http://api.test/say', timeout=20).read())`
    expect((await run(allow('api.test'), python(flood))).stdout).toBe('True True\n')
  })

  test('readers that take nothing are held in bounded memory', async () => {
    const cwd = await temporaryDirectory({ mode: 0o777 })
    const slow = `
import socket, os, time
readers = [socket.create_connection(('api.test', 19), 20) for _ in range(300)]
with socket.create_connection(('api.test', 80), 20) as s:
    s.sendall(b'GET /say HTTP/1.0\\r\\n\\r\\n')
    print(b'200' in s.recv(100))
open('${cwd}/begun', 'w')
while not os.path.exists('${cwd}/seen'): time.sleep(0.05)`
    const running = run(['--rw', cwd, ...allow('api.test:*')], python(slow))
    await until('the command', () => readOr(`${cwd}/begun`, 'no') === '' || undefined)
    const helper = await world.helper()
    const kib = Number.parseInt(statusLine(readFileSync(`/proc/${helper}/status`, 'utf8'), 'VmHWM'), 10)
    await writeFile(join(cwd, 'seen'), '')
    expect((await running).stdout).toBe('True\n')
    expect(kib).toBeGreaterThan(1000)
    expect(kib).toBeLessThan(80 << 10)
  })

  test('a thousand connections are served side by side, and 300 by a proxy', async () => {
    const script = (count: number, place: string, hello: string) => `
import socket
all = [socket.create_connection(${place}, 60) for _ in range(${count})]
for s in all: s.sendall(${hello}b'x'); s.shutdown(socket.SHUT_WR)
def whole(s):
    data = b''
    while (got := s.recv(1000)): data += got
    return data
print(sum(whole(s).endswith(b'hello\\nx') for s in all))`
    expect((await run(allow('api.test:7'), python(script(1000, "('api.test', 7)", '')))).stdout).toBe('1000\n')
    const connect = "b'CONNECT api.test:7 HTTP/1.1\\r\\n\\r\\n'"
    const words = [...(await proxied()), ...allow('api.test:7')]
    expect((await run(words, python(script(300, "('198.18.0.1', 3128)", connect)))).stdout).toBe('300\n')
  })

  test('the name server and the proxies close clients that keep silent for ten seconds, and serve others meanwhile', async () => {
    const script = `
import select, socket, time
begun = time.monotonic()
silent = [socket.create_connection(('198.18.0.1', 53), 60) for _ in range(64)]
slow = [socket.create_connection(('198.18.0.1', port), 60) for port in (3128, 1080)]
silent[0].sendall(bytes([0, 40, 1])), slow[0].sendall(b'GET http://api'), slow[1].sendall(bytes([5]))
with socket.create_connection(('198.18.0.1', 3128), 60) as s:
    s.sendall(b'GET http://api.test/say HTTP/1.1\\r\\n\\r\\n')
    print(b'from=' in s.recv(4096) + s.recv(4096))
print({s.recv(1) for s in silent + slow}, time.monotonic() - begun >= 10, socket.gethostbyname('api.test') != '')`
    const { stdout, stderr } = await run([...(await proxied()), ...allow('api.test')], python(script))
    expect({ stdout, stderr }).toEqual({ stdout: "True\n{b''} True True\n", stderr: '' })
  })

  test('the helper sleeps while it has no descriptor for a client, and serves it when there is one again', async () => {
    const cwd = await temporaryDirectory({ mode: 0o777 })
    // Connections that last take each number that is free: then the limit can be as high as the number of descriptors that are polled.
    const script = `import os, socket, struct, time
held = [socket.create_connection(('api.test', 7), 60) for _ in range(4)]
open('${cwd}/begun', 'w')
while not os.path.exists('${cwd}/go'): time.sleep(0.05)
question = struct.pack('>6H', 1, 256, 1, 0, 0, 0) + bytes([9]) + b'localhost' + bytes([0, 0, 1, 0, 1])
with socket.create_connection(('198.18.0.1', 53), 60) as s:
    s.sendall(struct.pack('>H', len(question)) + question)
    print(s.recv(4096)[-4:])`
    const running = run(['--rw', cwd, ...allow('api.test:7')], python(script))
    await until('the command', () => readOr(`${cwd}/begun`, 'no') === '' || undefined)
    const helper = await world.helper()
    const open = await until('numbers without a gap', () => {
      const numbers = readdirSync(`/proc/${helper}/fd`).map(Number)
      return Math.max(...numbers) < numbers.length ? numbers.length : undefined
    })
    const [id = ''] = lineOf(helper, 'Uid').split('\t')
    // As the helper's own user: not every root may change the limits of others.
    const as = ['--reuid', id, '--regid', id, '--clear-groups', 'prlimit', '--pid', `${helper}`]
    const limit = (descriptors: number) => execa('setpriv', [...as, `--nofile=${descriptors}:`])
    const sleeps = (): number => Number(lineOf(helper, 'voluntary_ctxt_switches'))
    await limit(open)
    const before = sleeps()
    await writeFile(join(cwd, 'go'), '')
    await until('its sleep', () => sleeps() > before + 50 || undefined)
    await limit(1000)
    expect((await running).stdout).toBe("b'\\x7f\\x00\\x00\\x01'\n")
  })

  test('a silent server of resolv.conf has the seconds of its option, and then the next one is asked', async () => {
    const own = await openWorld({ 'plain.test': [[WORLD]] })
    const conf = 'nameserver 203.0.114.77\nnameserver 127.0.0.1\noptions timeout:3\n' // Two seconds where it says nothing.
    await execa('sh', [...own.through.slice(1), ...shell('cat > /etc/resolv.conf')], { input: conf })
    const script = `
import socket, time
begun = time.monotonic()
print(socket.create_connection(('plain.test', 7), 60).recv(6), time.monotonic() - begun >= 3)`
    const { stdout } = await run(allow('plain.test:7'), python(script), own)
    await own.close()
    expect(stdout).toBe("b'hello\\n' True\n")
  })
})
