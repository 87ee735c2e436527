/** A network restricted by name where the kernel has no nftables: listeners keep the same promises. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Plan } from '../../src/plan/plan.ts'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { kernelThat } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import type { Attack } from './attacks.ts'
import {
  ATTACKED_ZONE,
  allow,
  attacksThatPassBy,
  eachWay,
  python,
  readAttempts,
  resultOf,
  resultsOf,
  tryAll,
  type Way,
} from './ways.ts'
import { openWorld, startServer, WORLD, WORLD_V6, type World } from './world.ts'

/** NETLINK_NETFILTER, the protocol by which nftables is asked for. */
const NETFILTER = 12

/** Here nothing drops datagrams, one listener may take all addresses, and the transparent one is not there. */
const DIFFERENT: Readonly<Record<string, readonly string[]>> = {
  'udp,api.test,9': ['ECONNREFUSED'],
  'tcp,198.18.0.1,80': ['ECONNRESET'],
  'tcp,198.18.0.1,1': ['ECONNREFUSED'],
}

let world: World

const withoutNftables = async (): Promise<readonly string[]> => [
  ...world.through,
  ...(await kernelThat([{ refuses: ['socket'], with: 'EPROTONOSUPPORT', only: { argument: 2, value: NETFILTER } }])),
]

const run = async (words: readonly string[], command: readonly string[], way?: Way): Promise<Result> =>
  resultOf({ through: await withoutNftables(), words, command, ...(way && { way }) })

describeWith(['root', 'gcc'], 'a network restricted by name without nftables', () => {
  beforeAll(async () => {
    world = await openWorld(ATTACKED_ZONE)
  })
  afterAll(() => world?.close())

  test('the plan names listeners, and nftables where the kernel has them', async () => {
    for (const [through, by] of [
      [await withoutNftables(), 'listeners'],
      [world.through, 'nftables'],
    ] as const) {
      const { stdout } = await runCli(['--plan=json', ...allow('api.test'), '--', 'true'], { through })
      expect((JSON.parse(stdout.toString()) as Plan).network).toMatchObject({ mode: 'restricted', by })
    }
  })

  test('a rule that needs nftables is refused, with what is missing', async () => {
    const argv = ['--backend', 'namespace', ...allow('api.test:*'), '--', 'true']
    const { status, stderr } = await runCli(argv, { through: await withoutNftables() })
    expect(status).toBe(125)
    expect(stderr.toString()).toMatch(/net-restricted \(a rule is for every port, which needs nftables/)
    expect(stderr.toString()).toContain('hint: modprobe nf_tables')
  })

  eachWay('every attack meets an error', async (way) => {
    const mayMeet = ({ attempt, meets }: Attack) => DIFFERENT[attempt] ?? meets
    const by = (words: readonly string[], command: readonly string[]) => run(words, command, way)
    expect(await attacksThatPassBy(by, ['tcp,api.test,80', 'tcp,a.wild.test,80'], { mayMeet })).toEqual([])
  })

  test('a listener for all addresses leads from no address of the sandbox itself to the host', async () => {
    const own = ['tcp,127.0.0.1,53000', 'tcp,198.18.0.1,53000', 'tcp,198.18.70.1,53000']
    const { network, stdout } = await run(allow('*.wild.test:53000', '127.0.0.0/8:53000'), tryAll(own))
    expect(resultsOf(readAttempts(stdout))).toEqual(own.map(() => 'ECONNRESET'))
    expect(network).toEqual([])
  })

  test('a port of the loopback leads to this host where a rule names localhost, and from no other address', async () => {
    const serve = `for (const port of [18901, 18902]) require('net').createServer((c) => c.end('own')).listen(port, '::')
      console.log('up')`
    const server = await startServer([...world.through, process.execPath, '-e', serve])
    onTestFinished(() => void server.kill('SIGKILL'))
    const places = ['127.0.0.1,18901', '::1,18901', '127.0.0.2,18901', '198.18.0.1,18901', '127.0.0.1,18902']
    const words = allow('*.wild.test:18901', 'localhost:18901')
    const { network, stdout } = await run(words, tryAll(places.map((place) => `tcp,${place}`)))
    const met = ['ok', 'ok', 'ECONNRESET', 'ECONNRESET', 'ECONNREFUSED']
    expect(resultsOf(readAttempts(stdout))).toEqual(met)
    expect(network).toMatchObject([{ host: 'localhost', port: 18901, verdict: 'allowed' }])
  })

  test('names, wildcards and addresses are reached, and refusals that a listener sees are on record', async () => {
    const attempts = ['api.test,7', 'a.wild.test,80', `${WORLD},80`, `${WORLD_V6},80`, 'api.test,80']
    const words = allow('api.test:7', '*.wild.test', WORLD, `[${WORLD_V6}]`)
    const result = await run(words, tryAll(attempts.map((attempt) => `tcp,${attempt}`)))
    expect(resultsOf(readAttempts(result.stdout))).toEqual(['ok', 'ok', 'ok', 'ok', 'ECONNRESET'])
    expect(result.denials).toMatchObject([
      { operation: 'connect', target: 'api.test:80', fix: '--allow-host api.test' },
    ])
  })

  test('a command listens at the ports of listed names itself', async () => {
    const script = `
import socket
server = socket.create_server(('127.0.0.1', 8443))
print(socket.create_connection(('127.0.0.1', 8443)) is not None, socket.create_connection(('api.test', 7)).recv(6))`
    const { stdout } = await run(allow('api.test:8443', 'api.test:7'), python(script))
    expect(stdout).toBe("True b'hello\\n'\n")
  })
})
