/** The needs of a policy, as words that a backend's offer is compared with. Pure. */
import { ALL_KEYS } from './keys/index.ts'
import type { Policy } from './policy.ts'
import { valueAt } from './value-at.ts'
import { NEEDS, type Need } from './values.ts'

/** Limits: without `require` any rung may hold them, and with `bestEffort` none has to. */
export const LIMIT_NEEDS: readonly Need[] = ['memory-limit', 'cpus-limit', 'pids-limit', 'io-limit']

/** Rates of reading and writing disks, in the order of the manual. */
export const IO_RATES = ['readBps', 'writeBps', 'readIops', 'writeIops'] as const

/**
 * Every need of a run, in the order of NEEDS.
 * A limit that the policy lifts (`none`) makes no need; with `bestEffort` only a required limit does.
 */
export function needsOf(policy: Policy, command: readonly string[]): readonly Need[] {
  const ofKeys = keyNeeds(policy)
  const limits = policy.bestEffort ? [] : LIMIT_NEEDS.filter((need) => ofKeys.has(need))
  const others = [...ofKeys].filter((need) => !LIMIT_NEEDS.includes(need))
  const all = new Set([...wallsOf(policy), ...limits, ...others, ...wasiNeed(policy, command), ...policy.require])
  return NEEDS.filter((need) => all.has(need))
}

function keyNeeds(policy: Policy): ReadonlySet<Need> {
  const needs = ALL_KEYS.flatMap(({ path, key }) => key.need?.(valueAt(policy, path) as never) ?? [])
  return new Set(needs)
}

function wallsOf(policy: Policy): readonly Need[] {
  return [
    'empty-root',
    ...(policy.zones.length > 0 || policy.workspace !== 'none' ? (['zones'] as const) : []),
    ...(hasLayers(policy) ? (['copy-on-write'] as const) : []),
    'pid-namespace',
    'ipc-namespace',
    'user-namespace',
  ]
}

const hasLayers = ({ zones, workspace }: Policy): boolean =>
  workspace === 'cow' || zones.some(({ mode }) => mode === 'cow')

const wasiNeed = ({ backend }: Policy, command: readonly string[]): readonly Need[] =>
  backend === 'wasm' || command[0]?.endsWith('.wasm') === true ? ['wasi-command'] : []
