// Shows by trying what a command can do under each runner: bench/probes.c is the command, and the host checks the results.
// Outside of any sandbox the same program is the control: what does not work there says nothing about a wall.
import { spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { countLeftovers, growthSince } from './leftovers.mjs'
import { BOUNDS } from './peers.mjs'
import { makeProgram } from './stopwatch.mjs'

/** Column -> the attempts that decide it, as probes.c and this file call them. */
export const COLUMNS = {
  'reads outside': ['read-home', 'read-other'],
  'writes outside': ['write-home', 'write-other'],
  'host processes': ['see-processes', 'signal'],
  'host sockets': ['loopback', 'abstract-socket', 'socket', 'shared-memory'],
  'kernel calls': ['user-namespace', 'bpf', 'perf', 'keyring', 'io-uring', 'userfaultfd'],
  privileges: ['setuid', 'mount', 'device'],
  'kernel files': ['sysctl', 'kernel-addresses', 'kernel-log', 'kernel-memory'],
  terminal: ['terminal'],
  'fd, variables': ['descriptor', 'variable'],
  memory: ['memory'],
  processes: ['processes'],
  deadline: ['deadline'],
  daemons: ['daemon'],
  'leaves nothing': ['leftovers'],
}

const OTHER_USER = 65534
/** A runner that waits for what its command has left is ended; LIFETIME_SECONDS of probes.c is longer. */
const RUN_MS = 15_000
const DEADLINE_SECONDS = 1
/** The kernel ends processes after the runner has. */
const END_MS = 3000

/* ---- runs ---- */

/** With a secret open at descriptor 9 and another one in the environment, as a careless caller has them. */
function runProbe({ stage, target, runner }, words, { seconds, isTerminal = false } = {}) {
  const argv = runner.argv(['./probes', ...words], seconds === undefined ? {} : { seconds })
  const bounded =
    seconds === undefined || runner.hasDeadline ? argv : ['timeout', '-s', 'KILL', String(seconds), ...argv]
  const careless = ['sh', '-c', 'exec 9<"$0"; exec "$@"', target.homeFile, ...bounded]
  const quoted = careless.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const [program, ...rest] = isTerminal ? ['script', '-qec', quoted, '/dev/null'] : careless
  const env = { ...stage.env, ...runner.env, LLM_DO_PROBED_SECRET: target.token }
  const child = spawn(program, rest, { cwd: stage.cwd, env, stdio: ['ignore', 'pipe', 'ignore'], timeout: RUN_MS })
  const chunks = []
  child.stdout.on('data', (chunk) => chunks.push(chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    // Not `close`: what a run has left may hold the pipe.
    child.once('exit', (status) => setImmediate(() => resolve({ status, stdout: Buffer.concat(chunks).toString() })))
  })
}

const answersOf = ({ stdout }) =>
  Object.fromEntries(
    [...stdout.matchAll(/^([a-z-]+) (open|shut)\r?$/gm)].map(([, name, answer]) => [name, answer === 'open']),
  )

/* ---- what is attacked ---- */

function makeTarget() {
  const name = `llmdo${randomBytes(4).toString('hex')}`
  const token = `token-${randomBytes(8).toString('hex')}`
  const home = userInfo().homedir
  const other = mkdtempSync('/var/tmp/llm-do-bench-other-')
  const files = { homeFile: join(home, `.${name}`), otherFile: join(other, 'secret') }
  for (const file of Object.values(files)) writeFileSync(file, token, { mode: 0o600 })
  if (process.getuid() === 0) for (const path of [other, files.otherFile]) chownSync(path, OTHER_USER, OTHER_USER)
  const remove = () => {
    for (const path of [files.homeFile, other, join(home, `.${name}-new`)])
      rmSync(path, { recursive: true, force: true })
  }
  return { ...files, name, token, remove, homeNew: join(home, `.${name}-new`), otherNew: join(other, 'new') }
}

/** A process of the host with its sockets and its shared memory. */
async function startHost({ stage, target }) {
  const socket = join(target.otherFile, '../socket')
  const key = randomInt(1, 2 ** 31)
  const program = join(stage.cwd, 'probes')
  const child = spawn(program, ['host', target.name, socket, target.token, String(key)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const port = await new Promise((resolve, reject) => {
    child.stdout.once('data', (data) => resolve(data.toString().trim()))
    child.once('exit', () => reject(new Error('what is to be attacked did not start')))
  })
  const words = { process: target.name, pid: child.pid, port, socket, key, token: target.token }
  const hasEnded = () => Promise.race([ended.then(() => true), sleep(200, false)])
  return {
    words: {
      ...words,
      'home-file': target.homeFile,
      'other-file': target.otherFile,
      'home-new': target.homeNew,
      'other-new': target.otherNew,
    },
    hasEnded,
    stop: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

const took = (path) => {
  const isThere = existsSync(path)
  rmSync(path, { force: true })
  return isThere
}

/** All attempts of one process; files that were written and the signal are judged by the host. */
async function tryAttempts(site) {
  const host = await startHost(site)
  try {
    const words = Object.entries(host.words).map(([name, value]) => `${name}=${value}`)
    const answers = answersOf(await runProbe(site, ['try', ...words]))
    if (answers.signal === undefined) throw new Error('the probes did not run to their end')
    const { target } = site
    const seen = {
      'write-home': took(target.homeNew),
      'write-other': took(target.otherNew),
      signal: await host.hasEnded(),
    }
    return { ...answers, ...seen }
  } finally {
    await host.stop()
  }
}

/* ---- bounds, and what stays ---- */

/** A command that was killed on the way has not said that it could. */
async function tryBound(site, name, words, options) {
  const answers = answersOf(await runProbe(site, words, options))
  return { [name]: answers[name] === true }
}

const processesCalled = (name) =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === name
    } catch {
      return false
    }
  })

/** @returns whether one that was left is still there; it is ended */
async function staysAlive(name) {
  for (const end = Date.now() + END_MS; Date.now() < end; await sleep(50))
    if (processesCalled(name).length === 0) return false
  for (const pid of processesCalled(name)) process.kill(Number(pid), 'SIGKILL')
  return true
}

async function tryDaemons(site) {
  const { name } = site.target
  await runProbe(site, ['daemon', `${name}d`])
  const daemon = await staysAlive(`${name}d`)
  await runProbe(site, ['linger', `${name}l`], { seconds: DEADLINE_SECONDS })
  return { daemon, deadline: await staysAlive(`${name}l`) }
}

/** Others' runs on the same machine come and go; what is left each time is the runner's. */
const LEFTOVER_TRIES = 3

async function tryLeftovers(site) {
  const names = () => readdirSync(site.stage.cwd).sort().join('\n')
  for (let time = 0; time < LEFTOVER_TRIES; time += 1) {
    const [before, files] = [countLeftovers(site.stage.env), names()]
    await runProbe(site, ['processes', '1'])
    const { sum } = await growthSince(before, site.stage.env)
    if (sum === 0 && files === names()) return { leftovers: false }
  }
  return { leftovers: true }
}

/** @returns attempt -> whether it works there */
async function attemptAll(site) {
  return {
    ...(await tryAttempts(site)),
    ...(await tryBound(site, 'terminal', ['terminal'], { isTerminal: true })),
    ...(await tryBound(site, 'memory', ['memory', String(BOUNDS.memory * 2)])),
    ...(await tryBound(site, 'processes', ['processes', String(BOUNDS.processes * 2)])),
    ...(await tryDaemons(site)),
  }
}

/* ---- the judgement ---- */

const direct = { argv: (words) => words }

const verdict = (isOpen, worksOutside) => {
  if (isOpen) return 'open'
  return worksOutside ? 'held' : 'unknown'
}

/**
 * @param runners name -> `argv(words, { seconds })`, `env`, `hasDeadline`, `before` (awaited ahead of its runs)
 * @returns `found`: name -> attempt -> held, open, or unknown where it does not work outside either; `failed`: name -> why nothing is known of it
 */
export async function findProtections(stage, runners, onRunner = () => undefined) {
  const target = makeTarget()
  copyFileSync(makeProgram('probes'), join(stage.cwd, 'probes'))

  try {
    const outside = { ...(await attemptAll({ stage, target, runner: direct })), leftovers: true }
    const [found, failed] = [{}, {}]
    for (const [name, runner] of Object.entries(runners)) {
      onRunner(name)
      try {
        found[name] = await verdictsOf({ stage, target, runner }, outside)
      } catch (error) {
        failed[name] = error.message
      }
    }
    return { found, failed }
  } finally {
    target.remove()
    rmSync(join(stage.cwd, 'probes'), { force: true })
  }
}

async function verdictsOf(site, outside) {
  await site.runner.before?.()
  const inside = { ...(await attemptAll(site)), ...(await tryLeftovers(site)) }
  return Object.fromEntries(
    Object.keys(outside).map((attempt) => [attempt, verdict(inside[attempt], outside[attempt])]),
  )
}

/** One cell: `yes` where all of its attempts were held, else how many, and which worked. */
export function cellOf(found, attempts) {
  const known = attempts.filter((name) => found[name] !== 'unknown')
  const open = known.filter((name) => found[name] === 'open')
  if (known.length === 0) return '?'
  if (open.length === 0) return 'yes'
  return open.length === known.length ? 'no' : `${known.length - open.length} of ${known.length}`
}
