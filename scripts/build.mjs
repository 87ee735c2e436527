// Builds dist/: two entry points with shared chunks, everything bundled, and the type declarations of the library.
// Code splitting keeps the start of the command short: what it imports lazily is a file of its own and is read only when needed.
import { execFileSync } from 'node:child_process'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const entryPoints = { cli: 'src/cli/main.ts', index: 'src/index.ts' }

const missing = Object.values(entryPoints).filter((entry) => !existsSync(join(root, entry)))
if (missing.length > 0) {
  console.error(`build: no entry point ${missing.join(' and ')} in ${root}: nothing was built`)
  process.exit(1)
}

// Built aside and moved at the end: a failed build leaves the last good one, and no run sees half of one.
const [made, place] = [join(root, 'build/dist'), join(root, 'dist')]
rmSync(made, { recursive: true, force: true })

await build({
  absWorkingDir: root,
  entryPoints,
  outdir: made,
  chunkNames: 'part-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: false,
  external: [],
  // Bundled CommonJS packages still ask for node's own modules by require(), which ES modules do not have.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
  },
  logLevel: 'warning',
}).catch(() => process.exit(1)) // esbuild has printed what is wrong and where

try {
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.', '--outDir', join(made, 'types')],
    { cwd: root, stdio: 'inherit' },
  )
} catch {
  process.exit(1) // the compiler has printed what is wrong and where
}

rmSync(place, { recursive: true, force: true })
renameSync(made, place)
