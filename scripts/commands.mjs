// Which program the commands `llm-do` and `llm-do-exec` are.
//   portable  a script of the shell that starts node (portable.sh), which runs everywhere: what a package ships
//   native    the client, which starts a known sandbox without node: what an installation on Linux turns them into

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const bin = join(root, 'bin')
const commands = ['llm-do', 'llm-do-exec'].map((name) => join(bin, name))
const client = join(bin, 'front')

/** e_machine of elf(5). */
const machines = { x64: 62, arm64: 183 }

function isForThisMachine(file) {
  if (process.platform !== 'linux' || !existsSync(file)) return false
  const header = Buffer.alloc(20)
  const fd = openSync(file, 'r')
  readSync(fd, header, 0, header.length, 0)
  closeSync(fd)
  return header.toString('latin1', 0, 4) === '\x7fELF' && header.readUInt16LE(18) === machines[process.arch]
}

// Made aside and renamed: a command that is running stays what it is.
function replace(file, make) {
  rmSync(`${file}.new`, { force: true })
  make(`${file}.new`)
  renameSync(`${file}.new`, file)
  rmSync(`${file}.new`, { force: true }) // rename(2) keeps both names where they are of one file already
}

/** What is written as `llm-do-exec WORDS` is meant as `llm-do exec WORDS`. */
function makePortable(file) {
  const first = basename(file) === 'llm-do-exec.new' ? '"=exec"' : ''
  writeFileSync(file, readFileSync(join(root, 'scripts/portable.sh'), 'utf8').replace('@FIRST@', first))
  chmodSync(file, 0o755)
}

const wanted = process.argv[2]
if (wanted !== 'portable' && wanted !== 'native') throw new Error('usage: commands.mjs portable|native')
const isNative = wanted === 'native' && isForThisMachine(client)
// Installed from a checkout that is not built yet: `make` makes the commands.
if (wanted === 'portable' || isNative) {
  mkdirSync(bin, { recursive: true })
  for (const file of commands) replace(file, isNative ? (at) => linkSync(client, at) : makePortable)
}
// Compiled for the node that is here; without it everything works, only more slowly.
if (wanted === 'native' && existsSync(join(root, 'dist/cli.cjs')))
  spawnSync(process.execPath, [join(root, 'scripts/compile.mjs')], { stdio: 'ignore' })
