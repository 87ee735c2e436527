/**
 * The records of this user's live runs, by the native helper that reads them.
 *
 * Edge: processes.
 */
import { join } from 'node:path'
import { runsDirectory } from '../backends/runs-directory.ts'
import { SandboxError } from '../error.ts'
import { helpersDirectory } from '../os/native-helpers.ts'
import { makeOwnDirectory } from '../run/caller.ts'
import type { Environment } from './call.ts'

export interface HelperAnswer {
  readonly stdout: string
  /** 0, or 1 for "no such run". */
  readonly status: number
}

/** Runs the helper. @throws SandboxError with its own words when it cannot do its work */
export async function askRunsHelper(
  env: Environment,
  action: 'list' | 'kill' | 'prune',
  ...words: readonly string[]
): Promise<HelperAnswer> {
  const { execa } = await import('execa')
  const helper = join(helpersDirectory(), 'runs')
  makeOwnDirectory(env)
  const argv = [action, runsDirectory(env, process.getuid?.() ?? 0), ...words]
  const { exitCode, stdout, stderr, code } = await execa(helper, argv, {
    env: {},
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
  if (code === 'ENOENT') throw new SandboxError('HELPER_MISSING', `${helper}: no such file.`, { hint: 'make native' })
  if (exitCode === 0 || exitCode === 1) return { stdout, status: exitCode }
  const why = stderr.trim() || `${helper} failed`
  throw new SandboxError('BACKEND_FAILED', `${action}: ${why}`, {
    hint: 'ls -ld the directory named above; it must be yours alone',
  })
}
