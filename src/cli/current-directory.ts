/**
 * Where the command was called from, as the kernel knows it.
 *
 * Edge: the working directory.
 */
import { realpathSync } from 'node:fs'
import { SandboxError } from '../error.ts'
import { untrustedFrom, withTrustedPath } from '../host/program.ts'
import { exactCwd } from '../os/exact-cwd.ts'
import type { Call, Environment } from './call.ts'

/** @returns canonical; @throws SandboxError ZONE_INVALID when it was removed meanwhile, may not be entered, or has no name in UTF-8 */
export function currentDirectory({ astray }: Pick<Call, 'astray'>): string {
  if (astray !== undefined) throw unusable(astray)
  try {
    return realpathSync(exactCwd())
  } catch (cause) {
    throw cause instanceof SandboxError ? cause : unusable(cause)
  }
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist any more',
  ERANGE: 'has a path that is too long (4095 bytes at most)',
  ENAMETOOLONG: 'has a path that is too long (4095 bytes at most)',
  EACCES: 'may not be entered by this user',
}

function unusable(cause: unknown): SandboxError {
  const { code = 'unknown' } = cause as NodeJS.ErrnoException
  const why = WHY[code] ?? `cannot be used (${code})`
  return new SandboxError('ZONE_INVALID', `the directory this was called from ${why}.`, {
    hint: 'cd to another directory',
    cause,
  })
}

/** Where programs are not searched: a command may have been able to write to the current directory, unless it is the system's. */
export function untrustedDirectories(): readonly string[] {
  try {
    return untrustedFrom(realpathSync(process.cwd()))
  } catch {
    return [] // It was removed: no program is below it.
  }
}

/** The caller's environment for programs of the host that a verb starts: its PATH leads to nothing in the directory it was called from. */
export function hostEnvironment({ env }: Pick<Call, 'env'>): Environment {
  return withTrustedPath(env, untrustedDirectories())
}
