// Divides the command's program in two: what a run of a command needs, and the rest, which is read and made ready only when something of
// it is asked for. Every module is in one of the two, so that there is one of each class and one of each memory:
//   program   loads a module of the rest by import(), which becomes a question to rest-SUM.cjs
//   rest      gets the modules that it shares from the program, by the name `program` (src/cli/start.ts)
import { build } from 'esbuild'

/** Path below the root, as esbuild names inputs. */
const nameOf = (path, root) => path.slice(root.length + 1)

const questions = (names) =>
  names.map((name) => `${JSON.stringify(name)}: () => require(${JSON.stringify(`./${name}`)})`)

const answering = (names) => `const modules = { ${questions(names).join(', ')} }
module.exports = (name) => modules[name]()
`

/** @returns the modules that are needed, those that the program asks of the rest, and those that the rest asks of it */
export async function findHalves(options, needed) {
  const { metafile } = await build({ ...options, bundle: true, write: false, metafile: true })
  const imports = (file) => metafile.inputs[file].imports.filter(({ path }) => metafile.inputs[path] !== undefined)
  const inProgram = new Set()
  const add = (file) => {
    if (inProgram.has(file)) return
    inProgram.add(file)
    for (const { kind, path } of imports(file)) if (kind !== 'dynamic-import') add(path)
  }
  needed.forEach(add)
  const files = Object.keys(metafile.inputs)
  const importedBy = (from) =>
    files
      .filter(from)
      .flatMap(imports)
      .map(({ path }) => path)
  const across = (from, to) => [...new Set(importedBy(from).filter(to))].sort()
  const isInProgram = (file) => inProgram.has(file)
  const isInRest = (file) => !isInProgram(file)
  return {
    root: options.absWorkingDir,
    isInProgram,
    ofRest: across(isInProgram, isInRest),
    ofProgram: across(isInRest, isInProgram),
  }
}

/** Modules that are not on this side become `require(FILE)(NAME)`. */
function elsewhere({ root }, { isHere, file }) {
  return {
    name: 'elsewhere',
    setup(bundle) {
      bundle.onResolve({ filter: /.*/ }, async ({ path, pluginData, ...from }) => {
        if (pluginData === 'found' || from.kind === 'entry-point') return undefined
        if (path === file) return { path, external: true }
        const found = await bundle.resolve(path, { ...from, pluginData: 'found' })
        const isOurs = !found.external && found.errors.length === 0
        return isOurs && !isHere(nameOf(found.path, root)) ? { path: found.path, namespace: 'elsewhere' } : found
      })
      bundle.onLoad({ filter: /.*/, namespace: 'elsewhere' }, ({ path }) => ({
        contents: `module.exports = require(${JSON.stringify(file)})(${JSON.stringify(nameOf(path, root))})`,
        resolveDir: root,
      }))
    },
  }
}

export function forProgram(halves, { entryPoint, rest, plugins }) {
  const isHere = halves.isInProgram
  return {
    text: `${answering(halves.ofProgram)}require(${JSON.stringify(`./${entryPoint}`)})`,
    plugins: [...plugins, elsewhere(halves, { isHere, file: `./${rest}` })],
  }
}

export function forRest(halves, plugins) {
  const isHere = (name) => !halves.isInProgram(name)
  return { text: answering(halves.ofRest), plugins: [...plugins, elsewhere(halves, { isHere, file: 'program' })] }
}

/** @throws for a module that is in both: there would be two of each of its classes, and an error of one would be unknown to the other */
export function refuseDoubles(program, rest) {
  const doubles = program.inputs.filter((input) => /^(src|node_modules)\//.test(input) && rest.inputs.includes(input))
  if (doubles.length > 0) throw new Error(`in the program and in the rest: ${doubles.join(', ')}`)
}
