// The stages of `make test`, each a promise of counts: { passed, failed, skipped, failures }.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { checkout, isRoot, isStopping, run } from './programs.mjs'
import { jobsOf, keepTimes, runSystem } from './system.mjs'
import { makeRunDirectory } from './users.mjs'

/** Needs (tests/support/needs.ts) that CI must meet: there a test without what it needs fails instead of being skipped. */
const REQUIRED = [
  ...[
    'bwrap',
    'unshare',
    'docker',
    'wasi',
    'zsh',
    'fish',
    'postgres',
    'strace',
    'python',
    'pytest',
    'git',
    'gcc',
    'ssh-agent',
  ],
  ...['plain-user', 'kernel-headers', 'newer-nodes'],
]
/** Stages of test-all alone. */
const REQUIRED_DEEP = ['podman', 'vm', 'aarch64-cc', 'mmdebstrap', 'libfuzzer', 'network-clients', 'chromium']
/** The docker daemon belongs to root, and other versions of node are in root's checkout only. */
const REQUIRED_OF_A_USER = ['bwrap', 'unshare', 'wasi', 'strace', 'python', 'pytest', 'git', 'gcc', 'ssh-agent']

const required = (needs) => process.env.LLM_DO_TEST_REQUIRE ?? (process.env.CI === 'true' ? needs.join(',') : '')
const requiredHere = ({ isDeep = false } = {}) => ({
  root: required([...REQUIRED, ...(isDeep ? REQUIRED_DEEP : [])]),
  plain: required(REQUIRED_OF_A_USER),
})

/** A reader of a log sees its end first: enough of a message to tell what was expected and what came. */
const excerpt = (message) =>
  stripVTControlCharacters(message)
    .split('\n')
    .slice(0, 30)
    .map((line) => `    ${line.slice(0, 240)}`)
    .join('\n')

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`
/** A title as a pattern of vitest, in a form that make and a shell pass on. */
const pattern = (title) => title.replaceAll(/[^\w ,:;=/-]+/g, '.*')

const failure = (file, title, message, again) => `${file}: ${title}\n${excerpt(message)}\n    again: ${again}`

/** A part of test-all ends within 50 minutes. */
const PART_LIMIT_MS = 50 * 60_000

/** A program that must end with 0, as one check. */
async function program(argv, again, limitMs) {
  const { status, output } = await run(argv[0], argv.slice(1), { limitMs })
  const failures =
    status === 0
      ? []
      : [`${argv.join(' ')}\n${excerpt(output.trim().split('\n').slice(-30).join('\n'))}\n    again: ${again}`]
  return { passed: status === 0 ? 1 : 0, failed: failures.length, skipped: 0, failures }
}

/** A program whose last line of output is `N passed, N failed`. */
async function summed(argv, { again, ...options }) {
  const { status, output } = await run(argv[0], argv.slice(1), options)
  const last = [...output.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1)
  const [passed, failed] = last === undefined ? [0, 0] : [Number(last[1]), Number(last[2])]
  const told = [...output.matchAll(/^FAIL .*\n.*/gm)].map(([lines]) => `${excerpt(lines).trim()}\n    again: ${again}`)
  const isSilent = status !== 0 && told.length === 0
  const failures = isSilent
    ? [`${argv.join(' ')}\n${excerpt(output.trim().split('\n').slice(-12).join('\n'))}\n    again: ${again}`]
    : told
  return { passed, failed: status === 0 ? failed : Math.max(failed, 1), skipped: 0, failures }
}

/** The unit tests and sweeps, in vitest's own processes. */
async function unit({ files = [], name } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'llm-do-test-counts-'))
  const counts = join(directory, 'counts.json')
  // Loaded as the lanes load it: the cache of modules knows a configuration by how it was loaded.
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--configLoader', 'runner']
  const words = [...vitest, '--project', 'unit', '--project', 'sweep', ...files]
  const env = { LLM_DO_TEST_REQUIRE: requiredHere()[isRoot ? 'root' : 'plain'], LLM_DO_TEST_COUNTS: counts }
  try {
    const { status, output } = await run(process.execPath, [...words, ...(name === undefined ? [] : ['-t', name])], {
      env,
    })
    return countsOf({ status, output, counts })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** A file that could not be loaded, an error outside of any test, a missing report: each counts as one failure. */
function countsOf({ status, output, counts }) {
  const tail = output.trim().split('\n').slice(-12).join('\n')
  if (!existsSync(counts))
    return { passed: 0, failed: 1, skipped: 0, failures: [`vitest wrote no report\n${excerpt(tail)}`] }
  const report = JSON.parse(readFileSync(counts, 'utf8'))
  const failures = report.testResults.filter(({ status }) => status === 'failed').flatMap(failuresOf)
  if (failures.length === 0 && status !== 0)
    failures.push(`vitest ended with ${status} although no test failed\n${excerpt(tail)}`)
  return {
    passed: report.numPassedTests,
    failed: failures.length,
    skipped: report.numPendingTests + report.numTodoTests,
    failures,
  }
}

function failuresOf({ name, message, assertionResults }) {
  const file = relative(checkout, name)
  const tests = assertionResults.filter(({ status }) => status === 'failed')
  if (tests.length === 0) return [failure(file, 'could not be loaded', message, `make unit FILE=${file}`)]
  return tests.map(({ fullName, failureMessages }) =>
    failure(file, fullName, failureMessages.join('\n'), `make unit FILE=${file} NAME=${quoted(pattern(fullName))}`),
  )
}

/** Counts of one file that ran in a lane. A file that reports nothing counts as one failure. */
function countsOfFile({ file, user, tests, errors }) {
  const again = (title) => `make test FILE=${file}${title === undefined ? '' : ` NAME=${quoted(pattern(title))}`}`
  const of = tests.filter(({ state }) => state === 'failed')
  const failures = [
    ...of.map(({ title, errors }) => failure(`${file} (${user})`, title, errors.join('\n'), again(title))),
    ...errors.map((message) => failure(`${file} (${user})`, 'outside of its tests', message, again())),
  ]
  const passed = tests.filter(({ state }) => state === 'passed').length
  if (passed + of.length + errors.length === 0 && tests.every(({ state }) => state !== 'skipped'))
    failures.push(failure(`${file} (${user})`, 'has no test', '', again()))
  return { passed, failed: failures.length, skipped: tests.length - passed - of.length, failures }
}

export const sumOf = (counts) =>
  counts.reduce(
    (sum, { passed, failed, skipped, failures }) => ({
      passed: sum.passed + passed,
      failed: sum.failed + failed,
      skipped: sum.skipped + skipped,
      failures: [...sum.failures, ...failures],
    }),
    { passed: 0, failed: 0, skipped: 0, failures: [] },
  )

const leftBehind = (words) => ({
  file: 'tests',
  user: 'root',
  seconds: 0,
  counts: {
    passed: 0,
    failed: 1,
    skipped: 0,
    failures: [`processes that a test left behind:\n${excerpt(words.join('\n'))}`],
  },
})

/** System tests of these files, by both users at once. @returns counts for each user, and the files with their times */
export async function system(files, { name, isDeep, times = 1, onFile } = {}) {
  const jobs = Array.from({ length: times }, () => jobsOf(files, name)).flat()
  const { path: directory, remove } = makeRunDirectory()
  const results = []
  try {
    const left = await runSystem(jobs, {
      directory,
      require: requiredHere({ isDeep }),
      onResult: (result) => {
        const counts = countsOfFile(result)
        results.push({ ...result, counts })
        onFile?.({ ...result, counts, done: results.length, of: jobs.length })
      },
    })
    if (left.length > 0 && !isStopping()) results.push(leftBehind(left))
  } finally {
    remove()
  }
  keepTimes(results)
  return results
}

const make = (target) => program(['make', '--no-print-directory', target], `make ${target}`)

/** Stages without a sandbox. The analyzers run in parallel with everything, on the processor time that the other stages leave. */
export const STAGES = {
  lint: { title: 'lint and format', run: () => make('lint') },
  types: { title: 'the TypeScript compiler over sources and tests', run: () => make('types') },
  analysis: {
    title: 'the static analyzers of gcc and clang',
    run: (words = []) =>
      summed(['nice', '-n', '19', join(checkout, 'scripts/analyze'), ...words], {
        again: 'make analyze',
        limitMs: PART_LIMIT_MS,
      }),
  },
  native: {
    title: 'units of the native code',
    run: () => summed(['make', '--no-print-directory', 'native-unit'], { again: 'make native-unit' }),
  },
  unit: { title: 'unit tests and sweeps', run: unit },
  mutants: {
    title: 'one wall broken at a time: its test must fail',
    run: (names = []) =>
      summed([process.execPath, 'scripts/mutants.mjs', ...names], {
        again: 'make mutants ONLY=NAME',
        limitMs: PART_LIMIT_MS,
      }),
  },
  vm: {
    title: 'a virtual machine with full cgroup v2 and systemd',
    run: () => summed([join(checkout, 'tests/vm/run')], { again: 'make test-all PART=vm', limitMs: PART_LIMIT_MS }),
  },
  fuzz: {
    title: 'parsers of the native code under libFuzzer',
    run: (minutes) => program(['scripts/fuzz', `${minutes}`], 'make fuzz', PART_LIMIT_MS),
  },
  soak: {
    title: 'random attacks and kills, with a look at the host after each',
    run: (minutes) =>
      program(['make', '--no-print-directory', 'soak', `MINUTES=${minutes}`], 'make soak', PART_LIMIT_MS),
  },
}
