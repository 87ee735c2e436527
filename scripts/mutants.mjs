// make mutants: for each row of tests/mutants/*.yaml breaks one wall in a copy of the checkout, builds what that needs, and demands that
// the test of the row fails. A row that no test notices survives: its test is missing.
//
//   node scripts/mutants.mjs [NAME...]      without names: all
//
// Exit status 0 when every row was noticed; a row whose text is not exactly once in its file is an error (tests/mutants/table.test.ts).
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const table = join(root, 'tests/mutants')

/** One test file under load; a mutant may also hang. */
const TEST_MS = 180_000
const BUILD_MS = 300_000

const rows = readdirSync(table)
  .filter((name) => name.endsWith('.yaml'))
  .flatMap((name) => parse(readFileSync(join(table, name), 'utf8')))
const requested = process.argv.slice(2)
const unknown = requested.filter((name) => !rows.some((row) => row.name === name))
if (unknown.length > 0) {
  console.error(`mutants: no row ${unknown.join(', ')} in tests/mutants`)
  process.exit(2)
}

/** All but the history; the packages too, since a link would lead out of the copy. */
function copyCheckout() {
  const checkout = mkdtempSync(join(tmpdir(), 'llm-do-mutants-'))
  chmodSync(checkout, 0o755)
  for (const name of readdirSync(root).filter((one) => one !== '.git'))
    cpSync(join(root, name), join(checkout, name), {
      recursive: true,
      preserveTimestamps: true,
      verbatimSymlinks: true,
    })
  return checkout
}

function edit(checkout, { file, find, replace }) {
  const path = join(checkout, file)
  const text = readFileSync(path, 'utf8')
  const parts = text.split(find)
  if (parts.length !== 2) throw new Error(`${file}: expected the text of the row once, got ${parts.length - 1} times`)
  writeFileSync(path, parts.join(replace))
  return () => writeFileSync(path, text)
}

const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(MAKE|MFLAGS|GNUMAKE|LLM_DO_TEST_)/.test(name)),
)

const run = (checkout, words, timeout, env = {}) =>
  spawnSync(words[0], words.slice(1), {
    cwd: checkout,
    encoding: 'utf8',
    timeout,
    killSignal: 'SIGKILL',
    env: { ...environment, ...env },
  })

/** What the copy was built of before the last row was undone. */
const stale = new Set()

/** Native programs follow their sources by make; the bundle is made by its script alone: make looks for npm packages first. */
function build(checkout, files) {
  const parts = files.map((file) => file.split('/')[0])
  const needed = new Set([...stale, ...parts])
  stale.clear()
  for (const part of parts) stale.add(part)
  const steps = [
    ...(needed.has('native') ? [['make', 'native', 'drivers']] : []),
    ...(needed.has('src') ? [['node', 'scripts/build.mjs']] : []),
  ]
  for (const words of steps) {
    const { status, stderr, stdout } = run(checkout, words, BUILD_MS)
    if (status !== 0) return `${words.join(' ')}: ${(stderr || stdout).trim().split('\n').slice(-3).join(' ')}`
  }
  return undefined
}

/** Which tests failed; undefined when vitest wrote no report, a text when no test fits the row. */
function tried(checkout, { project, file, name }) {
  const counts = join(checkout, 'counts.json')
  rmSync(counts, { force: true })
  const words = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    project,
    file,
    ...(name === '' ? [] : ['-t', name]),
  ]
  const { error } = run(checkout, [process.execPath, ...words], TEST_MS, { LLM_DO_TEST_COUNTS: counts })
  if (error?.code === 'ETIMEDOUT') return { failed: ['it did not end'], ran: 1 }
  if (!existsSync(counts)) return undefined
  const report = JSON.parse(readFileSync(counts, 'utf8'))
  const results = report.testResults.flatMap(({ assertionResults }) => assertionResults)
  const failed = results.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName)
  const passed = results.filter(({ status }) => status === 'passed')
  return { failed, ran: failed.length + passed.length }
}

/** @returns `noticed`, or what is wrong */
function play(checkout, { edits, test }) {
  const undo = []
  try {
    for (const one of edits) undo.unshift(edit(checkout, one))
    const files = edits.map(({ file }) => file)
    // Unit tests read the sources themselves.
    const broken = test.project === 'unit' ? undefined : build(checkout, files)
    if (broken !== undefined) return `ERROR: it does not build: ${broken}`
    const result = tried(checkout, test)
    if (result === undefined || result.ran === 0) return `ERROR: no test of that name in ${test.file}: ${test.name}`
    return result.failed.length > 0 ? 'noticed' : 'SURVIVES'
  } catch (error) {
    return `ERROR: ${error.message}`
  } finally {
    for (const back of undo) back()
  }
}

const checkout = copyCheckout()
process.on('exit', () => rmSync(checkout, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))
const bad = []
for (const row of rows.filter(({ name }) => requested.length === 0 || requested.includes(name))) {
  const begun = performance.now()
  const verdict = play(checkout, row)
  if (verdict !== 'noticed') bad.push(row.name)
  const seconds = ((performance.now() - begun) / 1000).toFixed(0).padStart(4)
  console.log(`${verdict.padEnd(9)} ${seconds} s  ${row.name}: ${row.breaks}`)
}
console.log(bad.length === 0 ? 'mutants: all were noticed' : `mutants: not noticed: ${bad.join(' ')}`)
process.exitCode = bad.length === 0 ? 0 : 1
