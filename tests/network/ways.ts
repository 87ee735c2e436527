/** What the tests of a restricted network share: who runs it and by which engine, and names of the world that lead to forbidden places. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Need } from '../support/needs.ts'
import { ATTACKS, type Attack, NOT_PUBLIC } from './attacks.ts'
import { HOST, HOST_ANY, HOST_SECOND, HOST_V6, WORLD, type Zone } from './world.ts'

/** Who runs the sandbox, and with which engine. */
export const WAYS = [
  { engine: 'unshare', as: 'root' },
  { engine: 'bwrap', as: 'root' },
  { engine: 'unshare', as: 'plain' },
  { engine: 'bwrap', as: 'plain' },
] as const
export type Way = (typeof WAYS)[number]

export const needsOf = ({ engine, as }: Way): readonly Need[] => [
  engine,
  ...(as === 'plain' ? (['plain-user'] as const) : []),
]

/** Every name of ATTACKS: one that is not there would be refused by nobody. */
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

export interface Attempt {
  readonly result: string
  readonly ms: number
}
export type Met = ReadonlyMap<string, Attempt>

/** What try.py prints. */
export const readAttempts = (stdout: string): Met =>
  new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([attempt = '', result = '', ms = '']) => [attempt, { result, ms: Number(ms) }]),
  )

export const resultsOf = (met: Met): readonly string[] => [...met.values()].map(({ result }) => result)

/** Milliseconds: more than a busy machine takes for a refusal, and less than any wait for an answer that never comes. */
export const AT_ONCE_MS = 2000

const withMet = (met: Met) => (attack: Attack) => ({ ...attack, met: met.get(attack.attempt) })

/** Attacks that met something else than they must, or late. */
export const attacksThatPass = (met: Met, expected = ({ meets }: Attack): readonly string[] => meets) =>
  ATTACKS.filter((attack) => {
    const { result, ms } = met.get(attack.attempt) ?? { result: 'not tried', ms: 0 }
    return !expected(attack).includes(result) || ms > AT_ONCE_MS
  }).map(withMet(met))

/** Attacks that the host itself cannot do: those would prove nothing. */
export const attacksThatAreWeak = (met: Met) =>
  ATTACKS.filter(({ attempt, onHost }) => onHost !== undefined && met.get(attempt)?.result !== onHost).map(withMet(met))
