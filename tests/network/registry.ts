/** A registry of npm as files: packages of this checkout, with what they depend on, as they were published. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { checkoutFor, currentUser } from '../support/users.ts'

const MODULES = join(checkoutFor(currentUser()), 'node_modules')

interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
}

const manifestIn = (directory: string): Manifest =>
  JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest

/** Node's search: next to the one that needs it, then at the top. */
function directoryOf(name: string, from: string): string {
  const own = join(from, 'node_modules', name)
  return existsSync(own) ? own : join(MODULES, name)
}

/** A package and all it depends on; no name of them has a scope. */
function closureOf(directory: string): readonly string[] {
  const { dependencies = {} } = manifestIn(directory)
  return [directory, ...Object.keys(dependencies).flatMap((name) => closureOf(directoryOf(name, directory)))]
}

/**
 * @param web what a server serves at `/`; the registry is /npm/
 * @param host that the tarballs are fetched from
 * @returns how many packages there are
 */
export async function publish(
  name: string,
  { web, host }: { readonly web: string; readonly host: string },
): Promise<number> {
  await mkdir(join(web, 'npm'), { recursive: true })
  const packages = [...new Set(closureOf(join(MODULES, name)))]
  for (const directory of packages) {
    const manifest = manifestIn(directory)
    const file = `${manifest.name}-${manifest.version}.tgz`
    const words = [
      '-czf',
      join(web, 'npm', file),
      '--exclude',
      './node_modules',
      '--transform',
      's#^\\.#package#',
      '-C',
      directory,
      '.',
    ]
    await execa('tar', words)
    const version = { ...manifest, dist: { tarball: `http://${host}/npm/${file}` } }
    const document = {
      name: manifest.name,
      'dist-tags': { latest: manifest.version },
      versions: { [manifest.version]: version },
    }
    await writeFile(join(web, 'npm', manifest.name), JSON.stringify(document))
  }
  return packages.length
}
