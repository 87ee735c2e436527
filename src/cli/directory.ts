/**
 * Where the command was called from, as the kernel knows it.
 *
 * Edge: the working directory.
 */
import { realpathSync } from 'node:fs'
import { SandboxError } from '../error.ts'

/** @returns canonical; @throws SandboxError ZONE_INVALID when it was removed meanwhile */
export function currentDirectory(): string {
  try {
    return realpathSync(process.cwd())
  } catch (cause) {
    throw new SandboxError('ZONE_INVALID', 'the directory this was called from does not exist any more.', {
      hint: 'cd to a directory that exists',
      cause,
    })
  }
}
