// Runs the stages of `make test` and adds up what they found.
//
//   node scripts/test.mjs [STAGE...]      without names: all
//
// Stages run one after another, and within a stage of system tests three test files at a time (vitest.config.ts). Those of its files
// that count what a user's runs leave come after it, one by one, beside the next stage, which is another user's. The analyzers run
// beside all, with what the stages leave of the processors. What runs beside shows what it found when it ends.
//
// A stage that fails does not keep the next one from running. The last line is `N passed, N failed` over all stages; the exit
// status is 0 only when nothing failed and something passed.
//
// As root, the checkout is copied to a place that a plain user can reach (it may live below a private directory) and owns, and the
// tests on real components run there once more as a user without a name, groups or privileges. The plain user of the stage of root is
// another one with another copy: limits of processes count those of a user. The copies are removed at the end.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { constants as system, tmpdir } from 'node:os'
import { delimiter, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const checkout = dirname(dirname(fileURLToPath(import.meta.url)))
const isRoot = process.getuid?.() === 0

/** Ids that no distribution gives to anybody; without an entry in passwd, which is the harder case. The first as in tests/support/users.ts. */
const PLAIN_ID = 65533
const PLAIN_ID_OF_STAGE = 65532
/** Where Debian keeps docker's, nft's and e2fsprogs' programs. */
const PATH = `${process.env.PATH}${delimiter}/usr/local/sbin:/usr/sbin:/sbin`

/** What must be there in CI: a test that lacks it fails there instead of being skipped (tests/support/needs.ts). */
const REQUIRED = [
  'bwrap',
  'unshare',
  'docker',
  'podman',
  'vm',
  'wasi',
  'aarch64-cc',
  'libfuzzer',
  'zsh',
  'fish',
  'network-clients',
  'chromium',
  'postgres',
  ...['strace', 'python', 'git', 'gcc', 'ssh-agent', 'plain-user', 'kernel-headers', 'newer-nodes'],
]
/** What a plain user can be asked to have: the docker daemon and runc belong to root, and other nodes are in root's checkout only. */
const REQUIRED_OF_A_USER = ['bwrap', 'unshare', 'wasi', 'aarch64-cc', 'strace', 'python', 'git', 'gcc', 'ssh-agent']

/** Far above what a stage takes; a test that spins for ever must not hold CI for ever. */
const STAGE_LIMIT_MS = 75 * 60_000

const required = (words) => process.env.LLM_DO_TEST_REQUIRE ?? (process.env.CI === 'true' ? words.join(',') : '')

/** A file of system tests has a processor for 60 % of its time (user and system time of the thirty longest, one by one). */
const WORKERS = '3'

const SYSTEM = ['--project', 'system', '--project', 'system-alone']
const ONE_BY_ONE = ['--project', 'system-one-by-one']

const STAGES = [
  {
    name: 'analysis',
    title: 'the static analyzers of gcc and clang over the native code',
    isBeside: true,
    run: () => summed({ file: 'nice', argv: ['-n', '19', join(checkout, 'scripts/analyze')], isShownAtItsEnd: true }),
  },
  {
    name: 'native',
    title: 'the units of the native code',
    run: () => summed({ file: 'make', argv: ['--no-print-directory', 'native-unit'] }),
  },
  {
    name: 'unit',
    title: 'tests of pure functions, exhaustive ones too',
    run: () => {
      const env = { LLM_DO_TEST_REQUIRE: required(isRoot ? REQUIRED : REQUIRED_OF_A_USER) }
      return vitest({ words: ['--project', 'unit', '--project', 'sweep'], env })
    },
  },
  {
    name: 'root',
    title: 'tests on real components, as root',
    reasonToSkip: lacksRoot,
    plainId: PLAIN_ID,
    run: (given) => asRoot(SYSTEM, given),
  },
  {
    name: 'root, one by one',
    partOf: 'root',
    title: 'the tests that count what is left, as root',
    isBeside: true,
    reasonToSkip: lacksRoot,
    plainId: PLAIN_ID,
    run: (given) => asRoot(ONE_BY_ONE, { ...given, isShownAtItsEnd: true }),
  },
  {
    name: 'user',
    title: `tests on real components, as ${isRoot ? 'a plain' : 'this'} user`,
    plainId: PLAIN_ID_OF_STAGE,
    run: (given) => asUser(SYSTEM, given),
  },
  {
    name: 'user, one by one',
    partOf: 'user',
    title: `the tests that count what is left, as ${isRoot ? 'a plain' : 'this'} user`,
    isBeside: true,
    plainId: PLAIN_ID_OF_STAGE,
    run: (given) => asUser(ONE_BY_ONE, { ...given, isShownAtItsEnd: true }),
  },
  {
    name: 'vm',
    title: 'a virtual machine with full cgroup v2 and systemd',
    reasonToSkip: () => (existsSync(join(checkout, 'tests/vm/run')) ? lacksMachine() : 'there is no tests/vm/run'),
    run: () => summed({ file: join(checkout, 'tests/vm/run'), env: { LLM_DO_TEST_REQUIRE: required(REQUIRED) } }),
  },
]

function lacksRoot() {
  return isRoot ? undefined : 'this is not root'
}

/** The tests of some projects as root; those that need a plain user's checkout find one. */
function asRoot(words, { plain, stages, ...more }) {
  const isRunAsPlainToo = stages.some(({ name }) => name === 'user')
  const env = {
    LLM_DO_TEST_REQUIRE: required(REQUIRED),
    LLM_DO_TEST_PLAIN_CHECKOUT: plain.checkout,
    ...(isRunAsPlainToo && { LLM_DO_TEST_PLAIN_STAGE: 'user' }),
  }
  return vitest({ words, env, ...more })
}

/** The same as a plain user, or as the user of this process. */
function asUser(words, { plain, stages, ...more }) {
  const isRunAsRootToo = isRoot && stages.some(({ name }) => name === 'root')
  const env = {
    LLM_DO_TEST_REQUIRE: required(REQUIRED_OF_A_USER),
    ...(isRunAsRootToo && { LLM_DO_TEST_ROOT_STAGE: 'root' }),
  }
  return vitest({ words, env, plain, ...more })
}

/** Where CI requires the machine, the stage runs and says itself what is missing. */
function lacksMachine() {
  if (required(REQUIRED).split(',').includes('vm')) return undefined
  const isMissing = (program) => !PATH.split(delimiter).some((directory) => existsSync(join(directory, program)))
  const missing = ['qemu-system-x86_64', 'mmdebstrap'].filter(isMissing)
  return missing.length === 0 ? undefined : `no ${missing.join(', ')} on PATH`
}

/** What make tells its children must not reach a make that a test starts. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(MAKEFLAGS|MAKELEVEL|MFLAGS|MAKEOVERRIDES|GNUMAKEFLAGS)$/.test(name),
  ),
)

const print = (text) => process.stdout.write(`test: ${text}\n`)

/** Starts a program, shows all it prints, and resolves to its exit status and standard output. Ctrl-C and TERM reach it. */
function show({ file, argv = [], cwd = checkout, env, isShownAtItsEnd = false }) {
  return new Promise((resolve) => {
    const child = spawn(file, argv, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const forward = (signal) => child.kill(signal)
    const output = []
    const held = []
    const write = (chunk) => (isShownAtItsEnd ? held.push(chunk) : process.stdout.write(chunk))
    const limit = setTimeout(() => {
      print(`stopped after ${STAGE_LIMIT_MS / 60_000} minutes`)
      child.kill('SIGTERM')
    }, STAGE_LIMIT_MS)
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, forward)
    child.stdout.on('data', (chunk) => {
      output.push(chunk)
      write(chunk)
    })
    child.stderr.on('data', write)
    const end = (status) => {
      clearTimeout(limit)
      process.stdout.write(Buffer.concat(held))
      for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, forward)
      resolve({ status, stdout: Buffer.concat(output).toString() })
    }
    child.on('error', (error) => {
      print(`${file}: ${error.message}`)
      end(1)
    })
    child.on('close', (code) => end(code ?? 1))
  })
}

/** Runs vitest, as a plain user in that user's copy when one is given, and counts by its JSON report. */
async function vitest({ words, env, plain, isShownAtItsEnd }) {
  const directory = mkdtempSync(join(tmpdir(), 'llm-do-test-counts-'))
  if (plain !== undefined) chownSync(directory, plain.id, plain.id)
  const countsFile = join(directory, 'counts.json')
  const argv = ['node_modules/vitest/vitest.mjs', 'run', ...words]
  const program = {
    isShownAtItsEnd,
    file: process.execPath,
    argv,
    env: { ...environment, PATH, ...env, LLM_DO_TEST_COUNTS: countsFile, LLM_DO_TEST_WORKERS: WORKERS },
  }
  try {
    const { status } = await show(plain === undefined ? program : { ...program, ...plain.started(program) })
    return countsOf({ status, countsFile })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** A file that could not be loaded, an error outside of any test, a missing report: each counts as one failure, never as nothing. */
function countsOf({ status, countsFile }) {
  if (!existsSync(countsFile)) return { passed: 0, failed: 1, skipped: 0, failures: ['vitest wrote no report'] }
  const report = JSON.parse(readFileSync(countsFile, 'utf8'))
  const failures = report.testResults.flatMap(failuresOf)
  if (failures.length === 0 && status !== 0) failures.push(`vitest ended with ${status} although no test failed`)
  return {
    passed: report.numPassedTests,
    failed: failures.length,
    skipped: report.numPendingTests + report.numTodoTests,
    failures,
  }
}

const isFailed = ({ status }) => status === 'failed'

/** One text for each test of a file that failed, or for the file itself when it could not be loaded. */
function failuresOf(file) {
  const tests = file.assertionResults.filter(isFailed)
  if (!isFailed(file)) return []
  const name = relative(process.cwd(), file.name).replace(/^.*?(?=tests\/)/, '')
  if (tests.length === 0) return [`${name}\n${excerpt(file.message)}`]
  return tests.map(({ fullName, failureMessages }) => `${name}: ${fullName}\n${excerpt(failureMessages.join('\n'))}`)
}

/** A reader of a log sees its end first, and often nothing else: enough of a message to tell what was expected and what came. */
const excerpt = (message) =>
  message
    .split('\n')
    .slice(0, 12)
    .map((line) => `    ${line.slice(0, 240)}`)
    .join('\n')

/** Runs a program whose last line of output is `N passed, N failed`. */
async function summed({ env, ...program }) {
  const { status, stdout } = await show({ ...program, env: { ...environment, PATH, ...env } })
  const last = [...stdout.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1)
  const [passed, failed] = last === undefined ? [0, 0] : [Number(last[1]), Number(last[2])]
  const failures = [...stdout.matchAll(/^FAIL .*\n.*/gm)].map(([line]) => line)
  return { passed, failed: failed === 0 && status !== 0 ? 1 : failed, skipped: 0, failures }
}

/** A checkout and a home of the plain user's own. */
function makePlainUser(id) {
  const directory = mkdtempSync(join(tmpdir(), 'llm-do-test-plain-'))
  chmodSync(directory, 0o755)
  const user = {
    directory,
    checkout: join(directory, 'checkout'),
    home: join(directory, 'home'),
    runtime: join(directory, 'runtime'),
    bin: join(directory, 'bin'),
  }
  for (const directory of [user.checkout, user.home, user.runtime, user.bin]) mkdirSync(directory)
  const parts = readdirSync(checkout).filter((part) => part !== '.git' && part !== 'build')
  execFileSync('cp', ['-a', '--reflink=auto', ...parts.map((part) => join(checkout, part)), user.checkout])
  // With all by which make knows that nothing has to be made again, while other tests use it.
  const told = ['drivers', 'include', 'native.command', 'native.objects', 'arm64'].map((part) =>
    join(checkout, 'build', part),
  )
  mkdirSync(join(user.checkout, 'build'))
  execFileSync('cp', ['-a', ...told, join(user.checkout, 'build')])
  execFileSync('chown', ['-R', `${id}:${id}`, user.checkout, user.home, user.runtime])
  execFileSync('chmod', ['-R', 'a+rX', user.checkout])
  for (const directory of [user.home, user.runtime]) chmodSync(directory, 0o700)

  const asPlain = ['--reuid', `${id}`, '--regid', `${id}`, '--clear-groups', '--']
  const node =
    spawnSync('setpriv', [...asPlain, process.execPath, '--version']).status === 0
      ? process.execPath
      : copyOfNode(user.bin)
  const started = ({ argv, env }) => ({
    file: 'setpriv',
    argv: [...asPlain, node, ...argv],
    cwd: user.checkout,
    env: {
      ...plainEnvironment(env),
      PATH: [dirname(node), ...PATH.split(delimiter).filter(isOpenToAll)].join(delimiter),
      HOME: user.home,
      XDG_RUNTIME_DIR: user.runtime,
    },
  })
  return { id, checkout: user.checkout, started, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

/** Root's own places on PATH are none of a plain user's: a lookup there is denied, which is another answer than "not there". */
function isOpenToAll(directory) {
  if (!existsSync(directory)) return false
  const open = (statSync(directory).mode & 0o001) !== 0
  return open && (dirname(directory) === directory || isOpenToAll(dirname(directory)))
}

/** For a node that lives in root's home directory. */
function copyOfNode(directory) {
  const copy = join(directory, 'node')
  copyFileSync(process.execPath, copy, constants.COPYFILE_FICLONE)
  chmodSync(copy, 0o755)
  return copy
}

/** Nothing of root's environment but what steers the tests. */
function plainEnvironment(env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => /^(LLM_DO_TEST_\w+|CI|LANG|TERM|TZ)$/.test(name)))
}

const sumOf = (counts, key) => counts.reduce((sum, count) => sum + count[key], 0)

/** Runs a stage and returns what it counted. */
async function runStage(stage, { stages, plain }) {
  const begun = performance.now()
  print(`${stage.name}: ${stage.title}`)
  const count = await stage.run({ plain, stages })
  const seconds = Math.round((performance.now() - begun) / 1000)
  print(`${stage.name}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped, ${seconds} s`)
  return count
}

async function runStages(stages) {
  const interrupted = { by: undefined }
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (interrupted.by = signal))
  const plainUsers = new Map()
  const counts = []
  const beside = []
  try {
    // Before anything runs: vitest makes and removes files below node_modules, which a copy would trip over.
    const ids = new Set(stages.map(({ plainId }) => plainId).filter((id) => isRoot && id !== undefined))
    for (const id of ids) plainUsers.set(id, makePlainUser(id))
    for (const stage of stages) {
      const reason = stage.reasonToSkip?.()
      if (reason !== undefined) print(`${stage.name}: skipped, ${reason}`)
      else if (interrupted.by === undefined) {
        const counting = runStage(stage, { stages, plain: plainUsers.get(stage.plainId) })
        if (stage.isBeside) beside.push(counting)
        else counts.push(await counting)
      }
    }
    counts.unshift(...(await Promise.all(beside)))
  } finally {
    for (const user of plainUsers.values()) user.remove()
  }
  if (interrupted.by !== undefined) process.exit(128 + system.signals[interrupted.by])
  return counts
}

const requested = process.argv.slice(2)
const names = STAGES.filter(({ partOf }) => partOf === undefined).map(({ name }) => name)
const unknown = requested.filter((name) => !names.includes(name))
if (unknown.length > 0) {
  console.error(`test: no stage ${unknown.join(', ')}: expected ${names.join(', ')}`)
  process.exit(2)
}
const isRequested = ({ name, partOf = name }) => requested.length === 0 || requested.includes(partOf)
const counts = await runStages(STAGES.filter(isRequested))
for (const failure of counts.flatMap(({ failures }) => failures)) print(`failed: ${failure}`)
const [passed, failed] = [sumOf(counts, 'passed'), sumOf(counts, 'failed')]
process.stdout.write(`${passed} passed, ${failed} failed\n`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1
