/** The rest of what programs meet in the network of a container that is restricted by name. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { allow, shell } from '../../network/ways.ts'
import { WORLD, WORLD_V6 } from '../../network/world.ts'
import { describeWith } from '../../support/needs.ts'
import { IMAGE, inTheWorld, lines, python } from './networks.ts'

const program = (name: string): Promise<string> =>
  readFile(join(import.meta.dirname, '../../network/programs', name), 'utf8')

describeWith('docker', 'the network of a container, restricted by name', () => {
  const { daemon, run } = inTheWorld()

  test('the control: without what init gives up, a container has the capabilities and the netlink of its own', async () => {
    const words = ['run', '--rm', '--network', 'none', '--user', '0:0', '--cap-drop', 'ALL', '--cap-add', 'NET_ADMIN']
    const script = 'import socket; socket.socket(16, 3, 12); print(open("/proc/self/status").read())'
    const mount = ['--env', 'PYTHONHOME=/host-usr', '--volume', '/usr:/host-usr:ro', IMAGE, 'python3', '-c', script]
    expect(await daemon().client(...words, ...mount)).toMatch(/CapEff:\t0000000000001000/)
  })

  test('the proxies are there on request', async () => {
    const profile = join(daemon().root, 'proxy.yaml')
    await writeFile(profile, 'sandbox: { network: { mode: restricted, proxy: on } }\n')
    const words = ['--profile', profile, ...allow('api.test')]
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

  test('a session container is refused', async () => {
    const profile = join(daemon().root, 'session.yaml')
    await writeFile(profile, 'sandbox: { docker: { reuse: session } }\n')
    const { error } = await run(['--profile', profile, ...allow('api.test')], ['true'])
    expect(error?.message).toContain('the container of a session serves many runs')
  })
})
