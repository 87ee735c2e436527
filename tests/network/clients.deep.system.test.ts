/**
 * Programs that people run, in a sandbox whose network is restricted by name: each is served by the listed host and not by the other one,
 * which serves it on the host itself. LLM_DO_TEST_CLIENTS=FILE writes the table.
 */
import { writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { describeWith } from '../support/needs.ts'
import { CLIENTS, type Client } from './clients.ts'
import { openServices, type Services } from './services.ts'
import { allow, needsOf, resultOf, WAYS } from './ways.ts'
import { openWorld, WORLD, WORLD_V6, type World } from './world.ts'

const zoneOf = (names: string, ...addresses: readonly string[]) =>
  Object.fromEntries(names.split(' ').map((name) => [name, [addresses]]))
const ZONE = {
  ...zoneOf('api.test other.test a.wild.test wild.test xn--bcher-kva.test xn--zeitung-sd-ieb.test', WORLD),
  ...zoneOf('six.test six-other.test', WORLD_V6),
  ...zoneOf('both.test both-other.test', WORLD, WORLD_V6),
}

const hostsOf = ({ hosts }: Client) => hosts ?? { allowed: 'api.test', rule: 'api.test', denied: 'other.test' }
const ruleOf = (client: Client): string =>
  `${hostsOf(client).rule}${client.port === undefined ? '' : `:${client.port}`}`
const RULES = [...new Set(CLIENTS.map(ruleOf))]

/** A line of run-clients.py. */
interface Answer {
  readonly name: string
  readonly served: boolean
  readonly ms: number
  readonly printed: string
}
type Answers = ReadonlyMap<string, Answer>
type Side = 'allowed' | 'denied'

const readAnswers = (stdout: string): Answers =>
  new Map(
    stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Answer)
      .map((answer) => [answer.name, answer]),
  )

describeWith(['root', 'network-clients'], 'real clients of a network restricted by name', () => {
  const table: string[] = []
  let world: World
  let services: Services

  beforeAll(async () => {
    world = await openWorld(ZONE)
    services = await openServices(world)
  })
  afterAll(async () => {
    const file = process.env.LLM_DO_TEST_CLIENTS
    if (file !== undefined) writeFileSync(file, table.join('\n'))
    await services?.close()
    await world?.close()
  })

  async function commandFor(clients: readonly Client[], sides: readonly Side[]): Promise<readonly string[]> {
    const { directory } = services
    const file = join(directory, `clients-${sides.length}.json`)
    const rows = sides.flatMap((side) =>
      clients.map((client) => [`${side} ${client.name}`, client.script(hostsOf(client)[side]), client.served]),
    )
    await writeFile(file, JSON.stringify(rows))
    return ['/usr/bin/env', `D=${directory}`, '/usr/bin/python3', join(directory, 'run-clients.py'), file]
  }

  test('without a sandbox every client is served by the host that is denied inside', async () => {
    const there = CLIENTS.filter(({ notOnHost }) => !notOnHost)
    const [file = '', ...words] = [...world.through, ...(await commandFor(there, ['denied']))]
    const answers = readAnswers((await execa(file, words)).stdout)
    expect(there.filter(({ name }) => answers.get(`denied ${name}`)?.served !== true)).toEqual([])
  })

  for (const way of WAYS)
    describeWith(needsOf(way), `${way.engine} as ${way.as}`, () => {
      let result: Result
      let answers: Answers = new Map()
      beforeAll(async () => {
        const command = await commandFor(CLIENTS, ['allowed', 'denied'])
        const words = ['--profile', 'build', '--ro', services.directory, ...allow(...RULES)]
        result = await resultOf({ through: world.through, words, command, way })
        answers = readAnswers(result.stdout)
        table.push(`\n${way.engine} as ${way.as}\n`, ...[...answers.values()].map((one) => JSON.stringify(one)))
      })
      test.each(CLIENTS)('$name: served by the listed host, and by no other', ({ name }) => {
        const [allowed, denied] = [answers.get(`allowed ${name}`), answers.get(`denied ${name}`)]
        expect([allowed?.served, denied?.served], `${allowed?.printed}\n${denied?.printed}`).toEqual([true, false])
      })
      test('the result has every host that was reached and every one that was refused', () => {
        const { network = [], denials = [] } = result
        const reached = network.filter(({ verdict }) => verdict === 'allowed').map(({ rule }) => rule)
        expect([...new Set(reached)].sort()).toEqual(RULES.toSorted())
        const refused = denials.filter(({ operation }) => operation === 'resolve').map(({ fix }) => fix)
        const denied = ['other.test', 'wild.test', 'six-other.test', 'both-other.test', 'xn--zeitung-sd-ieb.test']
        expect(refused.sort()).toEqual(denied.map((host) => `--allow-host ${host}`).sort())
      })
    })
})
