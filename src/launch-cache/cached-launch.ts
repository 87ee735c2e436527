/** A plan as a launch file that native/client/main.c may use without Node: the plan's records after those that guard it. Pure. */
import { createHash } from 'node:crypto'
import { type LaunchRecord, writeLaunchFile } from '../backends/namespace/launch-file.ts'
import { ANY_GIVEN, KEY_CALLER } from '../contract.ts'
import { FOLLOW_CALLER } from '../plan/environment.ts'
import type { PlannedVariable } from '../plan/plan.ts'
import type { Policy } from '../policy/policy.ts'
import type { Verb } from '../text/launch-entries.ts'

export interface CachedInputs {
  readonly key: readonly string[]
  /** Path -> identity of what must be there. */
  readonly paths: Readonly<Record<string, string>>
  /** Path -> identity of a file that must not have changed. */
  readonly contents: Readonly<Record<string, string>>
  readonly variables: readonly LaunchRecord[]
  /** Only in a plan for any directory: the conditions that a directory must meet. */
  readonly conditions?: readonly LaunchRecord[]
  /** Variables of the caller that would have made it another plan. */
  readonly unset: readonly string[]
  /** Whether a warm sandbox may serve this plan. */
  readonly isPoolable: boolean
  /** Directory of the pool for a plan: the same for all ways to ask that lead to the same sandbox. */
  readonly pool: string
  /** Whether the run ends with the client's parent. */
  readonly endsWithParent: boolean
  /** By which the client judges a command, under a worker. */
  readonly judgement: readonly LaunchRecord[]
  /** The client's output and records for the end of the command. */
  readonly ending: readonly LaunchRecord[]
  readonly records: readonly LaunchRecord[]
  /** Makes the seal of all the rest; absent: the file stays in memory. */
  readonly seal?: ((bytes: Uint8Array) => string) | undefined
}

export function writeCachedFile(inputs: CachedInputs): { readonly bytes: Uint8Array; readonly check: string } {
  const records: readonly LaunchRecord[] = [
    ...inputs.key.map((word): LaunchRecord => ['key', word]),
    ...pairs('at', inputs.paths),
    ...pairs('content', inputs.contents),
    ...(inputs.conditions ?? []),
    ...inputs.variables,
    ...inputs.unset.map((name): LaunchRecord => ['unset', name]),
    ...(inputs.isPoolable ? [['pool', inputs.pool] satisfies LaunchRecord] : []),
    ...(inputs.endsWithParent ? [['parent'] satisfies LaunchRecord] : []),
    ...inputs.judgement,
    ...inputs.ending,
    ...inputs.records,
  ]
  const whole = writeLaunchFile(records)
  if (inputs.seal === undefined) return { bytes: whole, check: '' }
  // The seal covers all that follows its own record; the file without it tells what that is.
  const magic = writeLaunchFile([]).length - 'end\0'.length
  const check = inputs.seal(whole.subarray(magic))
  return { bytes: writeLaunchFile([['check', check], ...records]), check }
}

/** SHA-256 of what a warm sandbox is built from; `records` with slots, so that it is the same in every directory. */
export function poolDigest({ key, records }: Pick<CachedInputs, 'key' | 'records'>): string {
  const plan = writeLaunchFile([
    ...key.slice(0, KEY_CALLER.length).map((word): LaunchRecord => ['key', word]),
    ...records.filter(([verb]) => verb !== 'keep-errors'), // A sandbox serves both, and keeps none.
  ])
  return createHash('sha256').update(plan).digest('hex')
}

/** The name of a pool that serves every directory; for one directory: nameIn of plan/hash.ts. */
export const poolName = (digest: string): string => digest.slice(0, 16)

function pairs(verb: Verb, identities: Readonly<Record<string, string>>): readonly LaunchRecord[] {
  return Object.entries(identities).map(([path, identity]): LaunchRecord => [verb, path, identity])
}

/** Values that plan/environment.ts gives to a caller without them. */
const LOCALE_DEFAULTS: Readonly<Record<string, string>> = { LANG: 'C.UTF-8', TERM: 'dumb', TZ: '' }

/** `NAME=VALUE` -> by name; the last one of a name counts. */
export function variablesOf(texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(texts.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]))
}

/** No layer of the policy knows one of the names: the plan is the same for all others that none knows. */
export function isForAnyVariables(
  planned: readonly PlannedVariable[],
  given: Readonly<Record<string, string>>,
): boolean {
  return Object.keys(given).every((name) => planned.some((one) => one.name === name && one.from === 'given'))
}

/**
 * Rules by which the client makes the command's environment from the caller's; later ones win, as in plan/environment.ts.
 * @param given variables whose values the client finds among the caller's words
 */
export function variableRules(
  planned: readonly PlannedVariable[],
  { env }: Pick<Policy, 'env'>,
  given: Readonly<Record<string, string>> = {},
): readonly LaunchRecord[] {
  const builtIn = planned.filter(({ name, from }) => from === 'built-in' && !FOLLOW_CALLER.includes(name))
  const isForAny = isForAnyVariables(planned, given)
  return [
    ...FOLLOW_CALLER.map((name): LaunchRecord => ['locale', name, LOCALE_DEFAULTS[name] ?? '']),
    ...builtIn.map(({ name, value }): LaunchRecord => ['variable', name, value ?? '']),
    ...env.inherit.map((pattern): LaunchRecord => ['inherit', pattern]),
    ...Object.entries(env.set)
      .filter(([name]) => !isForAny || given[name] === undefined)
      .map(([name, value]): LaunchRecord => (given[name] === value ? ['given', name] : ['variable', name, value])),
    ...(isForAny ? [['given', ANY_GIVEN] as const] : []),
  ]
}
