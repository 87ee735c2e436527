/** The network of a container restricted by name: real programs and attacks, by the command line, as root and as a user who may use docker. */
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Result } from '../../../src/report/result.ts'
import { ATTACKED, ATTACKS } from '../../network/attacks.ts'
import { PROXY_ATTACKS, SERVED } from '../../network/proxy-attacks.ts'
import { ATTACKED_ZONE, attacksThatAreWeak, attacksThatPass, readAttempts, tryAll } from '../../network/ways.ts'
import { openWorld, WORLD, WORLD_V6, type World } from '../../network/world.ts'
import { runCli } from '../../support/cli.ts'
import { oncePerFile, startDocker, startPodman, type TestDocker } from '../../support/docker.ts'
import { describeWith, testWith } from '../../support/needs.ts'

/** Links into the host's /usr, which is a zone at another place: one at /usr would be the system's. */
const IMAGE = 'llm-do-test/host-usr:1'

async function importImage({ root, client }: TestDocker): Promise<void> {
  const tree = join(root, 'host-usr')
  await mkdir(join(tree, 'host-usr'), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) await symlink(`host-usr/${name}`, join(tree, name))
  for (const name of ['etc', 'tmp', 'proc', 'sys', 'dev']) await mkdir(join(tree, name))
  await execa('tar', ['--create', '--file', `${tree}.tar`, '--directory', tree, '.'])
  await client('import', `${tree}.tar`, IMAGE)
}

const docker = oncePerFile(startDocker)
const podman = oncePerFile(startPodman)

let world: World
let daemon: TestDocker

type User = 'root' | 'plain'
const USERS: readonly User[] = ['root', 'plain']

const WORDS = ['--json', '--best-effort', '--backend', 'docker', '--image', IMAGE, '--ro', '/usr:/host-usr']

async function start(words: readonly string[], command: readonly string[], as: User = 'root') {
  const env = { ...daemon.env, HOME: daemon.root, LLM_DO_DOCKER: 'docker', PYTHONHOME: '/host-usr' }
  return runCli([...WORDS, '--env', 'PYTHONHOME', ...words, '--', ...command], { through: world.through, as, env })
}

async function run(words: readonly string[], command: readonly string[], as: User = 'root'): Promise<Result> {
  const { stdout, stderr } = await start(words, command, as)
  expect(stdout.toString(), stderr.toString()).toMatch(/^{/)
  return JSON.parse(stdout.toString()) as Result
}

const shell = (command: string): readonly string[] => ['sh', '-c', command]
const python = (script: string, words: readonly string[] = []): readonly string[] => ['python3', '-c', script, ...words]
const allow = (...hosts: readonly string[]): readonly string[] => hosts.flatMap((host) => ['--allow-host', host])
const program = (name: string): Promise<string> =>
  readFile(join(import.meta.dirname, '../../network/programs', name), 'utf8')

/** Docker switches IPv6 off where no such address is listed: the kernel then says another word. */
const among = (meets: readonly string[]): readonly string[] =>
  meets.includes('ENETUNREACH') ? [...meets, 'EADDRNOTAVAIL'] : meets

const lines = (text: string): readonly string[] => text.trim().split('\n')

describeWith(['docker', 'root'], 'the network of a container, restricted by name', () => {
  beforeAll(async () => {
    daemon = await docker()
    await importImage(daemon)
    // As a user of the group of its socket would find it.
    await chmod(daemon.root, 0o711)
    await chmod(join(daemon.root, 'socket'), 0o666)
    world = await openWorld(ATTACKED_ZONE, { hostServes: true })
  })
  afterAll(() => world?.close())

  describe.each(USERS)('as %s', (as) => {
    const needs = as === 'plain' ? (['plain-user'] as const) : (['root'] as const)

    testWith(needs, 'programs reach a listed host and no other, and the result says so', async () => {
      const client = (host: string) => shell(`curl -sS -m 5 http://${host}/say`)
      const allowed = await run(allow('api.test'), client('api.test'), as)
      expect(allowed).toMatchObject({ exitCode: 0, message: '', denials: [] })
      expect(allowed.stdout).toContain(SERVED)
      expect(allowed.network).toMatchObject([{ host: 'api.test', port: 80, verdict: 'allowed', rule: 'api.test' }])
      const denied = await run(allow('api.test'), client('other.test'), as)
      expect(denied.stderr).toContain('Could not resolve host')
      expect(denied.denials).toMatchObject([
        { operation: 'resolve', target: 'other.test', fix: '--allow-host other.test' },
      ])
    })

    testWith(needs, 'every attack meets an error at once, and the host can do it', async () => {
      const attempts = ATTACKS.map(({ attempt }) => attempt)
      const words = [...allow(...ATTACKED), '--deny-host', 'b.wild.test']
      const tried = await run(words, tryAll(['tcp,api.test,80', ...attempts], 'python3'), as)
      const met = readAttempts(tried.stdout)
      expect(met.get('tcp,api.test,80')?.result).toBe('ok')
      expect(attacksThatPass(met, ({ meets }) => among(meets))).toEqual([])
      const control = await execa('sh', [...world.through.slice(1), ...tryAll(attempts)])
      expect(attacksThatAreWeak(readAttempts(control.stdout))).toEqual([])
    })

    testWith(needs, 'the command has no id and no capability of those that made its network', async () => {
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
      const { stdout, stderr } = await run(allow('api.test'), python(script), as)
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
  })

  test('the control: without what init gives up, a container has the capabilities and the netlink of its own', async () => {
    const words = ['run', '--rm', '--network', 'none', '--user', '0:0', '--cap-drop', 'ALL', '--cap-add', 'NET_ADMIN']
    const script = 'import socket; socket.socket(16, 3, 12); print(open("/proc/self/status").read())'
    const mount = ['--env', 'PYTHONHOME=/host-usr', '--volume', '/usr:/host-usr:ro', IMAGE, 'python3', '-c', script]
    expect(await daemon.client(...words, ...mount)).toMatch(/CapEff:\t0000000000001000/)
  })

  test('the proxies are there on request, and refuse what they refuse elsewhere', async () => {
    const profile = join(daemon.root, 'proxy.yaml')
    await writeFile(profile, 'sandbox: { network: { mode: restricted, proxy: on } }\n')
    const asked = PROXY_ATTACKS.map(({ port, sends }) => JSON.stringify([port, sends]))
    const words = ['--profile', profile, ...allow(...ATTACKED)]
    const { stdout } = await run(words, python(await program('proxy.py'), asked))
    const met = lines(stdout).map((line) => (JSON.parse(line) as { answer: string }).answer)
    const passed = PROXY_ATTACKS.filter(({ meets }, at) => {
      const answer = met[at] ?? ''
      return (
        !answer.startsWith(meets) || answer.includes('from=') || (meets === '' && answer !== '' && answer !== 'RESET')
      )
    })
    expect(passed).toEqual([])
    const { stdout: served } = await run(words, shell('curl -sS http://api.test/say; env | grep -ci _proxy='))
    expect(served).toMatch(/from=.*\n9\n$/)
  })

  test('a listed IPv6 address is reached, an empty list reaches nothing', async () => {
    const attempts = [`tcp,${WORLD_V6},80`, 'tcp,api.test,80', `tcp,${WORLD},80`]
    const six = await run(allow(`[${WORLD_V6}]`), python(await program('try.py'), attempts))
    expect(lines(six.stdout).map((line) => line.split(' ')[1])).toEqual(['ok', 'EAI_NONAME', 'ENETUNREACH'])
    const none = await run(['--net', 'restricted'], python(await program('try.py'), attempts))
    expect(lines(none.stdout).map((line) => line.split(' ')[1])).toEqual(['EADDRNOTAVAIL', 'EAI_NONAME', 'ENETUNREACH'])
  })

  test('a large answer arrives whole, and streams can be opened by their names', async () => {
    const script = `
import socket
with socket.create_connection(('api.test', 19), 5) as s:
    size = 0
    while (got := s.recv(1 << 20)): size += len(got)
print(size)`
    const { stdout } = await run(allow('api.test:19'), python(script))
    expect(stdout).toBe('67108864\n')
    const named = await run(allow('api.test'), shell('echo out > /dev/stdout; echo err > /dev/stderr'))
    expect(named).toMatchObject({ stdout: 'out\n', stderr: 'err\n' })
  })

  test('nothing is left of the helper and its socket, and exits and signals of the command stay what they are', async () => {
    expect(await run(allow('api.test'), shell('sleep 60 & exit 7'))).toMatchObject({ exitCode: 7, reason: 'exit' })
    expect(await run(allow('api.test'), shell('kill -TERM $$'))).toMatchObject({ signal: 'SIGTERM' })
    expect(await run([...allow('api.test'), '--timeout', '2s'], shell('sleep 60'))).toMatchObject({ reason: 'timeout' })
    expect(await world.helpers()).toEqual([])
    expect(await daemon.client('ps', '--all', '--quiet')).toBe('')
  })

  test('a killed helper takes the network with it, and the result says so', async () => {
    const running = run(allow('api.test'), shell('sleep 4; curl -sS http://api.test/say; true'))
    const helper = await world.helper()
    const isAsleep = async (container: string) => /sleep 4$/m.test(container && (await daemon.client('top', container)))
    await expect.poll(async () => isAsleep(await daemon.client('ps', '--quiet')), { timeout: 20_000 }).toBe(true)
    process.kill(helper, 'SIGKILL')
    const { stderr, warnings } = await running
    expect(stderr).toContain('Could not resolve host')
    expect(warnings).toContainEqual(expect.stringContaining('helper of the restricted network ended'))
  })

  test('a killed runner takes the helper with it', async () => {
    const stop = new AbortController()
    const env = { ...daemon.env, LLM_DO_DOCKER: 'docker' }
    const argv = [...WORDS, ...allow('api.test'), '--', 'sleep', '60']
    const running = runCli(argv, { through: world.through, env, abort: stop.signal, stopSignal: 'SIGKILL' })
    await world.helper()
    await setTimeout(1000)
    stop.abort()
    await running.catch(() => undefined)
    await expect.poll(() => world.helpers(), { timeout: 10_000 }).toEqual([])
    await expect.poll(() => daemon.client('ps', '--quiet'), { timeout: 10_000 }).toBe('')
  })

  test('a session container is refused', async () => {
    const profile = join(daemon.root, 'session.yaml')
    await writeFile(profile, 'sandbox: { docker: { reuse: session } }\n')
    const { stdout } = await start(['--profile', profile, ...allow('api.test')], ['true'])
    expect(stdout.toString()).toContain('the container of a session serves many runs')
  })
})

describeWith(['docker', 'podman', 'root'], 'podman', () => {
  test('lacks a network restricted by name, and says why', async () => {
    const { env } = await podman()
    const words = ['--backend', 'docker', '--image', 'x', '--best-effort', '--allow-host', 'api.test', '--', 'true']
    const { status, stderr } = await runCli(words, { env: { ...env, LLM_DO_DOCKER: 'podman' } })
    expect(status).toBe(125)
    expect(stderr.toString()).toContain('built for docker, not for podman')
  })
})
