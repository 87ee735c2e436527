/** How the helper looks names up on the host: what it believes of whom, and how long it takes. */
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { AT_ONCE_MS } from './ways.ts'
import { openWorld, WORLD, WORLD_V6, type World } from './world.ts'

const NOBODY = '203.0.114.77'
const many = Array.from({ length: 60 }, (_, at) => `203.0.113.${at}`)

/** Of all addresses that are looked up only WORLD answers. */
const ZONE = {
  'plain.test': [[WORLD]],
  'six.test': [[WORLD_V6]],
  'alias.test': [['=other.test', '=Last.Test', WORLD]],
  'stray.test': [['=stray.test']],
  'forged.test': [[`!${NOBODY}`, WORLD]],
  'large.test': [[WORLD, ...many]],
  'sick.test': ['fail'],
} as const

const PYTHON = '/usr/bin/python3'
const CONNECT = `
import socket, sys, time
for name in sys.argv[1:]:
    begun = time.monotonic()
    try: result = socket.create_connection((name, 7), 8).recv(6).decode().strip()
    except socket.gaierror as error: result = {socket.EAI_NONAME: 'EAI_NONAME', socket.EAI_AGAIN: 'EAI_AGAIN'}[error.errno]
    except OSError as error: result = type(error).__name__
    print(name, result, round(1000 * (time.monotonic() - begun)))`

let world: World

type Found = Readonly<Record<string, readonly [string, number]>>

const connectThrough = async (through: readonly string[], ...names: readonly string[]): Promise<Found> => {
  const rules = names.flatMap((name) => ['--allow-host', `${name}:7`])
  const { stdout } = await runCli(['--json', ...rules, '--', PYTHON, '-c', CONNECT, ...names], { through })
  const lines = (JSON.parse(stdout.toString()) as Result).stdout.trim().split('\n')
  return Object.fromEntries(
    lines.map((line) => line.split(' ')).map(([name = '', what = '', ms]) => [name, [what, Number(ms)]]),
  )
}

const connect = (...names: readonly string[]): Promise<Found> => connectThrough(world.through, ...names)

/** Mounts of its own, in which /etc/hosts is a link into another directory. */
const LINKED = `
mount -t tmpfs none "$0" && mkdir "$0/upper" "$0/work" "$0/own"
mount -t overlay none -o "lowerdir=/etc,upperdir=$0/upper,workdir=$0/work" /etc
rm -f /etc/resolv.conf && echo nameserver 127.0.0.1 >/etc/resolv.conf
echo '${WORLD} linked.test' >"$0/own/hosts" && ln -sf "$0/own/hosts" /etc/hosts
exec "$@"`

const setUp = (file: 'hosts' | 'resolv.conf', text: string) =>
  execa('sh', [...world.through.slice(1), 'sh', '-c', `cat > /etc/${file}`], { input: text })

describeWith('root', 'the resolver of the helper', () => {
  beforeAll(async () => {
    world = await openWorld(ZONE as never)
  })
  afterAll(() => world.close())

  test.each<[what: string, name: string, result: string]>([
    ['an address of either family', 'six.test', 'hello'],
    ['a name by its aliases', 'alias.test', 'hello'],
    ['no name that is an alias of itself', 'stray.test', 'EAI_NONAME'],
    ['no reply to another question, and none with another id', 'forged.test', 'hello'],
    ['what does not fit a datagram, over TCP', 'large.test', 'hello'],
    ['no name that is not there', 'none.test', 'EAI_NONAME'],
  ])('finds %s', async (_, name, result) => {
    expect((await connect(name))[name]?.[0]).toBe(result)
  })

  test('a server that fails is not waited for', async () => {
    const [what, ms] = (await connect('sick.test'))['sick.test'] ?? ['', Number.NaN]
    expect(what).toBe('EAI_AGAIN')
    expect(ms).toBeLessThan(AT_ONCE_MS)
  })

  test('the servers of resolv.conf are asked in their order, and the next one where the first does not listen', async () => {
    await setUp('resolv.conf', '# none\nnameserver fe80::1%h0\nnameserver 127.0.0.2\nnameserver 127.0.0.1\n')
    expect(await connect('plain.test')).toMatchObject({ 'plain.test': ['hello', expect.any(Number)] })
  })

  test('a server that keeps silent has the seconds that resolv.conf gives it', async () => {
    await setUp('resolv.conf', `nameserver ${NOBODY}\nnameserver 127.0.0.1\noptions timeout:3\n`) // Two seconds where it says nothing.
    const [what, ms] = (await connect('plain.test'))['plain.test'] ?? ['', Number.NaN]
    expect(what).toBe('hello')
    expect(ms).toBeGreaterThanOrEqual(3000)
    await setUp('resolv.conf', 'nameserver 127.0.0.1\n')
  })

  test('/etc/hosts comes first, as it is when the name is asked for', async () => {
    await setUp('hosts', `127.0.0.1 localhost\n${WORLD} first.test Listed.test # ${NOBODY} listed.test\n`)
    const found = await connect('listed.test', 'plain.test')
    expect(found).toMatchObject({
      'listed.test': ['hello', expect.any(Number)],
      'plain.test': ['hello', expect.any(Number)],
    })
    expect(await world.questions()).not.toContain('listed.test')
  })

  test('/etc/hosts may be a link into another directory', async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    const through = [...world.through, 'unshare', '--mount', '--', 'sh', '-ec', LINKED, path]
    expect(await connectThrough(through, 'linked.test')).toMatchObject({ 'linked.test': ['hello', expect.any(Number)] })
    await remove()
  })

  test.each(['hosts', 'resolv.conf'])('no name is found while /etc/%s cannot be read', async (file) => {
    const change = (mode: string) => execa('sh', [...world.through.slice(1), 'chmod', mode, `/etc/${file}`])
    await change('600')
    expect((await connect('plain.test'))['plain.test']?.[0]).toBe('EAI_AGAIN')
    await change('644')
    expect((await connect('plain.test'))['plain.test']?.[0]).toBe('hello')
  })
})
