// Makes the packages of npm, the same bytes each time from the same sources:
//   node packaging/npm.mjs DIRECTORY x64=BIN arm64=BIN
//   node packaging/npm.mjs --installed NODE_MODULES x64=BIN     the same files, as npm installs them
//
//   llm-do-exec             the library, the command for macOS and Windows, and on Linux the way to the client (scripts/portable.sh)
//   @llm-do/exec-fleet      what only a fleet needs: its queue, its database, the page of its server
//   @llm-do/exec-linux-*    for each machine what a run needs, complete: the client finds the rest of its package next to itself
//
// No package has a script that npm would run, and none needs a compiler. The checkout itself refuses to be packed
// (scripts/refuse-package.mjs).
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { facts, root } from './facts.mjs'
import { pack } from './pack.mjs'

const { version } = facts
const common = { ...facts, type: 'module' }

const FLEET = '@llm-do/exec-fleet'
const platformPackage = (arch) => `@llm-do/exec-linux-${arch}`

const mainManifest = (arches) => ({
  name: 'llm-do-exec',
  ...common,
  os: ['linux', 'darwin', 'win32'],
  bin: { 'llm-do': 'bin/llm-do', 'llm-do-exec': 'bin/llm-do-exec' },
  man: ['./dist/man/llm-do.1', './dist/man/llm-do-exec.1'],
  main: 'dist/index.cjs',
  types: 'dist/types-cjs/index.d.ts',
  exports: {
    '.': {
      import: { types: './dist/types/index.d.ts', default: './dist/index.js' },
      require: { types: './dist/types-cjs/index.d.ts', default: './dist/index.cjs' },
    },
    './package.json': './package.json',
  },
  // Found next to this one (src/fleet/package-file.ts).
  peerDependencies: { [FLEET]: version },
  peerDependenciesMeta: { [FLEET]: { optional: true } },
  // Everything that runs is bundled.
  optionalDependencies: Object.fromEntries(arches.map((arch) => [platformPackage(arch), version])),
})

const fleetManifest = {
  name: FLEET,
  ...common,
  description: 'Queue, database and page of llm-do-exec for fleets of agents',
}

const platformManifest = (arch) => ({
  name: platformPackage(arch),
  ...common,
  description: `Native programs of llm-do-exec for Linux on ${arch}`,
  os: ['linux'],
  cpu: [arch],
})

const writeManifest = (directory, manifest) =>
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)

/** Files that only the node of this machine can use stay here. */
const isForAll = (file) => !/\.compiled$|\/node-path$|\/dist\/fleet$/.test(file)

function stageMain(directory, arches) {
  for (const part of [
    'dist',
    'profiles',
    'schemas',
    'workers',
    'docs',
    'README.md',
    'CHANGELOG.md',
    'SECURITY.md',
    'LICENSE',
  ])
    cpSync(join(root, part), join(directory, part), { recursive: true, filter: isForAll })
  execFileSync(process.execPath, [join(root, 'scripts/commands.mjs'), join(directory, 'bin')])
  writeManifest(directory, mainManifest(arches))
}

function stageFleet(directory) {
  cpSync(join(root, 'dist/fleet'), directory, { recursive: true })
  cpSync(join(root, 'LICENSE'), join(directory, 'LICENSE'))
  writeManifest(directory, fleetManifest)
}

function stagePlatform(directory, arch, bin) {
  execFileSync(join(root, 'packaging/tree'), [directory, bin], { env: { ...process.env, WITHOUT_FLEET: '1' } })
  writeManifest(directory, platformManifest(arch))
}

/** Of npm's packages: `npm pack` gives every file this time. */
const NPM_SECONDS = 499_162_500

const isInstalled = process.argv[2] === '--installed'
const [target, ...given] = process.argv.slice(isInstalled ? 3 : 2)
const programs = Object.fromEntries(given.map((one) => one.split('=')))
const arches = Object.keys(programs).sort()
if (target === undefined || arches.length === 0)
  throw new Error('usage: npm.mjs DIRECTORY x64=BIN arm64=BIN, or npm.mjs --installed NODE_MODULES x64=BIN')

/** Fills a directory for each package. */
const PACKAGES = {
  'llm-do-exec': (directory) => stageMain(directory, arches),
  [FLEET]: stageFleet,
  ...Object.fromEntries(
    Object.entries(programs).map(([arch, bin]) => [
      platformPackage(arch),
      (directory) => stagePlatform(directory, arch, bin),
    ]),
  ),
}

function fillBelow(directory, name) {
  const place = join(directory, name)
  mkdirSync(place, { recursive: true })
  PACKAGES[name](place)
  return place
}

function packAll() {
  const stages = mkdtempSync(join(tmpdir(), 'llm-do-packages-'))
  try {
    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { recursive: true })
    for (const name of Object.keys(PACKAGES))
      pack(fillBelow(stages, name), {
        file: join(target, `${name.replace(/^@llm-do\//, 'llm-do-')}-${version}.tgz`),
        top: 'package',
        seconds: NPM_SECONDS,
      })
  } finally {
    rmSync(stages, { recursive: true, force: true })
  }
}

if (isInstalled) for (const name of Object.keys(PACKAGES)) fillBelow(target, name)
else packAll()
