/**
 * The file that node is started with. The program itself is one file, and next to it lies what node's compiler made of that file when
 * it was installed (scripts/compile.mjs), so a usual run compiles nothing. A node of another version or with other options rejects the
 * compiled form and compiles the program again.
 *
 * Edge: the program's own files.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Script } from 'node:vm'
import { holdSignals } from '../os/passed-signals.ts'

/** Name of the program in this directory. It contains a checksum of the text, so a compiled form cannot belong to another text. */
declare const PROGRAM: string

const directory = import.meta.dirname

interface Module {
  exports: unknown
}

const loaded = new Map<string, Module>()

/** Packages that were built apart lie next to the program; all others are built into node. */
const load: NodeJS.Require = Object.assign((name: string): unknown => {
  return name.startsWith('./') ? own(name.slice(2)) : require(name)
}, require)

function own(name: string): unknown {
  const known = loaded.get(name)
  if (known !== undefined) return known.exports
  const file = join(directory, name)
  // One byte a character: the text is ASCII (the build sees to that), and there are many of them.
  const text = `(function (module, exports, require, __filename, __dirname) {${readFileSync(file, 'latin1')}\n})`
  const start = new Script(text, { filename: file, ...compiled(file) }).runInThisContext()
  const module: Module = { exports: {} }
  loaded.set(name, module)
  start(module, module.exports, load, file, directory)
  return module.exports
}

function compiled(file: string): { readonly cachedData?: Buffer } {
  try {
    return { cachedData: readFileSync(`${file}.compiled`) }
  } catch {
    return {} // Not made, as in a fresh package: node compiles.
  }
}

holdSignals()
own(PROGRAM)
