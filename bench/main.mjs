// `make bench`: start-up and throughput compared with bwrap and its peers. Everything that is compared is run by turns, in another order each round,
// in one go, and only ratios of medians are judged: absolute times drift with the machine.
//   node bench/main.mjs [--runs N] [--rows NAME,...] [--json]
// Exit status 0 when every row that was measured met its goal, 1 when one did not, 2 when the bench itself failed.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { byHand, findProgram, NAIVE } from './bwrap.mjs'
import { comparePeers, comparisonTable } from './comparison.mjs'
import { cow } from './cow.mjs'
import { explain } from './explain.mjs'
import { countLeftovers, growthSince } from './leftovers.mjs'
import { limits } from './limits.mjs'
import { network } from './network.mjs'
import { patterns } from './patterns.mjs'
import { highWater, weightBelow, withPool } from './pool.mjs'
import { sizes } from './sizes.mjs'
import { makeStage, ROOT } from './stage.mjs'
import { median, netRatio, quantile, table } from './statistics.mjs'
import { makeProgram, timeByTurns } from './stopwatch.mjs'
import { traces } from './traces.mjs'
import { variety } from './variety.mjs'
import { work } from './work.mjs'

const LIBRARY = fileURLToPath(new URL('library.mjs', import.meta.url))
/** A run with a warm pool must be said to want one, and a cold one not. */
const COLD = ['--pool', 'off']

/* ---- progress: on a terminal only ---- */

const progress = (text) => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

/* ---- what is measured ---- */

async function turns(bench, name, { commands, rounds, atOnce, before }) {
  const onRound = (round) => progress(`${name}: ${round} of ${rounds}`)
  const times = await timeByTurns({ stage: bench.stage, commands, rounds, atOnce, before, onRound })
  bench.times[name] = times
  return times
}

const ratio = (times, one, other) => median(times[one]) / median(times[other])

async function start(bench) {
  const { stage, runs } = bench
  const cold = [stage.exec, ...bench.cold, '--', 'true']
  stage.warm(cold)
  const commands = {
    bwrap: [...NAIVE, 'true'],
    cold,
    'by hand': [...byHand(stage.launchWords()), 'true'],
    true: ['true'],
  }
  const times = await turns(bench, 'start-up', { commands, rounds: runs })
  return [
    { row: 'cold CLI / the same walls in bwrap words, by hand', value: ratio(times, 'cold', 'by hand'), goal: 1.1 },
    { row: 'cold CLI / naive bwrap', value: ratio(times, 'cold', 'bwrap'), goal: 0.95 },
  ]
}

/** `auto` is one of them; each is measured against the same naive bwrap. */
const ENGINES = ['unshare', 'bwrap']

async function engines(bench) {
  const { stage, runs } = bench
  const rows = []
  const commands = { bwrap: [...NAIVE, 'true'] }
  for (const engine of ENGINES) {
    const words = [stage.exec, ...bench.cold, '--engine', engine, '--', 'true']
    const { status, stderr } = stage.run(words)
    if (status !== 0) {
      rows.push({ row: `cold CLI, engine ${engine} / naive bwrap`, missing: stderr.toString().trim() })
      continue
    }
    stage.warm(words)
    commands[`engine ${engine}`] = words
  }
  const times = await turns(bench, 'engines', { commands, rounds: runs })
  const names = Object.keys(commands).slice(1)
  return [
    ...rows,
    ...names.map((name) => ({ row: `cold CLI, ${name} / naive bwrap`, value: ratio(times, name, 'bwrap') })),
  ]
}

/** Commands that agents call all day fail as a matter of course: `grep`, `test`, `diff`. A path of the system is mounted, so no hint is needed. */
async function failures(bench) {
  const { stage, runs } = bench
  const grep = [stage.exec, ...bench.cold, '--', 'grep', '-q']
  stage.warm([...grep, 'root', '/etc/passwd'])
  const commands = {
    succeeding: [...grep, 'root', '/etc/passwd'],
    'failing, a path': ['!', ...grep, 'no such line', '/etc/passwd'],
  }
  const times = await turns(bench, 'failures', { commands, rounds: runs })
  return [
    {
      row: 'failing run that names a path / succeeding',
      value: ratio(times, 'failing, a path', 'succeeding'),
      goal: 1.3,
    },
  ]
}

async function peers(bench) {
  bench.comparison = await comparePeers({ runs: bench.runs, progress })
  bench.times.peers = bench.comparison.times
  return []
}

/** Kept ready for runs one after the other, and for four at once. */
const FEW = 4
const MANY = 8

async function warm(bench) {
  const { stage, runs } = bench
  return withPool(stage, FEW, async (pool) => {
    const words = [stage.exec, '--', 'true']
    stage.warm(words)
    const before = pool.fill
    const commands = { bwrap: [...NAIVE, 'true'], warm: words, true: ['true'] }
    const times = await turns(bench, 'warm', { commands, rounds: runs, before })
    return [
      { row: 'warm CLI / naive bwrap', value: ratio(times, 'warm', 'bwrap'), goal: 0.3 },
      { row: 'warm CLI / bare true', value: ratio(times, 'warm', 'true'), goal: 2 },
      { row: 'warm p95 / p50', value: quantile(times.warm, 0.95) / median(times.warm), goal: 2 },
    ]
  })
}

function inLibrary(bench, words) {
  const { stage } = bench
  progress(`library: ${words.slice(0, 2).join(' ')}`)
  const { status, stdout, stderr } = stage.run([process.execPath, LIBRARY, ...words], {
    env: { ...stage.env, LLM_DO_BENCH_ROOT: ROOT },
  })
  if (status !== 0) throw new Error(`library, ${words[0]}: ${stderr}`)
  return JSON.parse(stdout)
}

function library(bench) {
  const rounds = String(Math.min(bench.runs, 100))
  const { times: cold } = inLibrary(bench, ['cold', rounds, ...NAIVE, 'true'])
  const { times: ready, served } = inLibrary(bench, ['warm', rounds])
  bench.times['library, cold'] = cold
  bench.times['library, warm'] = ready
  const note = `${served.warm} of ${served.warm + served.cold} runs found one ready`
  return [
    { row: 'library, warm / child_process.spawn', value: ratio(ready, 'warm', 'spawn'), goal: 0.7, note },
    { row: 'library, warm p95 / p50', value: quantile(ready.warm, 0.95) / median(ready.warm), note },
    { row: 'library, cold / spawn of bwrap', value: ratio(cold, 'cold', 'bwrap'), goal: 1.2 },
    { row: 'library, exec() / spawn of bwrap', value: ratio(cold, 'exec()', 'bwrap'), note: 'plans each time' },
  ]
}

async function node(bench) {
  const { stage, runs } = bench
  const rounds = Math.max(5, Math.round(runs / 4))
  const json = [stage.exec, '--json', '--', 'true']
  stage.warm(json)
  // A separate cache for every run: nothing is known, neither of the machine nor of the plan.
  const first = ['sh', '-c', `XDG_CACHE_HOME=${stage.directory}/first-$$ exec "$0" -- true`, stage.exec]
  const verbs = {
    ps: [stage.llmDo, 'ps'],
    profiles: [stage.llmDo, 'profiles'],
    'pool status': [stage.llmDo, 'pool', 'status'],
    // It ends with 1 where this machine lacks something.
    doctor: ['sh', '-c', '"$0" doctor >/dev/null || test $? = 1', stage.llmDo],
  }
  const commands = { node: [process.execPath, '-e', '0'], json, first, ...verbs }
  const times = await turns(bench, 'node', { commands, rounds })
  return [
    { row: 'first run ever / node -e 0', value: ratio(times, 'first', 'node'), goal: 2 },
    { row: '--json run / node -e 0', value: ratio(times, 'json', 'node'), goal: 1.6 },
    ...Object.keys(verbs).map((verb) => ({ row: `${verb} / node -e 0`, value: ratio(times, verb, 'node'), goal: 1.5 })),
  ]
}

async function throughput(bench) {
  const { stage, runs } = bench
  const cold = [stage.exec, ...bench.cold, '--', 'true']
  stage.warm(cold)
  const rounds = Math.max(5, Math.round(runs / 4))
  const commands = { bwrap: [...NAIVE, 'true'], cold, namespaces: [makeProgram('namespaces'), 'true'], true: ['true'] }
  const times = await turns(bench, 'four at once', { commands, rounds, atOnce: 4 })
  const over = (name) => ({ value: 1 / ratio(times, name, 'bwrap'), least: true })
  return [
    { row: 'throughput, 4 at once: bare true / bwrap', ...over('true') },
    { row: 'throughput, 4 at once: fresh namespaces and nothing else / bwrap', ...over('namespaces') },
    { row: 'throughput, 4 at once: cold / bwrap', ...over('cold') },
    ...(await warmThroughput(bench, rounds)),
    await flood(bench),
  ]
}

/** Rounds of four runs in one block of a flood: ten times as many runs as the pool holds. */
const FLOOD_ROUNDS = 20
const FLOOD_BLOCKS = 5

/** Blocks of one command only, by turns: the pool is full when a block begins, and is refilled by nothing but its keeper meanwhile. */
function flood(bench) {
  const { stage } = bench
  return withPool(stage, MANY, async (pool) => {
    const warm = [stage.exec, '--', 'true']
    stage.warm(warm)
    const times = { bwrap: [], warm: [] }
    for (let block = 0; block < FLOOD_BLOCKS; block += 1)
      for (const [name, words] of Object.entries({ bwrap: [...NAIVE, 'true'], warm })) {
        progress(`flood: block ${block + 1} of ${FLOOD_BLOCKS}, ${name}`)
        await pool.fill()
        const { [name]: rows } = await timeByTurns({
          stage,
          commands: { [name]: words },
          rounds: FLOOD_ROUNDS,
          atOnce: 4,
        })
        times[name].push(rows.reduce((sum, ns) => sum + ns, 0))
      }
    bench.times.flood = times
    return {
      row: `throughput, 4 at once, pool refilled while used (${FLOOD_ROUNDS * 4} runs, ${MANY} ready): warm / bwrap`,
      value: 1 / ratio(times, 'warm', 'bwrap'),
      goal: 3.5,
      least: true,
    }
  })
}

/** A round takes four of the pool, which is full again before the next one. */
function warmThroughput(bench, rounds) {
  const { stage } = bench
  return withPool(stage, MANY, async (pool) => {
    const warm = [stage.exec, '--', 'true']
    stage.warm(warm)
    const commands = { bwrap: [...NAIVE, 'true'], warm }
    const times = await turns(bench, 'four at once, warm', { commands, rounds, atOnce: 4, before: pool.fill })
    const value = 1 / ratio(times, 'warm', 'bwrap')
    return [{ row: 'throughput, 4 at once: warm / bwrap', value, goal: 1.1, least: true }]
  })
}

/** In a separate stage: it reads the one launch file that there is. */
async function costOfLimits({ runs, times }) {
  const stage = makeStage()
  try {
    return await limits({ stage, runs, times })
  } finally {
    stage.remove()
  }
}

/** In a separate stage: the guard searches the whole writable zone. */
async function realWork(bench) {
  const stage = makeStage()
  try {
    return await work({ ...bench, stage })
  } finally {
    stage.remove()
  }
}

/* ---- long commands: what the walls cost once they stand ---- */

function manyFiles(root, count) {
  for (let directory = 0; directory < count / 200; directory += 1) {
    const below = join(root, String(directory))
    mkdirSync(below, { recursive: true })
    for (let file = 0; file < 200; file += 1)
      writeFileSync(join(below, `${file}.txt`), `file ${file} of ${directory}\n`)
  }
}

const C_SOURCE = `#include <stdio.h>
${Array.from({ length: 400 }, (_, n) => `int f${n}(int x) { for (int i = 0; i < x; i++) x ^= i * ${n + 3}; return x; }`).join('\n')}
int main(void) { printf("%d\\n", f1(2)); return 0; }
`

/** A repository for each side: git notes the ids of files, which are others inside, and would read all of them again each time. */
function makeRepositories(stage) {
  for (const side of ['inside', 'outside']) {
    const directory = join(stage.cwd, side)
    manyFiles(directory, 10_000)
    stage.run(['git', 'init', '-q'], { cwd: directory })
    stage.run(['git', 'add', '-A'], { cwd: directory })
  }
  const noted = stage.run([stage.exec, '--rw', 'inside', '--', 'sh', '-c', 'cd inside && git status --short'])
  if (noted.status !== 0) throw new Error(`git status in a writable zone: ${noted.stderr}`)
}

const same = (script) => ({ inside: script, outside: script })

const LONG = [
  {
    name: 'tar of 20000 files',
    program: 'tar',
    scripts: same('tar cf - many | cat >/dev/null'),
    prepare: (stage) => manyFiles(join(stage.cwd, 'many'), 20_000),
  },
  {
    name: 'gcc -O2',
    program: 'gcc',
    scripts: same('gcc -O2 -o /tmp/bench.out bench.c'),
    prepare: (stage) => writeFileSync(join(stage.cwd, 'bench.c'), C_SOURCE),
  },
  {
    name: 'git status of 10000 files',
    program: 'git',
    scripts: {
      inside: 'cd inside && git status --short >/dev/null',
      outside: 'cd outside && git status --short >/dev/null',
    },
    prepare: makeRepositories,
  },
]

async function long(bench) {
  const rows = []
  for (const command of LONG) rows.push(await longRow(bench, command))
  return rows
}

async function longRow(bench, { name, program, scripts, prepare }) {
  const row = { row: `${name}, net of start-up`, goal: 1.05 }
  if (findProgram(program) === undefined) return { ...row, missing: `${program} is not installed` }
  const { stage } = bench
  progress(name)
  prepare(stage)
  const inside = (text) => [stage.exec, ...bench.cold, '--', 'sh', '-c', text]
  const outside = (text) => ['sh', '-c', text]
  stage.warm(inside(scripts.inside))
  const commands = {
    'true inside': inside('true'),
    'true outside': outside('true'),
    inside: inside(scripts.inside),
    outside: outside(scripts.outside),
  }
  const times = await turns(bench, name, { commands, rounds: Math.max(5, Math.round(bench.runs / 4)) })
  return { ...row, ...netRatio(times) }
}

/* ---- memory, and what is left ---- */

async function memory(bench) {
  const MiB = 1024 ** 2
  const over = (how) => {
    const [idle, flood] = ['idle', 'flood'].map((what) => inLibrary(bench, [what, how]))
    const note = how === 'warm' && flood.served.cold > 0 ? 'the flood found none ready' : undefined
    return { value: (flood.maxKiB - idle.maxKiB) / 1024, ...(note === undefined ? {} : { note }) }
  }
  const weight = await withPool(bench.stage, MANY, async (pool) => {
    const ready = await pool.fill()
    return weightBelow(pool.keeper().pid) / ready / MiB
  })
  return [
    { row: 'memory of one warm sandbox, MiB', value: weight, goal: 0.6 },
    { row: 'memory of node in a flood of 1 GiB, cold, MiB over idle', ...over('cold'), goal: 10 },
    { row: 'memory of node in a flood of 1 GiB, warm, MiB over idle', ...over('warm'), goal: 10 },
    { row: 'memory of --json in a flood of 1 GiB, MiB over idle', value: await jsonFlood(bench), goal: 10 },
  ]
}

/** The client and what it starts on the host, while it still runs: high-water marks of each, over those of an idle run. */
async function jsonFlood({ stage }) {
  const most = async (script) => {
    const words = ['--json', '--', 'sh', '-c', `${script}; sleep 0.5`]
    stage.warm([stage.exec, ...words])
    const child = spawn(stage.exec, words, { cwd: stage.cwd, env: stage.env, stdio: ['ignore', 'ignore', 'inherit'] })
    const state = { most: 0, isOver: false }
    child.once('exit', () => (state.isOver = true))
    while (!state.isOver) {
      state.most = Math.max(state.most, highWater(child.pid))
      await sleep(50)
    }
    return state.most
  }
  return ((await most(`head -c ${1024 ** 3} /dev/zero`)) - (await most('true'))) / 1024
}

async function leftovers(bench) {
  const { stage } = bench
  const command = [stage.exec, ...bench.cold, '--', 'true']
  stage.warm(command)
  const before = countLeftovers(stage.env)
  const rounds = Math.max(bench.runs, bench.options.runs === undefined ? 1000 : 0)
  await turns(bench, 'many runs', { commands: { cold: command }, rounds })
  const { sum, growth } = await growthSince(before, stage.env)
  return [{ row: `${rounds} runs: growth of ${Object.keys(growth).join(', ')}`, value: sum, goal: 0 }]
}

/** In the order of running: what is long or leaves a mark comes last. */
const GROUPS = {
  start,
  engines,
  failures,
  warm,
  library,
  node,
  throughput,
  limits: costOfLimits,
  patterns,
  sizes,
  variety,
  traces,
  network,
  cow,
  explain,
  long,
  work: realWork,
  memory,
  leftovers,
  peers,
}

/* ---- telling ---- */

const verdict = ({ value, goal, least, missing }) => {
  if (missing !== undefined) return `not measured: ${missing}`
  if (goal === undefined) return 'no goal'
  return (least ? value >= goal : value <= goal) ? 'met' : 'NOT MET'
}

const goalText = ({ goal, least }) => (goal === undefined ? '' : `${least ? '>=' : '<='} ${goal}`)

function machine() {
  const all = cpus()
  return {
    processor: all[0]?.model.trim() ?? 'unknown',
    processors: all.length,
    kernel: release(),
    node: process.version,
    load: loadavg().map((one) => Number(one.toFixed(2))),
  }
}

function timesTable(times) {
  const ms = (ns) => (ns / 1e6).toFixed(2)
  const rows = Object.entries(times).flatMap(([group, commands]) => {
    const [first] = Object.values(commands)
    return Object.entries(commands).map(([name, ns]) => [
      `${group}: ${name}`,
      String(ns.length),
      ms(median(ns)),
      ms(quantile(ns, 0.95)),
      ms(Math.min(...ns)),
      (median(ns) / median(first)).toFixed(2),
    ])
  })
  return table(['command', 'runs', 'median ms', 'p95', 'min', 'x first'], rows)
}

function printReport({ rows, times, comparison, where }) {
  console.log(
    `${where.processor}, ${where.processors} processors, Linux ${where.kernel}, node ${where.node}, load ${where.load.join(' ')}\n`,
  )
  console.log(
    table(
      ['ratio', 'goal', 'measured', 'verdict'],
      rows.map((row) => [row.row, goalText(row), row.value?.toFixed(2) ?? '-', verdict(row)]),
    ),
  )
  for (const { row, note } of rows) if (note !== undefined) console.log(`${row}: ${note}`)
  console.log(`\n${timesTable(times)}`)
  if (comparison === undefined) return
  console.log(`\n${comparisonTable(comparison)}\n`)
  for (const { name, missing } of comparison.missing) console.log(`not compared: ${name}: ${missing}`)
}

async function measure(bench, wanted) {
  const rows = []
  for (const name of wanted) rows.push(...(await GROUPS[name](bench)))
  return rows
}

function readOptions() {
  const { values } = parseArgs({
    options: { runs: { type: 'string' }, rows: { type: 'string' }, json: { type: 'boolean', default: false } },
  })
  const runs = values.runs === undefined ? undefined : Number(values.runs)
  if (runs !== undefined && !(Number.isInteger(runs) && runs > 0))
    throw new Error(`--runs: expected a whole number above 0, got "${values.runs}"`)
  const rows = values.rows?.split(',') ?? Object.keys(GROUPS)
  const unknown = rows.find((name) => GROUPS[name] === undefined)
  if (unknown !== undefined)
    throw new Error(`--rows: expected some of ${Object.keys(GROUPS).join(', ')}, got "${unknown}"`)
  return { runs, rows, json: values.json }
}

async function main() {
  const options = readOptions()
  const stage = makeStage()
  // A bench that is interrupted leaves no place behind; its children end with it.
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => {
      stage.remove()
      process.exit(2)
    })
  try {
    const help = spawnSync(join(ROOT, 'bin/llm-do'), ['exec', '--help'], { encoding: 'utf8' }).stdout ?? ''
    const bench = {
      stage,
      options,
      runs: options.runs ?? 100,
      times: {},
      progress,
      cold: help.includes('--pool') ? COLD : [],
    }
    const where = machine()
    const rows = await measure(bench, options.rows)
    progress('')
    if (options.json)
      console.log(
        JSON.stringify({
          machine: where,
          rows: rows.map((row) => ({ ...row, verdict: verdict(row) })),
          times: bench.times,
          ...(bench.comparison && { peers: bench.comparison.rows, missing: bench.comparison.missing }),
        }),
      )
    else printReport({ rows, times: bench.times, comparison: bench.comparison, where })
    return rows.some((row) => verdict(row) === 'NOT MET') ? 1 : 0
  } finally {
    stage.remove()
  }
}

process.exitCode = await main().catch((error) => {
  progress('')
  console.error(`bench: ${error.message}`)
  return 2
})
