/** The helper and the plan judge alike: the table, and random rules. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import { networkRecords } from '../../src/backends/namespace/network.ts'
import { judge, parseRule, printRule, rulesOf } from '../../src/network/host-rule.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { driver } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'
import { JUDGEMENTS, patternOf, type Question, type Rules } from './judgements.ts'

/** Answers of the C part, a line each. */
async function judgedInC({ allow, deny }: Rules, questions: readonly Question[]): Promise<readonly string[]> {
  const file = join(await temporaryDirectory(), 'launch-file')
  await writeFile(file, writeLaunchFile(networkRecords({ mode: 'restricted', allow, deny })))
  const input = questions.map(({ host, port }) => `${host} ${port}\n`).join('')
  const { stdout } = await execa(driver('network/judge'), [file], { input })
  return stdout.split('\n')
}

function judgedHere(rules: Rules, { host, port }: Question): string {
  const { isAllowed, rule } = judge(rulesOf(rules), patternOf(host), port)
  return `${isAllowed ? 'allowed' : 'denied'} ${rule === undefined ? '-' : printRule(rule)}`
}

/** Marsaglia's xorshift: the same numbers in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

const HOSTS = [
  ...['a.test', 'b.a.test', 'c.b.a.test', 'xa.test', 'test', 'd.test'],
  ...['192.0.2.7', '192.0.3.7', '10.1.2.3', '2001:db8::1', '2001:db9::1', '::ffff:10.1.2.3'],
  ...['64:ff9b::10.1.2.3', '64:ff9b:1::192.0.2.7', '2002:c000:207::1', '::ffff:0:10.1.2.3', '::10.1.2.3', '::1'],
]
const PATTERNS = [
  ...['a.test', '*.a.test', 'b.a.test', '*.b.a.test', '*.test', 'test', 'd.test'],
  ...['192.0.2.7', '192.0.2.0/24', '192.0.0.0/14', '10.0.0.0/8', '[2001:db8::/32]', '[2001:db8::1]'],
  ...['[64:ff9b::/32]', '[2002::/16]', '[::/80]'],
]
const PORTS = ['', '', ':*', ':80', ':443', ':22', ':8080']
const QUESTIONS = HOSTS.flatMap((host) => [22, 80, 443, 8080, 65_535].map((port) => ({ host, port })))

function randomRules(seed: number): Rules {
  const next = numbers(seed)
  const rule = (): string => `${PATTERNS[next(PATTERNS.length)]}${PORTS[next(PORTS.length)]}`
  const list = (most: number): readonly string[] => Array.from({ length: next(most) }, rule)
  return { allow: list(7), deny: list(4) }
}

describeWith(['gcc'], 'rules of a network, in C', () => {
  test('judge as the table says', async () => {
    const judged = await Promise.all(JUDGEMENTS.map((row) => judgedInC(row, [row])))
    expect(JUDGEMENTS.map((row, at) => ({ ...row, judged: judged[at] }))).toEqual(
      JUDGEMENTS.map((row) => ({ ...row, judged: [`${row.allowed ? 'allowed' : 'denied'} ${row.by ?? '-'}`] })),
    )
  })

  test('judge as TypeScript does, whatever the rules', async () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const rules = randomRules(seed * 7919)
      const here = QUESTIONS.map((question) => judgedHere(rules, question))
      expect({ rules, judged: await judgedInC(rules, QUESTIONS) }).toEqual({ rules, judged: here })
    }
  })

  test('know every pattern of the random rules', () => {
    expect(PATTERNS.filter((pattern) => parseRule(pattern) === undefined)).toEqual([])
  })
})
