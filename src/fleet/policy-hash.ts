/**
 * A name for the policy of an operator, the same on every machine where the same is wanted. The name of a plan (`planHash`) is another
 * thing: a plan holds paths and inodes of one machine and one directory. Pure.
 */
import { createHash } from 'node:crypto'
import { canonicalJson, type Policy } from '../core.ts'

/**
 * 16 hexadecimal digits of SHA-256. Not in it: what the profile is called, who set what, files of the machine that are protected in any
 * case, and the values of variables, which may be secrets and would be guessed from a hash.
 * @param directory of the task that the policy was resolved for; paths in it count as relative
 */
export function policyHash(policy: Policy, directory: string): string {
  const { profile: _, origins: __, protectFiles: ___, env, ...wanted } = policy
  const decided = { ...wanted, env: { ...env, set: Object.keys(env.set).sort() } }
  return createHash('sha256')
    .update(canonicalJson(withoutPlace(decided, directory)))
    .digest('hex')
    .slice(0, 16)
}

function withoutPlace(value: unknown, directory: string): unknown {
  if (typeof value === 'string')
    return value === directory || value.startsWith(`${directory}/`) ? `.${value.slice(directory.length)}` : value
  if (Array.isArray(value)) return value.map((item) => withoutPlace(item, directory))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutPlace(item, directory)]))
}
