/**
 * What node is given to run. The program itself is one file, and beside it lies what node's compiler made of that file when it
 * was installed (scripts/compile.mjs): a usual run compiles nothing. Another node than the one that made it, or other
 * options of it, refuse it and compile as ever.
 *
 * Edge: the program's own files.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Script } from 'node:vm'

/** Name of the program in our directory. A sum of its text is part of it, so that what was compiled can be of no other text. */
declare const PROGRAM: string

const directory = import.meta.dirname

interface Module {
  exports: unknown
}

const loaded = new Map<string, Module>()

/** What was built apart is beside the program, and may ask the program for what both have; everything else is node's own. */
const load: NodeJS.Require = Object.assign((name: string): unknown => {
  if (name === 'program') return own(PROGRAM)
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

own(PROGRAM)
