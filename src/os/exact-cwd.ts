/**
 * The directory of this process, by a name that leads back to it.
 * Edge: the working directory.
 */
import { realpathSync } from 'node:fs'
import { SandboxError } from '../error.ts'

/** Node prints it for bytes that are not UTF-8. */
const REPLACEMENT = '\uFFFD'

/**
 * Node decodes the path. With bytes that are not UTF-8 the text may be the name of another directory, which another user has made.
 * @throws SandboxError ZONE_INVALID for such a path; what process.cwd() throws
 */
export function exactCwd(): string {
  const path = process.cwd()
  if (path.includes(REPLACEMENT) && !realpathSync.native('.', 'buffer').equals(Buffer.from(path)))
    throw new SandboxError('ZONE_INVALID', 'the directory this was called from has a path that is not valid UTF-8.', {
      hint: 'cd to another directory',
    })
  return path
}
