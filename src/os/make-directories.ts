/**
 * Directories with those above them.
 * Edge: the file system.
 */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Works like `mkdir -p`. node's own `recursive` never returns where the system refuses to make directories, as in /proc.
 * @param directory absolute
 * @param mode of each that is made, less the umask; an existing entry stays as it is, and may be something else than a directory
 */
export function makeDirectories(directory: string, mode = 0o777): void {
  const why = attempt(directory, mode)
  if (why === undefined || why.code === 'EEXIST') return
  if (why.code !== 'ENOENT' || dirname(directory) === directory) throw why
  makeDirectories(dirname(directory), mode)
  const still = attempt(directory, mode)
  if (still !== undefined && still.code !== 'EEXIST') throw still
}

function attempt(directory: string, mode: number): NodeJS.ErrnoException | undefined {
  try {
    mkdirSync(directory, { mode })
    return undefined
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
}
