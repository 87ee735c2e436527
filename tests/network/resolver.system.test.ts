/** How the helper looks names up on the host: which replies and files it believes, and in which order. */
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { allow, python, resultOf } from './ways.ts'
import { openWorld, WORLD, WORLD_V6, type World, type Zone } from './world.ts'

const NOBODY = '203.0.114.77'
const many = Array.from({ length: 60 }, (_, at) => `203.0.113.${at}`)

/** Of all addresses that are looked up only WORLD answers. */
const ZONE: Zone = {
  'plain.test': [[WORLD]],
  'six.test': [[WORLD_V6]],
  'alias.test': [['=other.test', '=Last.Test', WORLD]],
  'stray.test': [['=stray.test']],
  'forged.test': [[`!${NOBODY}`, WORLD]],
  'large.test': [[WORLD, ...many]],
  'sick.test': ['fail'],
}

/** The expected answers for each of them, and the promise that it is an example of. */
const FOUND: readonly (readonly [name: string, result: string, promise: string])[] = [
  ['plain.test', 'hello', 'a name'],
  ['six.test', 'hello', 'an address of either family'],
  ['alias.test', 'hello', 'a name by its aliases'],
  ['stray.test', 'EAI_NONAME', 'no name that is an alias of itself'],
  ['forged.test', 'hello', 'no reply to another question, and none with another id'],
  ['large.test', 'hello', 'a reply that does not fit a datagram, over TCP'],
  ['none.test', 'EAI_NONAME', 'no name that is not there'],
  ['sick.test', 'EAI_AGAIN', 'a failure of the server'],
]

const CONNECT = `
import socket, sys
for name in sys.argv[1:]:
    try: result = socket.create_connection((name, 7), 60).recv(6).decode().strip()
    except socket.gaierror as error: result = {socket.EAI_NONAME: 'EAI_NONAME', socket.EAI_AGAIN: 'EAI_AGAIN'}[error.errno]
    except OSError as error: result = type(error).__name__
    print(name, result)`

let world: World

const connectThrough = async (through: readonly string[], ...names: readonly string[]) => {
  const words = allow(...names.map((name) => `${name}:7`))
  const { stdout } = await resultOf({ through, words, command: python(CONNECT, ...names) })
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ')),
  )
}
const connect = (...names: readonly string[]) => connectThrough(world.through, ...names)

/** Private mounts, in which /etc/hosts is a link into another directory. */
const LINKED = `
mount -t tmpfs none "$0" && mkdir "$0/upper" "$0/work" "$0/own"
mount -t overlay none -o "lowerdir=/etc,upperdir=$0/upper,workdir=$0/work" /etc
rm -f /etc/resolv.conf && echo nameserver 127.0.0.1 >/etc/resolv.conf
echo '${WORLD} linked.test' >"$0/own/hosts" && ln -sf "$0/own/hosts" /etc/hosts
exec "$@"`

const onHost = (command: readonly string[], input = '') =>
  execa('sh', [...world.through.slice(1), ...command], { input })
const setUp = (file: 'hosts' | 'resolv.conf', text: string) => onHost(['sh', '-c', `cat > /etc/${file}`], text)

describeWith('root', 'the resolver of the helper', () => {
  beforeAll(async () => {
    world = await openWorld(ZONE)
  })
  afterAll(() => world?.close())

  test('finds what the name server says of a name, and nothing else', async () => {
    const found = await connect(...FOUND.map(([name]) => name))
    expect(FOUND.map(([name, , promise]) => [name, found[name], promise])).toEqual(FOUND)
  })

  test('the servers of resolv.conf are asked in their order, and the next one where the first does not listen', async () => {
    await setUp('resolv.conf', '# none\nnameserver fe80::1%h0\nnameserver 127.0.0.2\nnameserver 127.0.0.1\n')
    expect(await connect('plain.test')).toEqual({ 'plain.test': 'hello' })
    await setUp('resolv.conf', 'nameserver 127.0.0.1\n')
  })

  test('/etc/hosts comes first, as it is when the name is asked for', async () => {
    await setUp('hosts', `127.0.0.1 localhost\n${WORLD} first.test Listed.test # commented.test\n`)
    expect(await connect('listed.test', 'plain.test', 'commented.test')).toEqual({
      'listed.test': 'hello',
      'plain.test': 'hello',
      'commented.test': 'EAI_NONAME',
    })
    expect(await world.questions()).not.toContain('listed.test')
  })

  test('/etc/hosts may be a link into another directory', async () => {
    const path = await temporaryDirectory({ mode: 0o755 })
    const through = [...world.through, 'unshare', '--mount', '--', 'sh', '-ec', LINKED, path]
    expect(await connectThrough(through, 'linked.test')).toEqual({ 'linked.test': 'hello' })
  })

  test.each(['hosts', 'resolv.conf'])('no name is found while /etc/%s cannot be read', async (file) => {
    await onHost(['chmod', '600', `/etc/${file}`])
    expect(await connect('plain.test')).toEqual({ 'plain.test': 'EAI_AGAIN' })
    await onHost(['chmod', '644', `/etc/${file}`])
    expect(await connect('plain.test')).toEqual({ 'plain.test': 'hello' })
  })
})
