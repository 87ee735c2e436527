/**
 * Programs that people run, in a sandbox whose network is restricted by name: each is served by the listed host and not by the other one,
 * which serves it on the host itself. LLM_DO_TEST_CLIENTS=FILE writes the table.
 */
import { writeFileSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { startPool } from '../pool/pool.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, type Need, testWith } from '../support/needs.ts'
import { CLIENTS, type Client } from './clients.ts'
import { openServices, type Services } from './services.ts'
import { openWorld, WORLD, WORLD_V6, type World } from './world.ts'

const ZONE = {
  'api.test': [[WORLD]],
  'other.test': [[WORLD]],
  'a.wild.test': [[WORLD]],
  'wild.test': [[WORLD]],
  'six.test': [[WORLD_V6]],
  'six-other.test': [[WORLD_V6]],
  'both.test': [[WORLD, WORLD_V6]],
  'both-other.test': [[WORLD, WORLD_V6]],
  'xn--bcher-kva.test': [[WORLD]],
  'xn--zeitung-sd-ieb.test': [[WORLD]],
}

const hostsOf = ({ hosts }: Client) => hosts ?? { allowed: 'api.test', rule: 'api.test', denied: 'other.test' }
const ruleOf = (client: Client): string =>
  `${hostsOf(client).rule}${client.port === undefined ? '' : `:${client.port}`}`

interface Answer {
  readonly served: boolean
  readonly ms: number
  readonly printed: string
}

type Side = 'allowed' | 'denied'
const SIDES: readonly Side[] = ['allowed', 'denied']

/** One run of all clients, each against both hosts. */
interface Ran {
  readonly result?: Result
  readonly answers: ReadonlyMap<string, Answer>
}

const NOTHING: Answer = { served: false, ms: 0, printed: 'it did not run' }
const answerOf = ({ answers }: Ran, { name }: Client, side: Side): Answer => answers.get(`${side} ${name}`) ?? NOTHING

const state: { world?: World; services?: Services } = {}
const world = (): World => state.world as World
const directory = (): string => state.services?.directory ?? ''

const SHORT = CLIENTS.filter(({ short }) => short)
const rulesOf = (clients: readonly Client[]): readonly string[] => [...new Set(clients.map(ruleOf))]
const wordsFor = (clients: readonly Client[]): readonly string[] => [
  ...['--profile', 'build', '--ro', directory()],
  ...rulesOf(clients).flatMap((rule) => ['--allow-host', rule]),
]

async function commandFor(clients: readonly Client[], sides = SIDES): Promise<readonly string[]> {
  const file = join(directory(), `clients-${clients.length}-${sides.length}.json`)
  const rows = sides.flatMap((side) =>
    clients.map((client) => [`${side} ${client.name}`, client.script(hostsOf(client)[side]), client.served]),
  )
  await writeFile(file, JSON.stringify(rows))
  return ['/usr/bin/env', `D=${directory()}`, '/usr/bin/python3', join(directory(), 'run-clients.py'), file]
}

const readAnswers = (stdout: string): ReadonlyMap<string, Answer> =>
  new Map(
    stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Answer & { readonly name: string })
      .map((answer) => [answer.name, answer]),
  )

type Way = { readonly engine: 'unshare' | 'bwrap'; readonly as: 'root' | 'plain' }

async function run(clients: readonly Client[], { engine, as }: Way): Promise<Ran> {
  const argv = ['--json', '--engine', engine, ...wordsFor(clients), '--', ...(await commandFor(clients))]
  const { stdout, stderr } = await runCli(argv, { through: world().through, as })
  if (stdout.length === 0) throw new Error(stderr.toString())
  const result = JSON.parse(stdout.toString()) as Result
  if (result.exitCode !== 0) throw new Error(`${result.message}\n${result.stderr}`)
  return { result, answers: readAnswers(result.stdout) }
}

/** What is wrong, in words; nothing for a client that is served as it must be. */
function wrongWith(ran: Ran, client: Client): readonly string[] {
  const [allowed, denied] = [answerOf(ran, client, 'allowed'), answerOf(ran, client, 'denied')]
  const { allowed: listed, denied: other } = hostsOf(client)
  return [
    ...(allowed.served ? [] : [`${client.name} was not served by ${listed}: ${allowed.printed}`]),
    ...(denied.served ? [`${client.name} was served by ${other}`] : []),
    ...(denied === NOTHING ? [`${client.name} did not ask ${other}`] : []),
  ]
}

const WAYS: readonly (Way & { readonly needs: readonly Need[] })[] = [
  { engine: 'unshare', as: 'root', needs: ['unshare'] },
  { engine: 'unshare', as: 'plain', needs: ['unshare', 'plain-user'] },
]
const OTHER_WAYS: typeof WAYS = [
  { engine: 'bwrap', as: 'root', needs: ['bwrap'] },
  { engine: 'bwrap', as: 'plain', needs: ['bwrap', 'plain-user'] },
]

describeWith(['root', 'network-clients'], 'real clients of a network restricted by name', () => {
  const table: (readonly [way: string, ran: Ran])[] = []

  beforeAll(async () => {
    state.world = await openWorld(ZONE)
    state.services = await openServices(state.world)
  })
  afterAll(async () => {
    const file = process.env.LLM_DO_TEST_CLIENTS
    if (file !== undefined) writeFileSync(file, tableOf(table))
    await state.services?.close()
    await state.world?.close()
  })

  describe('without a sandbox', () => {
    const there = CLIENTS.filter(({ notOnHost }) => !notOnHost)
    test('every client is served by the host that is denied inside', async () => {
      const [file = '', ...words] = [...world().through, ...(await commandFor(there, ['denied']))]
      const { stdout } = await execa(file, words)
      const ran = { answers: readAnswers(stdout) }
      expect(there.map((client) => answerOf(ran, client, 'denied')).filter(({ served }) => !served)).toEqual([])
    })
  })

  for (const way of WAYS) {
    describeWith(way.needs, `${way.engine} as ${way.as}`, () => {
      const found: { ran: Ran } = { ran: { answers: new Map() } }
      beforeAll(async () => {
        found.ran = await run(CLIENTS, way)
        table.push([`${way.engine} as ${way.as}`, found.ran])
      })
      test.each(CLIENTS.map((client) => ({ client, name: client.name, rule: ruleOf(client) })))(
        '$name: --allow-host $rule, and no other',
        ({ client }) => {
          expect(wrongWith(found.ran, client)).toEqual([])
        },
      )
      test('the result has every host that was reached and every one that was refused', () => {
        const { network = [], denials = [] } = found.ran.result ?? {}
        const reached = network.filter(({ verdict }) => verdict === 'allowed').map(({ rule }) => rule)
        expect([...new Set(reached)].sort()).toEqual([...rulesOf(CLIENTS)].sort())
        const refused = denials.filter(({ operation }) => operation === 'resolve').map(({ fix }) => fix)
        const denied = ['other.test', 'wild.test', 'six-other.test', 'both-other.test', 'xn--zeitung-sd-ieb.test']
        expect(refused.sort()).toEqual(denied.map((host) => `--allow-host ${host}`).sort())
      })
    })
  }

  describe('some of them', () => {
    for (const { engine, as, needs } of OTHER_WAYS)
      testWith(needs, `with the engine ${engine} as ${as}, cold and cached`, async () => {
        const home = await temporaryDirectory({ owner: as })
        const call = { through: world().through, as, cwd: home, env: { HOME: home, XDG_RUNTIME_DIR: home } }
        const argv = ['--engine', engine, ...wordsFor(SHORT), '--', ...(await commandFor(SHORT))]
        const served = async (): Promise<readonly string[]> => {
          const ran = { answers: readAnswers((await runCli(argv, call)).stdout.toString()) }
          return SHORT.flatMap((client) => wrongWith(ran, client))
        }
        const plans = () => readdir(join(home, '.cache/llm-do/launch'))
        expect(await served()).toEqual([])
        const before = await plans()
        expect(await served()).toEqual([])
        expect({ before, after: await plans() }).toEqual({ before: [expect.any(String)], after: before })
      })

    test('in a warm sandbox', async () => {
      const { through } = world()
      const pool = await startPool({ size: 1, through, options: wordsFor(SHORT) })
      const { stdout, isWarm } = await pool.runWarm(await commandFor(SHORT), { through })
      const ran = { answers: readAnswers(stdout.toString()) }
      expect({ isWarm, wrong: SHORT.flatMap((client) => wrongWith(ran, client)) }).toEqual({ isWarm: true, wrong: [] })
    })
  })
})

/** Markdown: a row for each client, two columns for each way. */
function tableOf(ways: readonly (readonly [way: string, ran: Ran])[]): string {
  const seconds = ({ ms }: Answer): string => `${(ms / 1000).toFixed(2)} s`
  const cell = (ran: Ran, client: Client): string =>
    SIDES.map((side) => [answerOf(ran, client, side), side] as const)
      .map(
        ([answer, side]) =>
          `${answer.served === (side === 'allowed') ? '' : 'WRONG: '}${answer.served ? 'served' : 'refused'} ${seconds(answer)}`,
      )
      .join(' | ')
  const words = (printed: string): string => (printed.split('\n').at(-1) ?? '').replaceAll('|', '/').slice(-90)
  const rows = CLIENTS.map((client) => {
    const said = ways[0] === undefined ? '' : words(answerOf(ways[0][1], client, 'denied').printed)
    return `| ${client.name} | ${ruleOf(client)} | ${ways.map(([, ran]) => cell(ran, client)).join(' | ')} | ${said} |`
  })
  const titles = ways.map(([way]) => `${way}, listed | not listed`)
  return [
    `| client | --allow-host | ${titles.join(' | ')} | words of the refusal |`,
    `|---|---|${ways.map(() => '---|---|').join('')}---|`,
    ...rows,
    '',
  ].join('\n')
}
