/** Shared by the tests of a restricted network: users and engines, runs in a world, and names of the world that lead to forbidden places. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { type CliOptions, runForResult } from '../support/cli.ts'
import { type Need, testWith } from '../support/needs.ts'
import { ATTACKED, ATTACKS, type Attack, NOT_PUBLIC } from './attacks.ts'
import { HOST, HOST_ANY, HOST_SECOND, HOST_V6, WORLD, type Zone } from './world.ts'

/** Root starts both: a world needs it. */
export const WAYS = [
  { engine: 'unshare', as: 'root' },
  { engine: 'unshare', as: 'plain' },
] as const
/** For the deep tests. */
export const OTHER_WAYS = [
  { engine: 'bwrap', as: 'root' },
  { engine: 'bwrap', as: 'plain' },
] as const
export type Way = (typeof WAYS)[number] | (typeof OTHER_WAYS)[number]

export const needsOf = ({ engine, as }: Way): readonly Need[] => [
  engine,
  ...(as === 'plain' ? (['plain-user'] as const) : []),
]

/** Options of `exec` and a command; `through` leads to the host of a world. */
export interface Run extends Omit<CliOptions, 'as'> {
  readonly words?: readonly string[]
  readonly command: readonly string[]
  readonly way?: Way
}

export const resultOf = ({ words = [], command, way = WAYS[0], ...call }: Run): Promise<Result> =>
  runForResult(['--engine', way.engine, ...words, '--', ...command], { ...call, as: way.as })

/** A test for each user. */
export function eachWay(title: string, work: (way: Way) => Promise<void>, ways: readonly Way[] = WAYS): void {
  for (const way of ways) testWith(needsOf(way), `${way.engine} as ${way.as}: ${title}`, () => work(way))
}

/** Words that allow hosts. */
export const allow = (...hosts: readonly string[]): readonly string[] => hosts.flatMap((host) => ['--allow-host', host])
export const shell = (script: string): readonly string[] => ['sh', '-c', script]
export const python = (script: string, ...words: readonly string[]): readonly string[] => [
  PYTHON,
  '-c',
  script,
  ...words,
]

/** Every name of ATTACKS: a missing one would prove nothing. */
export const ATTACKED_ZONE: Zone = {
  ...Object.fromEntries(
    ['api.test', 'secret.api.test', 'other.test', 'a.wild.test', 'b.wild.test', 'wild.test'].map((name) => [
      name,
      [[WORLD]],
    ]),
  ),
  'loop.test': [['127.0.0.1']],
  'loop6.test': [['::1']],
  'mapped.test': [['::ffff:127.0.0.1']],
  'nat64.test': [['64:ff9b::7f00:1']],
  // 203.0.114.1 is HOST, 203.0.114.10 is WORLD.
  'self.nat64.test': [['64:ff9b::cb00:7201']],
  'self.sixtofour.test': [['2002:cb00:7201::1']],
  'world.nat64.test': [['64:ff9b::cb00:720a']],
  'world.sixtofour.test': [['2002:cb00:720a::1']],
  'zero.test': [['0.0.0.0']],
  'self.test': [[HOST]],
  'second.test': [[HOST_SECOND]],
  'any.test': [[HOST_ANY]],
  'self6.test': [[HOST_V6]],
  'private.test': [['10.1.2.3']],
  'metadata.test': [['169.254.169.254']],
  'mixed.test': [['127.0.0.1', WORLD]],
  ...Object.fromEntries(Object.entries(NOT_PUBLIC).map(([name, { address }]) => [name, [[address]]])),
}

export const PYTHON = '/usr/bin/python3'
const TRY = readFileSync(join(import.meta.dirname, 'programs/try.py'), 'utf8')
/** @param program python has another path in a container */
export const tryAll = (attempts: readonly string[], program = PYTHON): readonly string[] => [
  program,
  '-c',
  TRY,
  ...attempts,
]

/** By attempt: `ok` or an error. */
export type Met = ReadonlyMap<string, { readonly result: string }>

/** Output of try.py; attack.py prints the same. */
export const readAttempts = (stdout: string): Met =>
  new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([attempt = '', result = '']) => [attempt, { result }]),
  )

export const resultsOf = (met: Met): readonly string[] => [...met.values()].map(({ result }) => result)

/** Attacks of a list that met something else than they may. */
export const attacksThatPass = (
  met: Met,
  mayMeet = ({ meets }: Attack): readonly string[] => meets,
  attacks: readonly Attack[] = ATTACKS,
) =>
  attacks
    .map((attack) => ({ ...attack, met: met.get(attack.attempt)?.result ?? 'not tried' }))
    .filter((attack) => !mayMeet(attack).includes(attack.met))

/** Attacks on the list that pass. @param allowed attempts that must succeed: without them nothing would be shown */
export async function attacksThatPassBy(
  run: (words: readonly string[], command: readonly string[]) => Promise<Result>,
  allowed: readonly string[],
  { program = PYTHON, mayMeet }: { program?: string; mayMeet?: (attack: Attack) => readonly string[] } = {},
) {
  const words = [...allow(...ATTACKED), '--deny-host', 'b.wild.test']
  const command = tryAll([...allowed, ...ATTACKS.map(({ attempt }) => attempt)], program)
  const met = readAttempts((await run(words, command)).stdout)
  expect(allowed.map((attempt) => met.get(attempt)?.result)).toEqual(allowed.map(() => 'ok'))
  return attacksThatPass(met, mayMeet)
}

/** Attacks that the host itself cannot do: those would prove nothing. A kernel may lack a family of sockets: the host then says so. */
export const attacksThatAreWeak = (met: Met, attacks: readonly Attack[] = ATTACKS) =>
  attacksThatPass(
    met,
    ({ onHost = '' }) => [onHost, 'EAFNOSUPPORT', 'EPROTONOSUPPORT'],
    attacks.filter(({ onHost }) => onHost !== undefined),
  )
