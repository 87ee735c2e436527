// make mutants: for each row of tests/mutants/*.txt breaks one wall in a copy of the checkout, builds what that needs, and demands that
// the test of the row fails. A row that no test notices survives: its test is missing.
//
//   node scripts/mutants.mjs [NAME...]      without names: all
//
// Two copies work side by side. Rows that edit the same file follow each other, so that little is built twice. A test is one that `make test`
// runs: deep files do not count (tests/mutants/table.test.ts). The last line is `N passed, N failed`; the exit status is 0 when every row was noticed.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { allMutants } from './mutants-table.mjs'
import { endAll, environment, run } from './test/programs.mjs'
import { copyTo, inOwnPlaces } from './test/users.mjs'

/** Longer than a test may take (vitest.config.ts). A mutant that hangs is not noticed: on a busy machine that would be said of one that no test sees. */
const TEST_MS = 300_000
const BUILD_MS = 300_000
const JOBS = Number(process.env.JOBS ?? Math.min(2, availableParallelism()))

const rows = allMutants()
const requested = process.argv.slice(2)
const unknown = requested.filter((name) => !rows.some((row) => row.name === name))
if (unknown.length > 0) {
  console.error(`mutants: no row ${unknown.join(', ')} in tests/mutants`)
  process.exit(2)
}

function edit(checkout, { file, find, replace }) {
  const path = join(checkout, file)
  const text = readFileSync(path, 'utf8')
  const parts = text.split(find)
  if (parts.length !== 2) throw new Error(`${file}: expected the text of the row once, got ${parts.length - 1} times`)
  writeFileSync(path, parts.join(replace))
  return () => writeFileSync(path, text)
}

const steering = Object.fromEntries(
  Object.keys(environment).flatMap((name) => (name.startsWith('LLM_DO_TEST_') ? [[name, undefined]] : [])),
)

/** A copy of the checkout, with the places of root to itself. */
function newCopy(directory, index) {
  const checkout = join(directory, `${index}`)
  copyTo(checkout, { isBuilt: true })
  const places = Object.fromEntries(['runtime', 'state', 'shared'].map((name) => [name, `${checkout}-${name}`]))
  for (const place of Object.values(places)) mkdirSync(place, { mode: 0o700 })
  chmodSync(places.shared, 0o1777)
  return {
    checkout,
    /** The sources of the copy's last build, before the last row was undone. */
    stale: new Set(),
    run: (words, limitMs, env = {}) => {
      const [file, ...argv] = inOwnPlaces(words, places)
      return run(file, argv, { cwd: checkout, limitMs, env: { ...steering, ...env } })
    },
  }
}

/** Native programs follow their sources by make; the bundle is made by its script alone: make looks for npm packages first. */
async function build(copy, files) {
  const parts = files.map((file) => file.split('/')[0])
  const needed = new Set([...copy.stale, ...parts])
  copy.stale = new Set(parts)
  const steps = [
    ...(needed.has('native') ? [['make', 'native', 'drivers']] : []),
    ...(needed.has('src') ? [['node', 'scripts/build.mjs', '--without-types']] : []),
  ]
  for (const words of steps) {
    const { status, output } = await copy.run(words, BUILD_MS)
    if (status !== 0) return `${words.join(' ')}: ${output.trim().split('\n').slice(-3).join(' ')}`
  }
  return undefined
}

/** The same of the units of the native code. */
async function triedNatively(copy, { name }) {
  const { isStopped, output } = await copy.run(['make', 'native-unit', `NAME=${name}`], BUILD_MS)
  if (isStopped) return { isStopped, failed: [], ran: 1 }
  const [, passed, failed] = /(\d+) passed, (\d+) failed/.exec(output) ?? []
  // A sanitizer ends the program at the first wrong access.
  if (passed === undefined) return /Sanitizer|runtime error/.test(output) ? { failed: [name], ran: 1 } : undefined
  return { failed: Array(Number(failed)).fill(name), ran: Number(passed) + Number(failed) }
}

/** The failed tests, and the number that ran; nothing when vitest wrote no report. */
async function tried(copy, { project, file, name }) {
  if (project === 'native') return triedNatively(copy, { name })
  const counts = join(copy.checkout, 'counts.json')
  rmSync(counts, { force: true })
  const words = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    project,
    '--exclude',
    '**/*.deep.system.test.ts',
    file,
  ]
  const pattern = name === '' ? [] : ['-t', name]
  const { isStopped } = await copy.run([process.execPath, ...words, ...pattern], TEST_MS, {
    LLM_DO_TEST_COUNTS: counts,
  })
  if (isStopped) return { isStopped, failed: [], ran: 1 }
  try {
    const report = JSON.parse(readFileSync(counts, 'utf8'))
    const results = report.testResults.flatMap(({ assertionResults }) => assertionResults)
    const failed = results.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName)
    return { failed, ran: failed.length + results.filter(({ status }) => status === 'passed').length }
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

/** @returns `noticed`, or what is wrong */
async function play(copy, { edits, test }) {
  const undo = []
  try {
    for (const one of edits) undo.unshift(edit(copy.checkout, one))
    const files = edits.map(({ file }) => file)
    // Unit tests read the sources themselves.
    const broken = test.project === 'unit' ? undefined : await build(copy, files)
    if (broken !== undefined) return `ERROR: it does not build: ${broken}`
    const result = await tried(copy, test)
    if (result === undefined || result.ran === 0) return `ERROR: no test of that name in ${test.file}: ${test.name}`
    if (result.isStopped) return 'HANGS'
    return result.failed.length > 0 ? 'noticed' : 'SURVIVES'
  } catch (error) {
    return `ERROR: ${error.message}`
  } finally {
    for (const back of undo) back()
  }
}

const directory = mkdtempSync(join(tmpdir(), 'llm-do-mutants-'))
// A plain user of a test runs the programs of the copy.
chmodSync(directory, 0o755)
process.on('exit', () => {
  endAll('SIGKILL')
  rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))

const key = ({ test, edits }) => `${test.project} ${edits[0].file}`
const queue = rows
  .filter(({ name }) => requested.length === 0 || requested.includes(name))
  .toSorted((one, other) => key(one).localeCompare(key(other)))
const total = queue.length
const bad = []

async function work(copy) {
  for (let row = queue.shift(); row !== undefined; row = queue.shift()) {
    const begun = performance.now()
    const verdict = await play(copy, row)
    if (verdict !== 'noticed')
      bad.push(`FAIL mutant ${row.name}: ${row.breaks}\n  ${verdict} (${row.test.file}: ${row.test.name})`)
    const seconds = ((performance.now() - begun) / 1000).toFixed(0).padStart(4)
    console.log(`${verdict.padEnd(9)} ${seconds} s  ${row.name}: ${row.breaks}`)
  }
}

await Promise.all(Array.from({ length: Math.min(JOBS, total) }, (_, index) => work(newCopy(directory, index))))
for (const text of bad) console.log(text)
console.log(`${total - bad.length} passed, ${bad.length} failed`)
process.exitCode = bad.length === 0 ? 0 : 1
