import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

/**
 * Modules of src/ as this node can run them, for what the build makes with them.
 * @param exported `export` statements, as if they stood in a file of src/
 */
export async function loadSources(root, name, exported) {
  const made = join(root, 'build/sources', name)
  mkdirSync(made, { recursive: true })
  try {
    const outfile = join(made, `${name}.cjs`)
    const stdin = { contents: exported, resolveDir: join(root, 'src'), loader: 'ts' }
    await build({
      stdin,
      outfile,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      target: 'node20',
      logLevel: 'warning',
    })
    return await import(pathToFileURL(outfile))
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}
