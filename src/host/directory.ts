/**
 * Directories with those above them.
 * Edge: the file system.
 */
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * What `mkdir -p` does. node's own `recursive` never returns where the system refuses to make directories, as in /proc.
 * @param directory absolute
 * @param mode of each that is made, less the umask; what is there stays as it is, and may be something else than a directory
 */
export async function makeDirectories(directory: string, mode = 0o777): Promise<void> {
  const why = await attempt(directory, mode)
  if (why === undefined || why.code === 'EEXIST') return
  if (why.code !== 'ENOENT' || dirname(directory) === directory) throw why
  await makeDirectories(dirname(directory), mode)
  const still = await attempt(directory, mode)
  if (still !== undefined && still.code !== 'EEXIST') throw still
}

async function attempt(directory: string, mode: number): Promise<NodeJS.ErrnoException | undefined> {
  return mkdir(directory, { mode }).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error,
  )
}
