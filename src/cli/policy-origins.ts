/** `--plan --why KEY`: who set a key of the policy, the one that counts first. Pure. */
import { SandboxError } from '../error.ts'
import { OPTIONS } from '../policy/options.ts'
import type { Policy } from '../policy/policy.ts'
import { didYouMean } from '../text/did-you-mean.ts'

/**
 * One paragraph per key: `KEY` itself and everything below it (`resources` shows all limits). A key may be called by its end
 * (`memory`) or by its flag (`--memory`, `cpu-time`).
 * @throws SandboxError USAGE for a key that no layer set, naming the nearest one that a layer did
 */
export function whyText(origins: Policy['origins'], word: string): string {
  const known = Object.keys(origins)
  const keys = [word, ...keysOfFlag(word), ...known.filter((key) => key.endsWith(`.${word}`))]
    .map((key) => known.filter((candidate) => candidate === key || candidate.startsWith(`${key}.`)).sort())
    .find(({ length }) => length > 0)
  if (keys !== undefined) return keys.map((found) => paragraph(found, origins[found] ?? [])).join('')
  throw new SandboxError('USAGE', `--why: nothing sets "${word}".${didYouMean(word, known)}`, {
    hint: `keys in use: ${[...new Set(known.map((key) => key.split('.')[0]))].sort().join(', ')}`,
  })
}

function keysOfFlag(word: string): readonly string[] {
  return OPTIONS.filter(({ name }) => name === word.replace(/^--/, '')).flatMap(({ key }) => key ?? [])
}

function paragraph(key: string, origins: Policy['origins'][string]): string {
  const rows = origins.toReversed().map(({ layer, source, key: there }) => {
    const as = there === key || there === '' ? '' : ` (${there})`
    return source === layer ? `  ${layer}\n` : `  ${layer.padEnd(8)}  ${source}${as}\n`
  })
  return `${key}\n${rows.join('')}`
}
