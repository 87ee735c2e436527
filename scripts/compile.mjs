// Keeps what node's compiler makes of the command's program next to it, so that its starts need not compile:
//   node scripts/compile.mjs [DIRECTORY of dist [VERB]]
// Only the node that ran this can use it, so it is made again where the package is installed. The program is run here, on `true`,
// for the compiler to see which functions a run needs; where there can be no sandbox (docker is left alone), those up to the refusal.
// The path of that node is recorded for native/client/find-node.c: the same one starts the program, whatever PATH says then.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import vm from 'node:vm'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const directory = resolve(process.argv[2] ?? join(root, 'dist'))
const verb = process.argv[3]
const cli = join(directory, verb === undefined ? 'cli.cjs' : `cli-${verb}.cjs`)

// Each verb that is a separate program gets its own process, because a program ends its process.
if (verb === undefined)
  for (const name of readdirSync(directory)) {
    const [, alone] = /^cli-([a-z]+)\.cjs$/.exec(name) ?? []
    if (alone !== undefined)
      execFileSync(process.execPath, [fileURLToPath(import.meta.url), directory, alone], { stdio: 'ignore' })
  }

/** The scripts of cli.cjs: compiled anew, whatever was kept before. */
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
const caller = { PATH, HOME: stage, XDG_RUNTIME_DIR: stage, ENABLE_DOCKER: 'false' }
const kept = Object.entries(caller).map(([name, value]) => [`LLM_DO_KEPT_${name}`, value])
process.env = { LLM_DO_CALL: 'argv', LLM_DO_DIRECTORY: stage, ...Object.fromEntries(kept) }
process.chdir(stage)
// A profile and an option, for the YAML parser and the schema to be among what is compiled.
writeFileSync('own.yaml', 'sandbox:\n  extends: default\n')
const run = ['exec', '--profile', './own.yaml', '--timeout', '30s', '--', 'true']
const words = verb === undefined ? run : [verb]
process.argv = [process.execPath, cli, ...words.map((word) => `=${word}`)]

function replace(file, content) {
  writeFileSync(`${file}.new`, content)
  renameSync(`${file}.new`, file)
}

replace(join(directory, 'node-path'), `${realpathSync(process.execPath)}\n`)

// The program ends its process itself.
process.on('exit', () => {
  for (const { script, file } of scripts) replace(file, script.createCachedData())
  rmSync(stage, { recursive: true, force: true })
  process.exitCode = scripts.length > 0 ? 0 : 1
})
vm.Script = KeptScript
createRequire(import.meta.url)(cli)
