/** Where pools are: next to the records of runs, see native/client/pool-client.c. Pure. */
import { posix } from 'node:path'
import { runsDirectory } from '../backends/runs-directory.ts'

/** Holds one directory for each pool of the user. */
export function poolsDirectory(env: Readonly<Record<string, string | undefined>>, uid: number): string {
  return posix.join(posix.dirname(runsDirectory(env, uid)), 'pool')
}
