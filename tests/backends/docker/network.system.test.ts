/** The network of a container restricted by name: its walls against real programs and attacks, by the command line. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { ATTACKS, type Attack } from '../../network/attacks.ts'
import { SERVED } from '../../network/proxy-attacks.ts'
import {
  allow,
  attacksThatAreWeak,
  attacksThatPassBy,
  readAttempts,
  resultsOf,
  shell,
  tryAll,
} from '../../network/ways.ts'
import { startServer } from '../../network/world.ts'
import { runCli } from '../../support/cli.ts'
import { describeWith } from '../../support/needs.ts'
import { inTheWorld, lines, python, WORDS } from './networks.ts'
import { hasFile, ownedDirectory, until } from './runs.ts'

/** Docker switches IPv6 off where no such address is listed: the kernel then says another word. */
const among = (meets: readonly string[]): readonly string[] =>
  meets.includes('ENETUNREACH') ? [...meets, 'EADDRNOTAVAIL'] : meets

describeWith('docker', 'the network of a container, restricted by name', () => {
  const { daemon, world, run } = inTheWorld()

  test('programs reach a listed host and no other, and the result says so', async () => {
    const client = (host: string) => shell(`curl -sS -m 5 http://${host}/say`)
    const allowed = await run(allow('api.test'), client('api.test'))
    expect(allowed).toMatchObject({ exitCode: 0, message: '', denials: [] })
    expect(allowed.stdout).toContain(SERVED)
    expect(allowed.network).toMatchObject([{ host: 'api.test', port: 80, verdict: 'allowed', rule: 'api.test' }])
    const denied = await run(allow('api.test'), client('other.test'))
    expect(denied.stderr).toContain('Could not resolve host')
    expect(denied.denials).toMatchObject([
      { operation: 'resolve', target: 'other.test', fix: '--allow-host other.test' },
    ])
  })

  test('a port of the loopback leads to this host where a rule names localhost, and no other port', async () => {
    const serve = `for (const port of [18901, 18902]) require('net').createServer((c) => c.end('own')).listen(port, '::')
      console.log('up')`
    const server = await startServer([...world().through, process.execPath, '-e', serve])
    onTestFinished(() => void server.kill('SIGKILL'))
    const attempts = ['tcp,127.0.0.1,18901', 'tcp,127.0.0.2,18901', 'tcp,127.0.0.1,18902']
    const { stderr, stdout } = await run(allow('localhost:18901'), tryAll(attempts, 'python3'))
    expect(stderr).toBe('')
    expect(resultsOf(readAttempts(stdout))).toEqual(['ok', 'ECONNREFUSED', 'ECONNREFUSED'])
  })

  test('every attack meets an error at once, and the host can do it', async () => {
    const ways = { program: 'python3', mayMeet: ({ meets }: Attack) => among(meets) }
    expect(await attacksThatPassBy(run, ['tcp,api.test,80'], ways)).toEqual([])
    const attempts = ATTACKS.map(({ attempt }) => attempt)
    const control = await execa('sh', [...world().through.slice(1), ...tryAll(attempts)])
    expect(attacksThatAreWeak(readAttempts(control.stdout))).toEqual([])
  })

  test('the command has no id and no capability of those that made its network', async () => {
    const script = `
import os, socket
status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)
print(os.getresuid(), os.getresgid(), os.getgroups())
print([status[name] for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp')])
print([line for line in open('/proc/1/status') if line.startswith('Cap') and set(line.split()[1]) != {'0'}])
def tried(what):
    try: return what()
    except OSError as error: return error.errno
IP_TRANSPARENT, RTM = 19, b'\\x1c\\0\\0\\0\\x19\\0\\5\\6' + bytes(20)
def transparent():
    with socket.socket() as s: s.setsockopt(0, IP_TRANSPARENT, 1)
def route():
    with socket.socket(16, 3, 0) as s:
        s.send(RTM); return -int.from_bytes(s.recv(64)[16:20], 'little', signed=True)
print(tried(lambda: os.setresuid(0, 0, 0)), tried(lambda: os.setgroups([0])), tried(lambda: socket.socket(16, 3, 12)), tried(transparent), tried(route))
def connect(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s: s.connect(path)
print(tried(lambda: connect('/.llm-do-net')))`
    const { stdout, stderr } = await run(allow('api.test'), python(script))
    expect(stderr).toBe('')
    const [ids, capabilities, init, calls, socket] = lines(stdout)
    expect(ids).not.toMatch(/\b0\b/)
    expect(ids).toMatch(/\[\]$/)
    const none = "'0000000000000000'"
    expect(capabilities).toBe(`[${[none, none, none, none, none].join(', ')}, '1', '2']`)
    expect(init).toBe('[]')
    // EPERM, EPERM, EPROTONOSUPPORT, EPERM, EPERM; ECONNREFUSED.
    expect(calls).toBe('1 1 93 1 1')
    expect(socket).toBe('111')
  })
  test('nothing is left of the helper and its socket, after an end and after a timeout', async () => {
    expect(await run(allow('api.test'), shell('sleep 60 & exit 7'))).toMatchObject({ exitCode: 7, reason: 'exit' })
    expect(await run([...allow('api.test'), '--timeout', '2s'], shell('sleep 60'))).toMatchObject({ reason: 'timeout' })
    expect(world().helpers()).toEqual([])
    expect(await daemon().client('ps', '--all', '--quiet')).toBe('')
  })

  test('a killed helper takes the network with it, and the result says so', async () => {
    const zone = await ownedDirectory()
    const script = 'touch /w/in; until [ -e /w/out ]; do sleep 0.1; done; curl -sS http://api.test/say; true'
    const running = run([...allow('api.test'), '--rw', `${zone}:/w`], shell(script))
    await until(hasFile(zone, 'in'))
    const helper = await world().helper()
    process.kill(helper, 'SIGKILL')
    await expect.poll(() => world().helpers()).toEqual([])
    await writeFile(join(zone, 'out'), '')
    const { stderr, warnings } = await running
    expect(stderr).toContain('Could not resolve host')
    expect(warnings).toContainEqual(expect.stringContaining('helper of the restricted network ended'))
  })

  test('a killed runner takes the helper with it', async () => {
    const stop = new AbortController()
    const env = { ...daemon().env, LLM_DO_DOCKER: 'docker' }
    const argv = [...WORDS, ...allow('api.test'), '--', 'sleep', '60']
    const running = runCli(argv, { through: world().through, env, abort: stop.signal, stopSignal: 'SIGKILL' })
    await world().helper()
    await expect.poll(() => daemon().client('ps', '--quiet')).not.toBe('')
    stop.abort()
    await running.catch(() => undefined)
    await expect.poll(() => world().helpers()).toEqual([])
    await expect.poll(() => daemon().client('ps', '--quiet')).toBe('')
  })
})
