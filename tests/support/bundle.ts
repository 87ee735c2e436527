/** A TypeScript program of the tests as one file that every supported node can run. */
import { join } from 'node:path'
import { build } from 'esbuild'

/**
 * @param entry path of the program
 * @param directory where the bundle goes; the test removes it
 * @returns path of the bundle
 */
export async function bundle(entry: string, directory: string): Promise<string> {
  const outfile = join(directory, 'program.mjs')
  const banner =
    "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    banner: { js: banner },
  })
  return outfile
}
