/** Who set a key: the answer to `--plan --why KEY`. Pure. */
import { SandboxError } from '../error.ts'
import { KEY_ROWS } from './keys.ts'
import { didYouMean } from './nearest.ts'
import type { Origin, Policy } from './policy.ts'

export interface KeyOrigins {
  readonly key: string
  /** Every layer that spoke, lowest first; the last one decided unless the key is a list. Empty: nobody, the key is not set. */
  readonly origins: readonly Origin[]
}

/**
 * The origins of a key, or of every key below it (`resources`, `zones`).
 * @throws SandboxError USAGE when there is no such key, with the nearest one
 */
export function whoSet(policy: Policy, key: string): readonly KeyOrigins[] {
  const spoken = Object.keys(policy.origins).filter((known) => known === key || known.startsWith(`${key}.`))
  if (spoken.length > 0) return spoken.map((known) => ({ key: known, origins: policy.origins[known] ?? [] }))
  if (KEY_ROWS.some((row) => row.key === key)) return [{ key, origins: [] }]
  const known = [...KEY_ROWS.map((row) => row.key).filter((row) => !row.includes('[')), ...Object.keys(policy.origins)]
  throw new SandboxError('USAGE', `--why: expected a key of the policy, got "${key}".${didYouMean(key, known)}`, {
    hint: 'docs/profiles.md lists every key',
  })
}
