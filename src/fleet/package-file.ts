/**
 * The large files that only a fleet needs: the client of Redis's queue, the database, the page. They lie next to the program, in `fleet/`.
 * npm's packages leave them out, and @llm-do/exec-fleet has them. The name of a program contains a checksum, so a package of another
 * version has none of that name.
 *
 * Edge: the file system.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fleetPackages, packageVersion, SandboxError } from '../core.ts'

/**
 * @param directory the program's; in the sources that of the file
 * @throws SandboxError HELPER_MISSING
 */
export function fleetFile(name: string, directory = import.meta.dirname): string {
  const places = [directory, join(directory, 'fleet'), ...fleetPackages()].map((place) => join(place, name))
  const found = places.find((place) => existsSync(place))
  if (found !== undefined) return found
  throw new SandboxError('HELPER_MISSING', `the files of a fleet are not installed: ${name}`, {
    hint: `npm install @llm-do/exec-fleet@${packageVersion()}`,
  })
}
