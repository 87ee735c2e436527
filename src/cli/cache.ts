/**
 * `llm-do cache clear`: forgets the plans that were left for the front-end.
 *
 * Edge: the cache directory.
 */
import { cacheDirectory } from '../host/cache.ts'
import { clearLaunches, launchCacheDirectory } from '../launch-cache/store.ts'
import type { Call } from './call.ts'
import { say } from './output.ts'
import { understand, usageError } from './verb.ts'

const USAGE = 'clear'

export async function cache({ text, env }: Call): Promise<number> {
  const { operands } = understand(text, { verb: 'cache', usage: USAGE, operands: [1, 1] })
  if (operands[0] !== 'clear') throw usageError(`cache: expected clear, got "${operands[0]}".`, `llm-do cache ${USAGE}`)
  const directory = cacheDirectory(env)
  const count = directory === undefined ? 0 : clearLaunches(launchCacheDirectory(directory))
  await say(`${count} ${count === 1 ? 'plan' : 'plans'} forgotten\n`)
  return 0
}
