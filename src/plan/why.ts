/** Answers `--plan --why KEY`: which file or flag set a key, every layer that spoke. Pure. */
import { SandboxError } from '../error.ts'
import { didYouMean } from '../policy/nearest.ts'
import type { Origin, Policy } from '../policy/policy.ts'

/**
 * One line per layer that set the key or something below it, the one that counts last and marked.
 * @throws SandboxError USAGE for a key that nothing knows
 */
export function explain(policy: Policy, key: string): readonly string[] {
  const exact = policy.origins[key]
  if (exact !== undefined) return linesFor(key, exact)
  const below = Object.keys(policy.origins)
    .filter((known) => known.startsWith(`${key}.`))
    .sort()
  if (below.length === 0) throw unknownKey(policy, key)
  return below.flatMap((known) => linesFor(known, policy.origins[known] ?? []))
}

function linesFor(key: string, origins: readonly Origin[]): readonly string[] {
  return origins.map(
    ({ layer, source }, index) => `${key}: ${layer} ${source}${index === origins.length - 1 ? '  <- counts' : ''}`,
  )
}

function unknownKey(policy: Policy, key: string): SandboxError {
  const known = Object.keys(policy.origins).sort()
  return new SandboxError('USAGE', `--why: expected a key of the policy, got "${key}".${didYouMean(key, known)}`, {
    hint: `keys: ${known.join(', ')}`,
  })
}
