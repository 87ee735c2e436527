/** `--plan --why KEY`: who set a key of the policy, the one that counts first. Pure. */
import { SandboxError } from '../error.ts'
import type { Policy } from '../policy/policy.ts'
import { didYouMean } from '../text/did-you-mean.ts'

/**
 * One paragraph per key: `KEY` itself and everything below it (`resources` shows all limits).
 * @throws SandboxError USAGE for a key that no layer set, naming the nearest one that a layer did
 */
export function whyText(origins: Policy['origins'], key: string): string {
  const known = Object.keys(origins)
  const keys = known.filter((candidate) => candidate === key || candidate.startsWith(`${key}.`)).sort()
  if (keys.length > 0) return keys.map((found) => paragraph(found, origins[found] ?? [])).join('')
  throw new SandboxError('USAGE', `--why: nothing sets "${key}".${didYouMean(key, known)}`, {
    hint: `keys in use: ${known
      .filter((candidate) => !candidate.includes('.'))
      .sort()
      .join(', ')}`,
  })
}

function paragraph(key: string, origins: Policy['origins'][string]): string {
  const rows = origins.toReversed().map(({ layer, source, key: there }) => {
    const as = there === key || there === '' ? '' : ` (${there})`
    return source === layer ? `  ${layer}\n` : `  ${layer.padEnd(8)}  ${source}${as}\n`
  })
  return `${key}\n${rows.join('')}`
}
