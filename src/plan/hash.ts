/** The name of a plan: a digest of all it says, the same for the same decisions. Pure. */
import { createHash } from 'node:crypto'
import type { Plan } from './plan.ts'
import { byText } from './well-known-paths.ts'

/**
 * A plan with its name, which is computed at its first use: it takes node's cryptography, and a command need not wait for that
 * to be loaded.
 */
export function named(plan: Omit<Plan, 'hash'>): Plan {
  const made: { hash?: string } = {}
  return {
    ...plan,
    get hash() {
      made.hash ??= planHash(plan)
      return made.hash
    },
  }
}

/** 16 hexadecimal digits of SHA-256 over the canonical JSON of everything but the hash itself, and what is given as the words of the command are. */
function planHash(plan: Omit<Plan, 'hash'>): string {
  const decided = { ...plan, env: plan.env.filter(({ from }) => from !== 'given') }
  return createHash('sha256').update(canonicalJson(decided)).digest('hex').slice(0, 16)
}

/** JSON without whitespace and with sorted keys: one text for one value. Keys without a value are left out, as JSON does. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return `{${entries
    .sort(([a], [b]) => byText(a, b))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`)
    .join(',')}}`
}
