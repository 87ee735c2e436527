/** Where the records of live runs are: one directory a user, written by launch, read by `llm-do ps`. Pure. */
import { posix } from 'node:path'

/**
 * root's own is below /run; a user's is in the runtime directory of the session, which is emptied with it, or below /tmp.
 * launch makes the last two directories and refuses them when somebody else owns them.
 */
export function runsDirectory(env: Readonly<Record<string, string | undefined>>, uid: number): string {
  if (uid === 0) return '/run/llm-do/runs'
  const { XDG_RUNTIME_DIR: runtime = '' } = env
  return posix.isAbsolute(runtime) ? posix.join(runtime, 'llm-do', 'runs') : `/tmp/llm-do-${uid}/runs`
}

/**
 * What holds the records of live runs, and beside them what a user allowed for a session. It has to stay out of reach of every
 * command: a record says what is removed after a run, an approval lets the next command through.
 */
export function ownDirectory(env: Readonly<Record<string, string | undefined>>, uid: number): string {
  return posix.dirname(runsDirectory(env, uid))
}
