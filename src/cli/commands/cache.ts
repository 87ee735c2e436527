/**
 * `llm-do cache clear`: forgets the plans that were left for the client.
 *
 * Edge: the cache directory.
 */
import { cacheDirectory } from '../../host/boot-cache.ts'
import { clearLaunches, launchCacheDirectory } from '../../launch-cache/store.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

export const cache = subcommand('cache', async (_, { env }) => {
  const directory = cacheDirectory(env)
  const count = directory === undefined ? 0 : clearLaunches(launchCacheDirectory(directory))
  await writeStdout(`${count} ${count === 1 ? 'plan' : 'plans'} forgotten\n`)
  return 0
})
