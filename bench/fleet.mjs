// Tasks through BullMQ and agents of this machine: a demonstration, a test of endurance, measurements.
//
//   node bench/fleet.mjs demo                                          a few tasks, with what became of them
//   node bench/fleet.mjs chaos [--tasks N] [--agents N] [--kills N] [--redis-kills N] [--seed N]   kill -9 at random; fails when a task is lost
//   node bench/fleet.mjs throughput [--tasks N] [--agents 1,2,4]       tasks a second, next to exec in a loop
//   node bench/fleet.mjs memory [--tasks N]                            what an agent holds, over many tasks
//
// Everything is in one temporary directory; every process is started here and ended here.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { loadavg, tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
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
    'redis-kills': { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
    slots: { type: 'string', default: '2' },
  },
})

const directory = mkdtempSync(join(tmpdir(), 'llm-do-fleet.'))
const started = new Set()
const states = new Set()

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

const HOME = join(directory, 'home')

function startAgent(port, name, { slots = values.slots, quiet = true } = {}) {
  const server = `redis://127.0.0.1:${port}`
  states.add(createHash('sha256').update(`${server}\0${name}`).digest('hex').slice(0, 16))
  const words = ['agent', '--queue', server, '--slots', slots, '--lease', LEASE, '--grace', '20s']
  const env = { PATH: process.env.PATH, HOME, WORKER_ID: name, LANG: 'C.UTF-8' }
  return start(join(ROOT, 'bin/llm-do'), words, { env, stdio: ['ignore', 'ignore', quiet ? 'ignore' : 'inherit'] })
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
  await end
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

async function chaos() {
  const [count, size, seed] = [Number(values.tasks ?? 60), Number(values.agents ?? 2), Number(values.seed)]
  const random = randomFrom(seed)
  const port = await freePort()
  let redis = await startRedis(port)
  const { queue, client, close } = await openQueue(port)
  await add(queue, count, 'sleep 0.05; echo $$')
  const names = Array.from({ length: size }, (_, index) => `agent-${index}`)
  const agents = new Map(names.map((name) => [name, startAgent(port, name)]))
  const kills = [
    ...Array.from({ length: Number(values.kills) }, () => 'agent'),
    ...Array.from({ length: Number(values['redis-kills']) }, () => 'redis'),
  ].map((what) => ({ what, at: Math.floor(random() * count * 0.8), pick: names[Math.floor(random() * size)] }))
  for (const { what, at, pick } of kills.sort((a, b) => a.at - b.at)) {
    await untilEnded(queue, at)
    if (what === 'redis') {
      await stop(redis, 'SIGKILL')
      redis = await startRedis(port)
    } else {
      await stop(agents.get(pick), 'SIGKILL')
      agents.set(pick, startAgent(port, pick))
    }
  }
  const counts = await untilEnded(queue, count)
  for (const agent of agents.values()) await stop(agent)
  const ends = await endsOf(client)
  const lost = Array.from({ length: count }, (_, index) => `t${index}`).filter((id) => !ends.has(id))
  const twice = [...ends].filter(([, times]) => times > 1).map(([id]) => id)
  const failed = await Promise.all(
    (await queue.getFailed()).map(async ({ id, failedReason }) => `${id}: ${failedReason}`),
  )
  await close()
  await stop(redis)
  console.log(
    JSON.stringify({
      seed,
      tasks: count,
      agents: size,
      kills: kills.map(({ what, at }) => `${what}@${at}`),
      ...counts,
      lost,
      twice,
      failed,
    }),
  )
  if (lost.length + twice.length + failed.length > 0) process.exitCode = 1
}

/** What Redis has done and holds so far. */
async function redisUse(client) {
  const info = await client.info()
  const field = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)[1])
  const cpuMs = 1000 * (field('used_cpu_user') + field('used_cpu_sys'))
  return { commands: field('total_commands_processed'), bytes: field('used_memory'), cpuMs }
}

/** Runs of the command in a row, several rows at once. */
function loopRate(count, rows) {
  const begun = performance.now()
  const words = [
    '-c',
    `seq ${count} | xargs -P ${rows} -n 1 ${join(ROOT, 'bin/llm-do-exec')} -- /bin/echo task >/dev/null`,
  ]
  const cwd = mkdtempSync(join(directory, 'work.'))
  execFileSync('/bin/sh', words, { cwd, env: { PATH: process.env.PATH, HOME } })
  return count / ((performance.now() - begun) / 1000)
}

async function throughput() {
  const count = Number(values.tasks ?? 2000)
  for (const rows of [1, 2])
    console.log(`exec in a loop, ${rows} at once: ${loopRate(Math.min(count, 200), rows).toFixed(1)}/s`)
  for (const size of (values.agents ?? '1,2,4').split(',').map(Number)) {
    const port = await freePort()
    const redis = await startRedis(port)
    const { queue, client, close } = await openQueue(port)
    const agents = Array.from({ length: size }, (_, index) => startAgent(port, `agent-${index}`))
    // Begins when all agents have shown that they work.
    await queue.addBulk(
      Array.from({ length: size * 8 }, (_, index) => ({ ...job(index), opts: { jobId: `w${index}` } })),
    )
    await untilEnded(queue, size * 8)
    const [before, begun] = [await redisUse(client), performance.now()]
    await add(queue, count)
    await untilEnded(queue, count + size * 8)
    const seconds = (performance.now() - begun) / 1000
    const load = loadavg()[0].toFixed(1)
    console.log(
      `${size} agents of ${values.slots} slots: ${(count / seconds).toFixed(1)}/s (load of the machine ${load})`,
    )
    const after = await redisUse(client)
    const perTask = (name) => ((after[name] - before[name]) / count).toFixed(name === 'bytes' ? 0 : 1)
    console.log(
      `  a task costs Redis ${perTask('commands')} commands, ${perTask('cpuMs')} ms of processor and ${perTask('bytes')} bytes`,
    )
    for (const agent of agents) await stop(agent)
    await close()
    await stop(redis)
    rmSync(join(directory, 'appendonlydir'), { recursive: true, force: true })
  }
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
  // Root's state is not below HOME.
  for (const state of process.getuid() === 0 ? states : [])
    rmSync(join('/var/lib/llm-do/fleet', state), { recursive: true, force: true })
}
