/**
 * The version and the directory of the installed package.
 *
 * Edge: the package's own files.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** From the sources as well as from the bundle: the nearest directory upwards with a package.json. */
export function packageRoot(from: string = import.meta.dirname): string {
  if (existsSync(join(from, 'package.json')) || dirname(from) === from) return from
  return packageRoot(dirname(from))
}

export function version(): string {
  const manifest = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { readonly version: string }
  return manifest.version
}
