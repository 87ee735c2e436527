// Keeps what node's compiler makes of the command's program beside it, so that its starts need not compile:
//   node scripts/compile.mjs [DIRECTORY of dist]
// Only the node that ran this can use it, so it is made again where the package is installed. The program is run here, on `true`,
// for the compiler to see which functions a run needs; where there can be no sandbox (docker is left alone), those up to the refusal.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import vm from 'node:vm'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const cli = join(resolve(process.argv[2] ?? join(root, 'dist')), 'cli.cjs')

/** What cli.cjs makes: compiled anew, whatever was kept before. */
const scripts = []
class KeptScript extends vm.Script {
  constructor(text, { filename }) {
    super(text, { filename })
    scripts.push({ script: this, file: `${filename}.compiled` })
  }
}

// Nothing of the user's decides what is compiled: neither profiles nor what is known of the machine.
const stage = mkdtempSync(join(tmpdir(), 'llm-do-compile-'))
const { PATH = '' } = process.env
process.env = { PATH, HOME: stage, XDG_RUNTIME_DIR: stage, ENABLE_DOCKER: 'false' }
process.chdir(stage)
// A profile and an option, for the YAML parser and the schema to be among what is compiled.
writeFileSync('own.yaml', 'sandbox:\n  extends: default\n')
process.argv = [process.execPath, cli, 'exec', '--profile', './own.yaml', '--timeout', '30s', '--', 'true']

// The program ends its process itself.
process.on('exit', () => {
  for (const { script, file } of scripts) {
    writeFileSync(`${file}.new`, script.createCachedData())
    renameSync(`${file}.new`, file)
  }
  rmSync(stage, { recursive: true, force: true })
  process.exitCode = scripts.length > 0 ? 0 : 1
})
vm.Script = KeptScript
createRequire(import.meta.url)(cli)
