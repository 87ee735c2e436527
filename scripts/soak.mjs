// make soak: bundles tests/adversary/soak.ts, which is TypeScript like the table that it takes its attacks from, and runs it.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const outfile = join(root, 'build/soak.mjs')

/** Each module still knows its own directory. */
const directories = {
  name: 'places',
  setup(bundle) {
    bundle.onLoad({ filter: /tests[\\/].*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll('import.meta.dirname', JSON.stringify(dirname(path))),
      loader: 'ts',
    }))
  },
}

await build({
  entryPoints: [join(root, 'tests/adversary/soak.ts')],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  logLevel: 'warning',
  // Packages that are CommonJS ask for modules of Node by require().
  banner: {
    js: `import { createRequire as forPackages } from 'node:module'; const require = forPackages(import.meta.url)`,
  },
  plugins: [directories],
})

const child = spawn(process.execPath, [outfile, ...process.argv.slice(2)], { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.once('exit', (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1
})
