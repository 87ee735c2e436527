// The checkout is not a package: bin/ and dist/ contain the last build, and a clone has neither. packaging/npm.mjs makes the packages.
//
// npm runs this before it packs, and after it has installed the checkout from a git address below another project's node_modules.
import { sep } from 'node:path'

const isInstalled = process.cwd().split(sep).includes('node_modules')
if (process.env.npm_lifecycle_event === 'prepack' || isInstalled) {
  console.error('llm-do-exec: the checkout is not an npm package (hint: make packages; docs/guide/install.md)')
  process.exit(1)
}
