/** Where the records of live runs are: one directory a user, written by launch, read by `llm-do ps`. */
import { posix } from 'node:path'
import { ownDirectory } from '../host/own-directory.ts'

export { ownDirectory }

/**
 * Below the directory of our own (host/own-directory.ts), which has to stay out of reach of every command: a record says what is
 * removed after a run. launch makes the last two directories, follows no link to them, and refuses them when another user owns them.
 */
export function runsDirectory(env: Readonly<Record<string, string | undefined>>, uid: number): string {
  return posix.join(ownDirectory(env, uid), 'runs')
}
