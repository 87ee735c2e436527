/** A network restricted by name where the kernel has no nftables: the same promises, held by listeners. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Plan } from '../../src/plan/plan.ts'
import type { Result } from '../../src/report/result.ts'
import { startPool } from '../pool/pool.ts'
import { runCli } from '../support/cli.ts'
import { kernelThat } from '../support/kernel.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { ATTACKED, ATTACKS } from './attacks.ts'
import {
  ATTACKED_ZONE,
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

/** NETLINK_NETFILTER, the protocol by which nftables is asked for. */
const NETFILTER = 12

/** What differs: nothing drops datagrams, one listener may take all addresses, and the transparent one is not there. */
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

const run = async (words: readonly string[], command: readonly string[], way: Way = WAYS[0]): Promise<Result> => {
  const argv = ['--json', '--engine', way.engine, ...words, '--', ...command]
  const { stdout } = await runCli(argv, { through: await withoutNftables(), as: way.as })
  return JSON.parse(stdout.toString()) as Result
}

const networkOf = async (through: readonly string[], words: readonly string[]): Promise<Plan['network']> => {
  const { stdout } = await runCli(['--plan=json', ...words, '--', 'true'], { through })
  return (JSON.parse(stdout.toString()) as Plan).network
}

describeWith('root', 'a network restricted by name without nftables', () => {
  beforeAll(async () => {
    world = await openWorld(ATTACKED_ZONE)
  })
  afterAll(() => world?.close())

  test('is named in the plan, as nftables is where it is', async () => {
    const words = ['--allow-host', 'api.test']
    expect(await networkOf(await withoutNftables(), words)).toMatchObject({ mode: 'restricted', by: 'listeners' })
    expect(await networkOf(world.through, words)).toMatchObject({ mode: 'restricted', by: 'nftables' })
  })

  test('is refused for a rule that only nftables holds, with what is missing', async () => {
    const { status, stderr } = await runCli(['--backend', 'namespace', '--allow-host', 'api.test:*', '--', 'true'], {
      through: await withoutNftables(),
    })
    expect(status).toBe(125)
    expect(stderr.toString()).toMatch(/net-restricted \(a rule is for every port, which needs nftables/)
    expect(stderr.toString()).toContain('hint: modprobe nf_tables')
  })

  describe.each(WAYS)('$engine as $as', (way) => {
    testWith(needsOf(way), 'every attack meets an error at once', async () => {
      const words = [...ATTACKED.flatMap((host) => ['--allow-host', host]), '--deny-host', 'b.wild.test']
      const allowed = ['tcp,api.test,80', 'tcp,a.wild.test,80']
      const { stdout } = await run(words, tryAll([...allowed, ...ATTACKS.map(({ attempt }) => attempt)]), way)
      const met = readAttempts(stdout)
      expect(allowed.map((attempt) => met.get(attempt)?.result)).toEqual(['ok', 'ok'])
      expect(attacksThatPass(met, ({ attempt, meets }) => DIFFERENT[attempt] ?? meets)).toEqual([])
    })
  })

  test('a listener for all addresses leads from no address of the sandbox itself to the host', async () => {
    const words = ['--allow-host', '*.wild.test:53000', '--allow-host', '127.0.0.0/8:53000']
    const own = ['tcp,127.0.0.1,53000', 'tcp,198.18.0.1,53000', 'tcp,198.18.70.1,53000']
    const { network, ...tried } = await run(words, tryAll(own))
    expect(resultsOf(readAttempts(tried.stdout ?? ''))).toEqual(own.map(() => 'ECONNRESET'))
    expect(network).toEqual([])
  })

  test('names, wildcards and addresses are reached, and what was refused is on record where somebody sees it', async () => {
    const words = ['api.test:7', '*.wild.test', WORLD, `[${WORLD_V6}]`].flatMap((host) => ['--allow-host', host])
    const attempts = [
      'tcp,api.test,7',
      'tcp,a.wild.test,80',
      `tcp,${WORLD},80`,
      `tcp,${WORLD_V6},80`,
      'tcp,api.test,80',
    ]
    const result = await run(words, tryAll(attempts))
    expect(resultsOf(readAttempts(result.stdout))).toEqual(['ok', 'ok', 'ok', 'ok', 'ECONNRESET'])
    expect(result.denials).toMatchObject([
      { operation: 'connect', target: 'api.test:80', fix: '--allow-host api.test' },
    ])
  })

  test('a warm sandbox has the same network', async () => {
    const pool = await startPool({ options: ['--allow-host', 'api.test'], through: await withoutNftables() })
    const through = await withoutNftables()
    const { stdout, isWarm } = await pool.runWarm(tryAll(['tcp,api.test,80', 'tcp,other.test,80']), { through })
    expect({ isWarm, words: stdout.toString().replaceAll(/ \d+$/gm, '') }).toEqual({
      isWarm: true,
      words: 'tcp,api.test,80 ok\ntcp,other.test,80 EAI_NONAME\n',
    })
  })

  test('a command listens at the ports of listed names itself', async () => {
    const script = `
import socket
server = socket.create_server(('127.0.0.1', 8443))
print(socket.create_connection(('127.0.0.1', 8443)) is not None, socket.create_connection(('api.test', 7)).recv(6))`
    const { stdout } = await run(
      ['--allow-host', 'api.test:8443', '--allow-host', 'api.test:7'],
      [PYTHON, '-c', script],
    )
    expect(stdout).toBe("True b'hello\\n'\n")
  })
})
