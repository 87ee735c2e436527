// make test, make test-all, make test-touched.
//
//   node scripts/test/main.mjs                     every wall and every promise once: what a contributor and CI run
//   node scripts/test/main.mjs FILE... [--name PATTERN] [--times N]   some files of tests, as every user that their names say
//   node scripts/test/main.mjs --all [PART...]     the rest of the product space, in parts (parts.mjs)
//   node scripts/test/main.mjs --touched           what the working change reaches (touched.mjs)
//
// First the stages that need no sandbox run, two processors full. Then the system tests run in six lanes (system.mjs), as root and as a
// plain user side by side. A stage that fails does not stop the next one. The last line is `N passed, N failed`; the exit status is 0 only
// when nothing failed and something passed. Ctrl-C and SIGTERM end every program that was started and remove what was made.
import { constants } from 'node:os'
import { parseArgs } from 'node:util'
import { markModules } from './modules.mjs'
import { PARTS } from './parts.mjs'
import { print, printFailed, printSlowest, printStage, printSum, progress } from './print.mjs'
import { checkout, endAll, isRoot, isStopping } from './programs.mjs'
import { STAGES, sumOf, system } from './stages.mjs'
import { systemFiles } from './system.mjs'
import { cleanTree, recordTested } from './tested.mjs'
import { testsTouched } from './touched.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    name: { type: 'string' },
    times: { type: 'string', default: '1' },
    all: { type: 'boolean' },
    touched: { type: 'boolean' },
  },
})

const interrupted = { by: undefined }
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    interrupted.by = signal
    endAll()
  })

async function stage(name, input) {
  const begun = performance.now()
  const counts = await STAGES[name].run(input)
  printStage(name, STAGES[name].title, counts, performance.now() - begun)
  return counts
}

const USERS = { root: 'real sandboxes, as root', plain: isRoot ? 'real sandboxes, as a plain user' : 'real sandboxes' }

/** System tests with their progress; one line for each user. */
async function systemStage(files, options = {}) {
  const begun = performance.now()
  const onFile = (result) => {
    printFailed(result)
    progress(`${result.done} of ${result.of} files, ${result.file}`)
  }
  const results = await system(files, { ...options, onFile })
  for (const [user, title] of Object.entries(USERS)) {
    const own = results.filter((result) => result.user === user)
    if (own.length > 0) printStage(user, title, sumOf(own.map(({ counts }) => counts)), performance.now() - begun)
  }
  printSlowest(results)
  return sumOf(results.map(({ counts }) => counts))
}

async function everything() {
  const removeUnread = markModules()
  const analysis = stage('analysis')
  const first = [...(await Promise.all(['unit', 'lint', 'types', 'native'].map(stage)))]
  const core = systemFiles().filter(({ isDeep }) => !isDeep)
  const counts = [...first, await systemStage(core), await analysis]
  if (!isStopping()) removeUnread()
  return counts
}

/** A run of everything as root is what `make release` demands: without root some walls are not tried. */
async function everythingOnRecord() {
  const before = cleanTree(checkout)
  const counts = await everything()
  if (isRoot && !isStopping() && sumOf(counts).failed === 0) recordTested(checkout, before)
  return counts
}

async function some(files) {
  const known = new Map(systemFiles().map((one) => [one.file, one]))
  const own = files.filter((file) => known.has(file)).map((file) => known.get(file))
  const rest = files.filter((file) => !known.has(file))
  const options = { name: values.name, times: Number(values.times), isDeep: own.some(({ isDeep }) => isDeep) }
  return [
    ...(rest.length > 0 ? [await STAGES.unit.run({ files: rest, name: values.name })] : []),
    ...(own.length > 0 ? [await systemStage(own, options)] : []),
  ]
}

async function parts(names) {
  const unknown = names.filter((name) => PARTS[name] === undefined)
  if (unknown.length > 0) {
    console.error(`test-all: no part ${unknown.join(', ')} (expected ${Object.keys(PARTS).join(', ')})`)
    process.exit(2)
  }
  const counts = []
  for (const name of names.length > 0 ? names : Object.keys(PARTS)) {
    if (isStopping()) break
    print(`part ${name}: ${PARTS[name].title}`)
    const begun = performance.now()
    const count = sumOf(await PARTS[name].run({ everything, systemStage, stage }))
    printStage(name, PARTS[name].title, count, performance.now() - begun)
    counts.push(count)
  }
  return counts
}

async function touched() {
  const { files, mutants, lines, isWhole } = testsTouched()
  for (const line of lines) print(line)
  if (isWhole) return everything()
  const analysis = stage('analysis')
  const first = await Promise.all(['unit', 'lint', 'types', 'native'].map(stage))
  const reached = files.length > 0 ? [await systemStage(files, { isDeep: true })] : []
  const noticed = mutants.length > 0 ? [await stage('mutants', mutants)] : []
  return [...first, ...reached, ...noticed, await analysis]
}

const chosen = values.all
  ? parts(positionals)
  : values.touched
    ? touched()
    : positionals.length > 0
      ? some(positionals)
      : everythingOnRecord()
const counts = await chosen
process.exitCode = printSum(sumOf(counts))
if (interrupted.by !== undefined) process.exitCode = 128 + constants.signals[interrupted.by]
