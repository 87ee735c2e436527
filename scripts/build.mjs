// Builds dist/, everything bundled:
//   index.cjs         the library, and its type declarations in types/; what it rarely needs is loaded when it does
//   index.js          the same for import: one copy for a program that uses both, so that its classes are the same, too
//   types-cjs/        the same declarations for require(): the compiler takes the kind of a module from the package.json around it
//   cli.cjs           the file that node runs: starts the program from the form that compile.mjs compiled
//   cli-VERB.cjs      the same for a verb that is a separate program, VERB-SUM.cjs
//   program-SUM.cjs   the command, one file: every further one costs its start more than what it holds
//   terminator.cjs    ends TLS for a run with credentials, on the host (src/terminator/main.ts)
//   mcp-SUM.cjs       the verb of that name with all that it needs
//   PACKAGE-SUM.cjs   large packages that most runs do not need
//   fleet/            the queue, the database and the page of a fleet (src/fleet/package-file.ts)
//   report-page.html  the page of llm-do report, without runs
//   man/, completions/  for man(1) and the shells
//   help-texts        what --help prints, for the client
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build as bundle } from 'esbuild'
import { writeHelpTexts } from './help-texts.mjs'
import { precompile } from './precompile.mjs'
import { writeShellFiles } from './shell-files.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const entryPoints = {
  program: 'src/cli/main.ts',
  cli: 'src/cli/load-bundle.ts',
  terminator: 'src/terminator/main.ts',
  index: 'src/index.ts',
}

const missing = Object.values(entryPoints).filter((entry) => !existsSync(join(root, entry)))
if (missing.length > 0) {
  console.error(`build: no entry point ${missing.join(' and ')} in ${root}: nothing was built`)
  process.exit(1)
}

// Built aside and moved at the end: a failed build leaves the last good one, and no run sees half of one.
const [made, target] = [join(root, 'build/dist'), join(root, 'dist')]
rmSync(made, { recursive: true, force: true })

/** Directories of npm's packages that something of is in what was built, for packaging/sbom.mjs. */
const bundled = new Set(['node_modules/node-sqlite3-wasm'])

async function build(options) {
  const { metafile } = await bundle({ ...options, metafile: true })
  for (const input of Object.keys(metafile.inputs)) {
    const [place] = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? []
    if (place !== undefined) bundled.add(place)
  }
  return metafile
}

const common = {
  absWorkingDir: root,
  outdir: made,
  bundle: true,
  platform: 'node',
  target: 'node20',
  sourcemap: false,
  external: [],
  logLevel: 'warning',
}

/** zod's messages in fifty languages, a third of the program; ours are our own. */
const withoutLanguages = {
  name: 'without-languages',
  setup(bundle) {
    bundle.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({ contents: 'export {}' }))
  },
}

/** Loaded when something is asked of them: together they are larger than all that is ours. */
const APART = ['zod', 'yaml', 'gray-matter', 'execa', 'yauzl', 'yazl']
/** The same, in fleet/. */
const APART_FOR_FLEETS = ['node-sqlite3-wasm', 'bullmq']

/** Read by what lies next to them. */
const BESIDE = {
  'report-page.html': 'src/report/report-page.html',
  'fleet/fleet-page.html': 'src/fleet/server/fleet-page.html',
  'fleet/node-sqlite3-wasm.wasm': 'node_modules/node-sqlite3-wasm/dist/node-sqlite3-wasm.wasm',
}

/** Verbs that are files of their own, with their own copy of what they share with the program: no other verb may start slower for them. */
const VERBS_APART = ['mcp']

/** Verbs that are programs of their own, `cli-VERB.cjs`, which the client starts: they need a small part of what a run does. */
const VERBS_ALONE = ['ps', 'profiles']

/** Of src/cli/main.ts only what this verb leads to. Nothing else is asked of such a program. */
const onlyVerb = (verb) => ({
  name: 'only-verb',
  setup(bundle) {
    bundle.onResolve({ filter: /^\.\/(commands\/.*|help)\.ts$/ }, ({ path, importer }) =>
      importer.endsWith('/src/cli/main.ts') && path !== `./commands/${verb}.ts` ? { path, external: true } : undefined,
    )
  },
})

/** Modules of node's own that a run asks for when its command has been started, or never: until then they are not loaded. */
const LATE = {
  'node:crypto': ['createHash', 'createHmac', 'randomBytes', 'randomUUID', 'timingSafeEqual'],
  'node:fs/promises': [
    'appendFile',
    'chmod',
    'copyFile',
    'lstat',
    'mkdir',
    'mkdtemp',
    'open',
    'readFile',
    'readdir',
    'readlink',
    'realpath',
    'rm',
    'stat',
    'writeFile',
  ],
}

const late = {
  name: 'late',
  setup(bundle) {
    const isLate = new RegExp(`^(${Object.keys(LATE).join('|')})$`)
    bundle.onResolve({ filter: isLate }, ({ path, namespace }) =>
      namespace === 'late' ? { path, external: true } : { path, namespace: 'late' },
    )
    bundle.onLoad({ filter: isLate, namespace: 'late' }, ({ path }) => ({
      contents: LATE[path]
        .map((name) => `export const ${name} = (...words) => require('${path}').${name}(...words)`)
        .join('\n'),
    }))
  },
}

const script = {
  ...common,
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  charset: 'ascii',
  // Late modules are loaded by require(), as everything here.
  supported: { 'dynamic-import': false },
  minifyWhitespace: true,
  define: { 'import.meta.dirname': '__dirname', 'import.meta.url': '__filename' },
}

/** @returns the name of the one file, with the checksum of its text in it */
async function buildScript(name, { entryPoint, plugins, outdir = made }) {
  const entry = { entryPoints: { [name]: entryPoint }, entryNames: '[name]-[hash]' }
  const metafile = await build({ ...script, ...entry, plugins, outdir })
  return basename(Object.keys(metafile.outputs)[0])
}

/** Builds the file that node runs. */
async function buildStart(name, program) {
  await build({
    ...script,
    entryPoints: { [name]: entryPoints.cli },
    define: { ...script.define, PROGRAM: JSON.stringify(program) },
  })
}

const exporting = (name, value) => `export const ${name} = ${JSON.stringify(value)}`

/** The parts for fleets are looked for when they are asked for. */
async function withFleet() {
  const files = await Promise.all(
    APART_FOR_FLEETS.map(async (name) => [
      name,
      await buildScript(name, { entryPoint: name, plugins: [], outdir: join(made, 'fleet') }),
    ]),
  ).then(Object.fromEntries)
  const filter = new RegExp(`^(${APART_FOR_FLEETS.join('|')})$`)
  return {
    name: 'with-fleet',
    setup(bundle) {
      bundle.onResolve({ filter }, ({ path }) => ({ path, namespace: 'fleet' }))
      bundle.onLoad({ filter, namespace: 'fleet' }, ({ path }) => ({
        contents: `module.exports = require(require('./src/fleet/package-file.ts').fleetFile('${files[path]}'))`,
        resolveDir: root,
      }))
    },
  }
}

async function buildAll() {
  const { policy, filters } = await precompile(root)
  const withPrecompiled = {
    name: 'with-precompiled',
    setup(bundle) {
      bundle.onLoad({ filter: /src\/policy\/precompiled\.ts$/ }, () => ({ contents: exporting('PRECOMPILED', policy) }))
      bundle.onLoad({ filter: /src\/seccomp\/precompiled\.ts$/ }, () => ({
        contents: exporting('PRECOMPILED_FILTERS', filters),
      }))
    },
  }
  const apart = await Promise.all(
    APART.map(async (name) => [name, await buildScript(name, { entryPoint: name, plugins: [withoutLanguages] })]),
  ).then(Object.fromEntries)
  const withApart = {
    name: 'with-apart',
    setup(bundle) {
      bundle.onResolve({ filter: new RegExp(`^(${APART.join('|')})$`) }, ({ path }) => ({
        path: `./${apart[path]}`,
        external: true,
      }))
    },
  }
  const plugins = [withPrecompiled, withApart, await withFleet(), late]
  const verbs = await Promise.all(
    VERBS_APART.map(async (verb) => [
      verb,
      await buildScript(verb, { entryPoint: `src/cli/commands/${verb}.ts`, plugins: [...plugins, withoutLanguages] }),
    ]),
  ).then(Object.fromEntries)
  const withVerbsApart = {
    name: 'with-verbs-apart',
    setup(bundle) {
      bundle.onResolve({ filter: new RegExp(`^\\./commands/(${VERBS_APART.join('|')})\\.ts$`) }, ({ path }) => ({
        path: `./${verbs[basename(path, '.ts')]}`,
        external: true,
      }))
    },
  }
  const program = await buildScript('program', {
    entryPoint: entryPoints.program,
    plugins: [withVerbsApart, ...plugins],
  })
  await buildStart('cli', program)
  for (const verb of VERBS_ALONE) {
    const verbPlugins = [onlyVerb(verb), ...plugins]
    await buildStart(`cli-${verb}`, await buildScript(verb, { entryPoint: entryPoints.program, plugins: verbPlugins }))
  }
  await build({ ...script, entryPoints: { terminator: entryPoints.terminator } })
  await build({ ...script, entryPoints: { index: entryPoints.index }, plugins })
  writeFileSync(join(made, 'index.js'), "export * from './index.cjs'\n")
  for (const [name, file] of Object.entries(BESIDE)) copyFileSync(join(root, file), join(made, name))
}

/** esbuild leaves regular expressions as they are, and src/cli/load-bundle.ts reads a byte for a character. */
function refuseOtherCharacters() {
  const names = readdirSync(made, { recursive: true })
  for (const name of names.filter((name) => name.endsWith('.cjs'))) {
    const [found] = /.{0,40}[\x80-\xff].{0,20}/.exec(readFileSync(join(made, name), 'latin1')) ?? []
    if (found !== undefined) throw new Error(`${name}: not ASCII: ${found} (in a regular expression write \\u2018)`)
  }
}

await buildAll()
  .then(refuseOtherCharacters)
  .then(() => writeShellFiles(root, made))
  .then(() => writeHelpTexts(root, made))
  .catch((error) => {
    // esbuild has printed what is wrong in the sources, and where.
    if (error.errors === undefined) console.error(`build: ${error.message}`)
    process.exit(1)
  })

/** Interfaces that the declarations need: they merge with those of @types/node and of the compiler's libraries. */
const GLOBALS = `interface AbortSignal {}
interface AsyncDisposable {}
interface SymbolConstructor { readonly asyncDispose: unique symbol }
`

/** A program without @types/node can be compiled, too: there a stream, a Buffer and the name of a signal are `any`. */
function compileWithoutNode(types) {
  writeFileSync(join(types, 'globals.d.ts'), GLOBALS)
  for (const name of readdirSync(types, { recursive: true }).filter((name) => name.endsWith('.d.ts'))) {
    const file = join(types, name)
    const text = readFileSync(file, 'utf8').replaceAll(
      /^.*(?:from 'node:|import\('node:|\bNodeJS\.|[<:] ?Buffer\b).*$/gm,
      '// @ts-ignore: needs @types/node\n$&',
    )
    writeFileSync(file, name === 'index.d.ts' ? `/// <reference path="./globals.d.ts" />\n${text}` : text)
  }
}

/** Half of the time of a build: a mutant, which is thrown away, keeps those of before. */
function writeTypes() {
  try {
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    execFileSync(process.execPath, [compiler, '-p', '.', '--outDir', join(made, 'types')], {
      cwd: root,
      stdio: 'inherit',
    })
  } catch {
    process.exit(1) // the compiler has printed what is wrong and where
  }
  compileWithoutNode(join(made, 'types'))
  cpSync(join(made, 'types'), join(made, 'types-cjs'), { recursive: true })
  writeFileSync(join(made, 'types-cjs/package.json'), '{ "type": "commonjs" }\n')
}

if (process.argv.includes('--without-types')) {
  for (const types of ['types', 'types-cjs']) cpSync(join(target, types), join(made, types), { recursive: true })
} else writeTypes()

rmSync(target, { recursive: true, force: true })
renameSync(made, target)
writeFileSync(join(root, 'build/bundled.json'), `${JSON.stringify([...bundled].sort(), null, 2)}\n`)
// Whether `true` runs in this machine's sandboxes does not matter here.
execFileSync(process.execPath, [join(root, 'scripts/compile.mjs'), target], { stdio: 'ignore' })
