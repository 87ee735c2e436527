/**
 * Every limit for one caller, on the rung this caller should get. Run as `cases.mjs JSON` with
 * {caller, by: {memory, pids, cpus, io?}, parent?, cgroupParent?, engine?, few?, fix?, ioFix?}.
 * The machine is emulated and slow: nothing here looks at a clock, only at counters, reasons and what is left. But for rates: what
 * they hold back takes a known time at least, however slow the machine is.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { exec, plan } from '/job/dist/index.js'

/** Bytes. */
const CHARGE_SLACK = 2 * 64 * 4096

const expected = JSON.parse(process.argv[2])
const MIB = 2 ** 20
const KERNEL = expected.by.memory === 'cgroup2'

/** Processes that the chain adds to the command's own: init and the engine's monitor, or init alone once the sandbox stands. */
const CHAIN = expected.engine === 'bwrap' ? 2 : 1
const CHAIN_AT_FIRST = 2
const PIDS = 16

const [REFUSED, SHARE] = KERNEL ? ['pids', 0.2] : ['exit', 1]
/** `kernel`: only a memory controller sees this kind of memory. `few`: worth repeating for every caller. */
const CASES = [
  { title: 'a memory bomb', way: 'memory', limit: 'memory', reason: 'memory', few: true },
  { title: 'a memory bomb in a grandchild', way: 'grandchild', limit: 'memory', reason: 'memory' },
  { title: 'a memory hog that ignores every signal', way: 'deaf', limit: 'memory', reason: 'memory' },
  { title: 'a filler of the scratch file system', way: 'scratch', limit: 'memory', reason: 'memory' },
  { title: '1000 full pipes', way: 'pipes', limit: 'memory', memory: '32m', reason: 'memory', kernel: true },
  { title: 'detached System V segments', way: 'segments', limit: 'memory', reason: 'memory', kernel: true },
  { title: 'a program that is refused more processes', way: 'workers', limit: 'pids', reason: REFUSED, few: true },
  { title: 'a fork bomb', way: 'bomb', limit: 'pids', timeout: '3s', reason: 'timeout' },
  { title: 'a tree that stopped itself', way: 'stopped', limit: 'timeout', timeout: '2s', reason: 'timeout' },
  { title: 'a command that never ends', way: 'forever', limit: 'timeout', timeout: '1s', reason: 'timeout' },
  { title: 'too much processor time', way: 'spin', limit: 'cpuTime', cpuTime: '300ms', reason: 'cpu-time', few: true },
  { title: 'a need of more than its share', way: 'spin-a-while', limit: 'cpus', cpu: SHARE, reason: 'exit', few: true },
  { title: 'a kill by another user', way: 'killed', limit: 'none', reason: 'signal' },
]

const cwd = mkdtempSync('/tmp/suite-')
// This kernel cannot idmap a tmpfs, so as root the command is "other" in its workspace.
chmodSync(cwd, 0o755)
const layerOf = (resources, { zones = [], bestEffort = false }) => ({
  layer: 'flag',
  source: 'command line',
  directory: cwd,
  values: {
    zones: [{ name: 'guest', hostPath: '/job/tests/vm/guest', mode: 'ro' }, ...zones],
    resources,
    bestEffort,
    ...(expected.cgroupParent ? { cgroupParent: expected.cgroupParent } : {}),
    ...(expected.engine ? { engine: expected.engine } : {}),
  },
})

function optionsOf({ way, memory = '64m', timeout = '60s', cpu = 2, cpuTime, rates = {}, ...more }) {
  const resources = {
    ...{ memory, pids: PIDS, timeout, cpu, tmp: '512m', shm: '512m', ...rates },
    ...(cpuTime ? { cpuTime } : {}),
  }
  return { command: ['/guest/hog', way], layers: [layerOf(resources, more)], cwd, mode: 'capture' }
}

const textOf = (file) => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // the run, and its group, may be over at any moment
  }
}

const groupsBelow = (parent) =>
  parent ? readdirSync(parent).filter((name) => /^llm-do-(?!exec\.service)/.test(name)) : []

/** Looks at the run's own group while it lives. */
function watchGroup(parent) {
  const seen = { throttled: 0, settings: '', rates: '' }
  const observe = () => {
    for (const name of groupsBelow(parent)) {
      const directory = `${parent}/${name}`
      seen.throttled = Math.max(
        seen.throttled,
        Number(/^nr_throttled (\d+)$/m.exec(textOf(`${directory}/cpu.stat`))?.[1] ?? 0),
      )
      // Read first: a group with a process in it must have had all its limits before.
      const inhabited = textOf(`${directory}/cgroup.procs`) !== ''
      const rates = textOf(`${directory}/io.max`).trim()
      if (inhabited && rates !== '') seen.rates = rates
      const settings = ['memory.max', 'memory.swap.max', 'memory.oom.group', 'pids.max', 'cpu.max'].map((file) =>
        textOf(`${directory}/${file}`).trim(),
      )
      if (inhabited && settings.every(Boolean)) seen.settings = settings.join(' ')
    }
  }
  const timer = setInterval(observe, 20)
  return () => {
    clearInterval(timer)
    return seen
  }
}

const isHog = (pid) =>
  textOf(`/proc/${pid}/comm`).trim() === 'hog' && !/^State:\s*Z/m.test(textOf(`/proc/${pid}/status`))
const hogs = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isHog(name))

const bytesOf = (size) => Number.parseInt(size, 10) * MIB

const SETTINGS = new RegExp(`^\\d+ 0 1 (${PIDS + CHAIN_AT_FIRST}|${PIDS + CHAIN}) \\d+ 100000$`)

/** Problems of a run, in words. */
function problemsOf(one, { result, seen }) {
  const problems = []
  const claim = (holds, words) => holds || problems.push(words)
  claim(result.reason === one.reason, `reason ${result.reason}, expected ${one.reason}`)
  for (const name of ['memory', 'pids', 'cpus']) {
    const by = result.limits[name]?.by
    claim(by === expected.by[name], `${name} held by ${by}, expected ${expected.by[name]}`)
  }
  const cap = bytesOf(one.memory ?? '64m')
  // A watchdog sees the tree only every 50 ms and an emulated machine is late at that: only the kernel is held to the number.
  // The kernel charges in batches and lets a charge that may not fail go over for a moment (cgroup-v2.rst, memory.max): a run
  // peaked one page above. One batch (MEMCG_CHARGE_BATCH, 64 pages) on each of the machine's two processors is its bound.
  if (KERNEL) claim(result.usage.peakMemory <= cap + CHARGE_SLACK, `peak ${result.usage.peakMemory} above ${cap}`)
  if (one.limit === 'memory')
    claim(result.usage.peakMemory >= cap / 2, `peak ${result.usage.peakMemory} far below the limit`)
  if (KERNEL && one.limit === 'pids')
    claim(result.usage.peakPids >= 16 && result.usage.peakPids <= 18, `peak of ${result.usage.peakPids} processes`)
  if (!KERNEL && one.way === 'workers') {
    claim(
      result.hints.some((hint) => hint.includes('had all 16 processes')),
      `no hint about processes: ${result.hints}`,
    )
  }
  if (KERNEL && one.limit === 'cpus') claim(seen.throttled > 0, 'never throttled')
  if (KERNEL && seen.settings !== '') claim(SETTINGS.test(seen.settings), `settings ${seen.settings}`)
  claim(groupsBelow(expected.parent).length === 0, `groups left: ${groupsBelow(expected.parent)}`)
  claim(hogs().length === 0, `processes left: ${hogs()}`)
  if (one.reason !== 'exit' && one.reason !== 'signal') claim(result.hints.length > 0, 'no hint which limit to raise')
  return problems
}

async function runCase(one) {
  const stopWatching = watchGroup(expected.parent)
  const result = await exec(optionsOf(one))
  const problems = problemsOf(one, { result, seen: stopWatching() })
  return {
    title: `${expected.caller}: ${one.title} ends with reason ${one.reason}, nothing left`,
    ok: problems.length === 0,
    detail: `${problems.join('; ')} ${problems.length > 0 ? JSON.stringify(result) : ''}`,
  }
}

async function checkParent() {
  const { cgroupParent } = await plan(optionsOf({ way: 'memory' }))
  const ok = cgroupParent === expected.parent
  return {
    title: `${expected.caller}: runs are placed below ${expected.parent ?? 'no group'}`,
    ok,
    detail: `got ${cgroupParent}`,
  }
}

/** The command itself: passes where the kernel holds the limits, refuses and says how to get there where it does not. */
function checkRequire() {
  const parent = expected.cgroupParent ? ['--cgroup-parent', expected.cgroupParent] : []
  const words = ['exec', '--require', 'memory-limit,pids-limit,cpus-limit', ...parent, '--', 'true']
  const { status, stderr } = spawnSync('/job/bin/llm-do', words, { cwd, encoding: 'utf8' })
  const ok = KERNEL
    ? status === 0
    : status === 125 && stderr.includes('memory-limit') && stderr.includes(expected.fix ?? '')
  return {
    title: `${expected.caller}: --require memory-limit,pids-limit,cpus-limit ${KERNEL ? 'passes' : 'refuses with a fix'}`,
    ok,
    detail: `${status} ${stderr}`,
  }
}

/** Whichever program makes the namespaces and holds the limit: the command has as many processes as were asked for, and not one more. */
async function checkProcesses() {
  const options = [
    ...(expected.cgroupParent ? ['--cgroup-parent', expected.cgroupParent] : []),
    ...(expected.engine ? ['--engine', expected.engine] : []),
    ...['--pids', `${PIDS}`, '--ro', '/job/tests/vm/guest:/guest'],
  ]
  const run = spawn('/job/bin/llm-do-exec', [...options, '--', '/guest/hog', 'count'], { cwd })
  const output = { stdout: '', stderr: '' } // The shell reports a refused process on stderr.
  for (const stream of Object.keys(output)) run[stream].on('data', (bytes) => (output[stream] += bytes))
  const limits = () => groupsBelow(expected.parent).map((name) => textOf(`${expected.parent}/${name}/pids.max`).trim())
  const last = `${PIDS + CHAIN}`
  for (let left = 1000; KERNEL && left > 0 && !limits().includes(last); left--) await sleep(20)
  run.stdin.end('go\n')
  await once(run, 'close')
  return {
    title: `${expected.caller}: --pids ${PIDS} is ${PIDS} processes`,
    ok: output.stdout === `${PIDS}\n`,
    detail: JSON.stringify(output),
  }
}

/* ---- rates of disks ---- */

const MOVED = 2 * MIB
/** The guest moves 2 MiB in 32 blocks; both rates let 1 MiB a second through, the kernel's first slice (100 ms) aside. */
const RATES = [
  { way: 'write', rates: { writeBps: '1m' }, says: 'wbps=1048576' },
  { way: 'read', rates: { readIops: 16 }, says: 'riops=16' },
]
const LEAST_MS = 1500

/** On the root disk: the other places of this machine are in memory. */
function withDisk(check) {
  const directory = mkdtempSync('/var/tmp/suite-')
  const zones = [{ name: 'out', hostPath: directory, mode: 'rw' }]
  return check(zones).finally(() => rmSync(directory, { recursive: true }))
}

const checkRates = () =>
  withDisk(async (zones) => {
    const checks = []
    for (const { way, rates, says } of RATES.slice(0, expected.engine ? undefined : 1)) {
      const free = await exec(optionsOf({ way, zones }))
      const stopWatching = watchGroup(expected.parent)
      const held = await exec(optionsOf({ way, zones, rates }))
      const { rates: seen } = stopWatching()
      const ok =
        free.ok &&
        held.ok &&
        held.limits.io.by === 'cgroup2' &&
        [free, held].every(({ usage }) => usage[`${way}Bytes`] >= MOVED) &&
        seen.includes(says) &&
        held.durationMs >= LEAST_MS &&
        free.durationMs < held.durationMs / 2
      checks.push({
        title: `${expected.caller}: a program that would ${way} more than its rate is slowed down, and only with the rate`,
        ok,
        detail: `${free.durationMs} ms, with the rate ${held.durationMs} ms; io.max ${seen}; ${JSON.stringify([free, held])}`,
      })
    }
    return checks
  })

const checkNoRates = () =>
  withDisk(async (zones) => {
    const request = { way: 'write', zones, rates: { writeBps: '1m' } }
    const refused = await exec(optionsOf(request)).then(
      () => 'it ran',
      ({ code, message, hint }) => `${code} ${message} ${hint}`,
    )
    const left = await exec(optionsOf({ ...request, bestEffort: true }))
    const isUncounted = !('readBytes' in left.usage || 'writeBytes' in left.usage)
    const isRefused =
      refused.startsWith('NO_BACKEND') && refused.includes('io-limit') && refused.includes(expected.ioFix ?? '')
    const isLeftOut =
      left.ok && left.limits.io.by === 'none' && left.warnings.some((warning) => warning.includes('limit of io'))
    return [
      {
        title: `${expected.caller}: a rate that nothing holds is refused with a fix, and left out with --best-effort`,
        ok: isRefused && isLeftOut && isUncounted,
        detail: `${refused}; ${JSON.stringify(left)}`,
      },
    ]
  })

const print = (check) => console.log(JSON.stringify(check))
const failed = (title) => (error) => ({
  title: `${expected.caller}: ${title}`,
  ok: false,
  detail: `${error.message} ${error.hint ?? error.stack}`,
})

print(await checkParent().catch(failed('a plan can be made')))
const fitting = CASES.filter(({ kernel, few }) => (KERNEL || !kernel) && (few || !expected.few))
for (const one of fitting) print(await runCase(one).catch(failed(one.title)))
print(checkRequire())
print(await checkProcesses().catch(failed('processes can be counted')))
if (expected.by.io || expected.ioFix) {
  const checks = await (expected.by.io ? checkRates() : checkNoRates()).catch((error) => [
    failed('rates of disks')(error),
  ])
  checks.forEach(print)
}
