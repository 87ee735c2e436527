// Tasks through BullMQ, or a fleet-server, and agents of this machine: a demonstration, a test of endurance, measurements.
//
//   node bench/fleet.mjs demo                                          a few tasks, with what became of them
//   node bench/fleet.mjs chaos [--http] [--tasks N] [--agents N] [--kills N] [--server-kills N] [--seed N] [--within SECONDS]
//                                                                      kill -9 of agents and of Redis (--http: of fleet-server) at random; fails
//                                                                      when a task is lost or ends twice, or something is left
//   node bench/fleet.mjs throughput [--tasks N] [--agents 1,2,4]       tasks a second, next to exec in a loop
//   node bench/fleet.mjs memory [--tasks N]                            what an agent holds, over many tasks
//
// Everything is in one temporary directory; every process is started here and ended here.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { loadavg, tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const QUEUE = 'llm-do'
/** Tasks of a killed agent begin again after this. */
const LEASE = '3s'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    tasks: { type: 'string' },
    agents: { type: 'string' },
    kills: { type: 'string', default: '3' },
    'server-kills': { type: 'string', default: '2' },
    http: { type: 'boolean', default: false },
    within: { type: 'string', default: '3600' },
    seed: { type: 'string', default: '1' },
    slots: { type: 'string', default: '2' },
  },
})

const directory = mkdtempSync(join(tmpdir(), 'llm-do-fleet.'))
const started = new Set()

function start(file, words, options = {}) {
  const child = spawn(file, words, { stdio: ['ignore', 'ignore', 'inherit'], ...options })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  started.add(child)
  ended.then(() => started.delete(child))
  return { child, ended }
}

/** Seeded, so that a failure can be had again (mulberry32). */
function randomFrom(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

function redisProgram() {
  const directories = (process.env.PATH ?? '').split(delimiter)
  const found = ['redis-server', 'redis-check-rdb']
    .flatMap((name) => directories.map((one) => join(one, name)))
    .find((file) => existsSync(file))
  if (found === undefined) throw new Error('no redis-server on PATH (hint: apt-get install redis-tools)')
  return found
}

/** Every write is on disk before it is answered, so a kill takes back nothing that was told. */
async function startRedis(port) {
  const words = ['--port', port, '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'yes']
  // Debian's redis-server is a link to redis-check-rdb, which looks at its name.
  const options = { argv0: 'redis-server' }
  const redis = start(
    redisProgram(),
    [...words, '--appendfsync', 'always', '--loglevel', 'warning'].map(String),
    options,
  )
  const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: null, retryStrategy: () => 50 })
  client.on('error', () => undefined)
  await client.ping()
  client.disconnect()
  return redis
}

/** They exist: without a home nothing is remembered from run to run. All that agents and servers write is below. */
const [HOME, STATE, TEMPORARY] = ['home', 'state', 'tmp'].map((name) => join(directory, name))
for (const one of [HOME, STATE, TEMPORARY]) mkdirSync(one)

function startCommand(words, { env = {}, stdio }) {
  const own = { PATH: process.env.PATH, HOME, XDG_STATE_HOME: STATE, TMPDIR: TEMPORARY, LANG: 'C.UTF-8' }
  return start(join(ROOT, 'bin/llm-do'), words, { env: { ...own, ...env }, stdio })
}

function startAgent(port, name, { quiet = true } = {}) {
  const words = [
    'agent',
    '--queue',
    `redis://127.0.0.1:${port}`,
    '--slots',
    values.slots,
    '--lease',
    LEASE,
    '--grace',
    '20s',
  ]
  return startCommand(words, { env: { WORKER_ID: name }, stdio: ['ignore', 'ignore', quiet ? 'ignore' : 'inherit'] })
}

async function openQueue(port) {
  const connection = { port, host: '127.0.0.1', maxRetriesPerRequest: null, retryStrategy: () => 50 }
  const queue = new Queue(QUEUE, { connection, streams: { events: { maxLen: 1_000_000 } } })
  queue.on('error', () => undefined)
  const client = new Redis(connection)
  client.on('error', () => undefined)
  return { queue, client, close: () => Promise.all([queue.close(), client.disconnect()]) }
}

const job = (index, command = `echo task ${index}`) => ({
  name: 'task',
  data: { command },
  opts: { jobId: `t${index}` },
})
const add = (queue, count, command) => queue.addBulk(Array.from({ length: count }, (_, index) => job(index, command)))

async function ended(queue) {
  const { completed = 0, failed = 0 } = await queue.getJobCounts('completed', 'failed')
  return { completed, failed }
}

async function untilEnded(queue, count, limitMs = 3_600_000) {
  const deadline = performance.now() + limitMs
  for (;;) {
    const counts = await ended(queue)
    if (counts.completed + counts.failed >= count) return counts
    if (performance.now() > deadline) throw new Error(`${JSON.stringify(counts)} of ${count} tasks have ended`)
    await sleep(50)
  }
}

async function stop({ child, ended: end }, signal = 'SIGTERM') {
  child.kill(signal)
  return await end
}

/** How often Redis has told of the end of each job. */
async function endsOf(client) {
  const ends = new Map()
  for (const [, fields] of await client.xrange(`bull:${QUEUE}:events`, '-', '+')) {
    const event = Object.fromEntries(
      Array.from({ length: fields.length / 2 }, (_, at) => fields.slice(2 * at, 2 * at + 2)),
    )
    if (['completed', 'failed'].includes(event.event)) ends.set(event.jobId, (ends.get(event.jobId) ?? 0) + 1)
  }
  return ends
}

async function demo() {
  const port = await freePort()
  const redis = await startRedis(port)
  const { queue, client, close } = await openQueue(port)
  const agent = startAgent(port, 'demo', { quiet: false })
  const zip = 'UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=='
  const tasks = {
    hello: { command: 'echo hello from $(id -un 2>/dev/null || id -u)' },
    lines: { command: 'echo one > file\ncat file', filesZipBase64: zip },
    denied: { command: 'cat /etc/shadow' },
    offline: { command: 'getent hosts example.com || echo no network' },
    slow: { command: 'sleep 60', timeoutMs: 500 },
    retried: { command: 'exit 3', mustSucceed: true },
    cancelled: { command: 'sleep 60' },
  }
  await client.set(`llm-do:cancel:${QUEUE}:cancelled`, '1', 'EX', 3600)
  for (const [name, data] of Object.entries(tasks)) await queue.add(name, data, { jobId: name, attempts: 2 })
  await untilEnded(queue, Object.keys(tasks).length, 120_000)
  for (const id of Object.keys(tasks)) {
    const { returnvalue: value, failedReason, attemptsMade } = await queue.getJob(id)
    const said =
      value && `${value.reason} ${value.exitCode} in ${value.durationMs} ms: ${`${value.stdout}${value.stderr}`.trim()}`
    console.log(`${id.padEnd(9)} ${said ?? `failed after ${attemptsMade} attempts: ${failedReason}`}`)
  }
  await close()
  await stop(agent)
  await stop(redis)
}

/* ---- chaos: what a fleet of either kind can do ---- */

const taskNames = (count) => Array.from({ length: count }, (_, index) => `t${index}`)
const CHAOS_COMMAND = 'sleep 0.05; echo $((6 * 7))'

/** BullMQ and Redis. */
async function queueFleet() {
  const port = await freePort()
  let redis = await startRedis(port)
  const { queue, client, close } = await openQueue(port)
  return {
    server: 'redis',
    startAgent: (name) => startAgent(port, name),
    add: (count) => add(queue, count, CHAOS_COMMAND),
    killServer: async () => {
      await stop(redis, 'SIGKILL')
      redis = await startRedis(port)
    },
    ended: async () => {
      const { completed, failed } = await ended(queue)
      return completed + failed
    },
    outcome: async (count) => {
      const ends = await endsOf(client)
      const failed = (await queue.getFailed()).map(({ id, failedReason }) => `${id}: ${failedReason}`)
      return {
        lost: taskNames(count).filter((id) => !ends.has(id)),
        twice: [...ends].filter(([, times]) => times > 1).map(([id]) => id),
        failed,
      }
    },
    close: async () => {
      await close()
      await stop(redis)
    },
  }
}

/** A token is shown and asked for at every step. */
const SECRET = 'of the chaos'

async function startServer(port) {
  const words = ['fleet-server', '--port', String(port), '--data', join(directory, 'server')]
  const server = startCommand(words, { env: { WORKER_TOKEN_SECRET: SECRET }, stdio: ['ignore', 'pipe', 'ignore'] })
  for await (const line of createInterface(server.child.stdout)) return { ...server, url: line }
  throw new Error('fleet-server has ended without an address')
}

/** The server tells how a task has ended; an end that was told once must never change. */
async function httpFleet() {
  const port = await freePort()
  let server = await startServer(port)
  const { url } = server
  const ask = async (path, options) => {
    const response = await fetch(new URL(path, url), options)
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    return await response.json()
  }
  const open = []
  const ends = new Map()
  const endOf = async (id) => {
    const { state, exitCode, stdout, attempts, endedMs, worker, message } = await ask(`/api/tasks/${id}`)
    if (['queued', 'running'].includes(state)) return undefined
    const isRight = state === 'done' && exitCode === 0 && stdout === '42\n'
    return { isRight, said: JSON.stringify({ state, exitCode, stdout, attempts, endedMs, worker, message }) }
  }
  return {
    server: 'server',
    startAgent: (name) => {
      const words = ['agent', '--server', url, '--slots', values.slots, '--poll', '200ms', '--grace', '20s']
      const env = { WORKER_ID: name, WORKER_TOKEN_SECRET: SECRET }
      return startCommand(words, { env, stdio: ['ignore', 'ignore', 'ignore'] })
    },
    add: async (count) => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ command: CHAOS_COMMAND })
      for (let at = 0; at < count; at += 1) open.push((await ask('/api/tasks', { method: 'POST', headers, body })).id)
    },
    killServer: async () => {
      await stop(server, 'SIGKILL')
      server = await startServer(port)
    },
    ended: async () => {
      // They begin in this order, so the next ends are among the first.
      for (const id of open.slice(0, 50)) {
        const end = await endOf(id)
        if (end === undefined) continue
        ends.set(id, end)
        open.splice(open.indexOf(id), 1)
      }
      return ends.size
    },
    outcome: async () => {
      const twice = []
      for (const [id, { said }] of ends) if ((await endOf(id))?.said !== said) twice.push(id)
      return { lost: open, twice, failed: [...ends.values()].filter(({ isRight }) => !isRight).map(({ said }) => said) }
    },
    close: async () => {
      if ((await stop(server)) !== 0) throw new Error('fleet-server did not end well')
    },
  }
}

const wordsOf = (file) => {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

const filesIn = (place) => (existsSync(place) ? readdirSync(place).map((name) => join(place, name)) : [])

/** Processes that know the directory of this program, files of tasks, and cgroups and records of runs that no launcher holds. */
function leftNow() {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
  const words = processes.map((pid) => [pid, wordsOf(`/proc/${pid}/cmdline`), wordsOf(`/proc/${pid}/environ`)])
  const runs = new Set(words.map(([, argv]) => /\0--id\0([a-z0-9]+)\0/.exec(argv)?.[1]))
  const cgroups = spawnSync('find', ['/sys/fs/cgroup', '-type', 'd', '-name', 'llm-do-*'], { encoding: 'utf8' }).stdout
  const records = ['/run/llm-do/runs', `/tmp/llm-do-${process.getuid()}/runs`].flatMap(filesIn)
  const agents = filesIn(join(STATE, 'llm-do/fleet')).flatMap((agent) => filesIn(join(agent, 'tasks')))
  return [
    ...words.filter(([, ...texts]) => texts.join('').includes(directory)).map(([pid, argv]) => `${pid} ${argv}`),
    ...[...cgroups.split('\n').filter(Boolean), ...records].filter(
      (path) => !runs.has(basename(path).replace('llm-do-', '')),
    ),
    ...agents,
    ...filesIn(TEMPORARY),
  ]
}

/** The kernel takes a moment, and others have runs that come and go. */
async function leftSince(before) {
  let left = leftNow().filter((one) => !before.includes(one))
  for (let looks = 0; left.length > 0 && looks < 100; looks += 1) {
    await sleep(100)
    const now = leftNow()
    left = left.filter((one) => now.includes(one))
  }
  return left
}

async function chaos() {
  const [count, size, seed] = [Number(values.tasks ?? 60), Number(values.agents ?? 2), Number(values.seed)]
  const [random, before] = [randomFrom(seed), leftNow()]
  const fleet = await (values.http ? httpFleet() : queueFleet())
  await fleet.add(count)
  const names = Array.from({ length: size }, (_, index) => `agent-${index}`)
  const agents = new Map(names.map((name) => [name, fleet.startAgent(name)]))
  const kills = [
    ...Array.from({ length: Number(values.kills) }, () => 'agent'),
    ...Array.from({ length: Number(values['server-kills']) }, () => fleet.server),
  ].map((what) => ({ what, at: Math.floor(random() * count * 0.8), pick: names[Math.floor(random() * size)] }))
  const deadline = performance.now() + 1000 * Number(values.within)
  const until = async (most) => {
    while ((await fleet.ended()) < most && performance.now() < deadline) await sleep(50)
  }
  for (const { what, at, pick } of kills.sort((a, b) => a.at - b.at)) {
    await until(at)
    if (what === fleet.server) await fleet.killServer()
    else {
      await stop(agents.get(pick), 'SIGKILL')
      agents.set(pick, fleet.startAgent(pick))
    }
  }
  await until(count)
  const ends = []
  for (const agent of agents.values()) ends.push(await stop(agent))
  const { lost, twice, failed } = await fleet.outcome(count)
  await fleet.close()
  const left = await leftSince(before)
  const seconds = Math.round((performance.now() - deadline) / 1000 + Number(values.within))
  console.log(
    JSON.stringify({
      seed,
      tasks: count,
      agents: size,
      kills: kills.map(({ what, at }) => `${what}@${at}`),
      seconds,
      lost,
      twice,
      failed,
      left,
    }),
  )
  if (lost.length + twice.length + failed.length + left.length > 0 || ends.some((status) => status !== 0))
    process.exitCode = 1
}

/** Work and memory of Redis so far. */
async function redisUse(client) {
  const info = await client.info()
  const field = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)[1])
  const cpuMs = 1000 * (field('used_cpu_user') + field('used_cpu_sys'))
  const calls = [...(await client.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)]
  const byCommand = new Map(calls.map(([, name, times]) => [name, Number(times)]))
  return { commands: field('total_commands_processed'), bytes: field('used_memory'), cpuMs, byCommand }
}

/**
 * Processor time of the whole machine in milliseconds (proc(5): the first line of stat, in hundredths of a second): launchers are not
 * children of who counts them. User, nice, system, and interrupts; idle and waiting for disks are left out.
 */
function busyMs() {
  const [user, nice, system, , , ...interrupts] = readFileSync('/proc/stat', 'utf8')
    .split('\n')[0]
    .split(/\s+/)
    .slice(1, 8)
  return 10 * [user, nice, system, ...interrupts].reduce((total, ticks) => total + Number(ticks), 0)
}

const perTask = (name, { count, seconds, ms }) =>
  `${name}: ${(count / seconds).toFixed(1)}/s, ${(ms / count).toFixed(1)} ms of processor each`

/** Runs of the same command by the same policy, several rows at once; the first one of a place plans and is not counted. */
function loop(count, rows) {
  const exec = `${join(ROOT, 'bin/llm-do-exec')} --profile task -- /bin/sh -c 'echo task'`
  const cwd = mkdtempSync(join(directory, 'work.'))
  const run = (words) => execFileSync('/bin/sh', ['-c', words], { cwd, env: { PATH: process.env.PATH, HOME } })
  run(exec)
  const [begun, before] = [performance.now(), busyMs()]
  run(`seq ${count} | xargs -P ${rows} -I N ${exec}`)
  return { count, seconds: (performance.now() - begun) / 1000, ms: busyMs() - before }
}

async function agentsRate(count, size) {
  const port = await freePort()
  const redis = await startRedis(port)
  const { queue, client, close } = await openQueue(port)
  const agents = Array.from({ length: size }, (_, index) => startAgent(port, `agent-${index}`))
  // Begins when all agents have shown that they work.
  const warmUp = size * 8
  await queue.addBulk(Array.from({ length: warmUp }, (_, index) => ({ ...job(index), opts: { jobId: `w${index}` } })))
  await untilEnded(queue, warmUp)
  const [redisBefore, before, begun] = [await redisUse(client), busyMs(), performance.now()]
  await add(queue, count)
  await untilEnded(queue, count + warmUp)
  const [seconds, ms, redisAfter] = [(performance.now() - begun) / 1000, busyMs() - before, await redisUse(client)]
  for (const agent of agents) await stop(agent)
  await close()
  await stop(redis)
  rmSync(join(directory, 'appendonlydir'), { recursive: true, force: true })
  const each = (name) => (redisAfter[name] - redisBefore[name]) / count
  const byCommand = [...redisAfter.byCommand]
    .map(([name, times]) => [name, (times - (redisBefore.byCommand.get(name) ?? 0)) / count])
    .filter(([, times]) => times >= 0.5)
    .sort(([, a], [, b]) => b - a)
    .map(([name, times]) => `${name} ${times.toFixed(1)}`)
  return {
    count,
    seconds,
    ms,
    byCommand: byCommand.join(', '),
    redis: { commands: each('commands'), cpuMs: each('cpuMs'), bytes: each('bytes') },
  }
}

/** The loops and the agents by turns: what else the machine does is in all. */
async function throughput() {
  const count = Number(values.tasks ?? 2000)
  const [rateOf, msOf] = [({ count: tasks, seconds }) => tasks / seconds, ({ count: tasks, ms }) => ms / tasks]
  for (const size of (values.agents ?? '1,2,4').split(',').map(Number)) {
    const loops = [1, Number(values.slots)].map((rows) => ({ rows, ...loop(Math.min(count, 500), rows) }))
    const { redis, byCommand, ...rate } = await agentsRate(count, size)
    console.log(perTask(`${size} agents of ${values.slots} slots`, rate))
    for (const { rows, ...plain } of loops) {
      console.log(perTask(`  exec in a loop, ${rows} at once`, plain))
      const ratios = [rateOf(rate) / rateOf(plain), msOf(plain) / msOf(rate)].map((one) => one.toFixed(2))
      console.log(`    the agents: ${ratios[0]} of its rate, ${ratios[1]} by processor time (the goal is 0.8)`)
    }
    const { commands, cpuMs, bytes } = redis
    console.log(`  of Redis: ${commands.toFixed(1)} commands, ${cpuMs.toFixed(1)} ms, ${bytes.toFixed(0)} bytes each`)
    console.log(`    ${byCommand}`)
  }
  console.log(`load of the machine: ${loadavg()[0].toFixed(1)}`)
}

/** The command is node below the client: the one process of an agent that stays. */
const residentMiB = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024

async function memory() {
  const count = Number(values.tasks ?? 10_000)
  const port = await freePort()
  const redis = await startRedis(port)
  const { queue, close } = await openQueue(port)
  const agent = startAgent(port, 'agent')
  await add(queue, count)
  for (let at = 0; at <= 10; at += 1) {
    await untilEnded(queue, (count * at) / 10)
    console.log(`${(count * at) / 10} tasks: ${residentMiB(agent.child.pid).toFixed(1)} MiB`)
  }
  await stop(agent)
  await close()
  await stop(redis)
}

const COMMANDS = { demo, chaos, throughput, memory }
const command = COMMANDS[positionals[0]]
if (command === undefined) {
  console.error(`usage: fleet.mjs ${Object.keys(COMMANDS).join('|')}`)
  process.exit(1)
}
try {
  await command()
} finally {
  for (const child of started) child.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
}
