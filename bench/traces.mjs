// Sessions of coding agents as the benchmark: each command of a trace is run once under each runner, by turns, in another order each time.
// Every runner has its own copy of the repository, home and caches, which are empty when its session begins.
//   node bench/main.mjs --rows traces [--runs N]     N: only the first N commands of each trace
//   node bench/traces.mjs TRACE [N]                  what each command took
import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findProgram, NAIVE } from './bwrap.mjs'
import { isInstalled, NPM_PEERS } from './npm-peers.mjs'
import { withPool } from './pool.mjs'
import { makeRepository, readTraces } from './session.mjs'
import { makeStage } from './stage.mjs'
import { median, quantile } from './statistics.mjs'
import { makeProgram } from './stopwatch.mjs'

const PROGRAMS = ['bwrap', 'git', 'gcc', 'make', 'python3', 'npm', 'strings']

/** The same programs for all: one that is put on PATH by the user's home would not be seen by each of them. */
const PATH = [
  ...new Set([
    '/usr/local/sbin',
    '/usr/local/bin',
    '/usr/sbin',
    '/usr/bin',
    '/sbin',
    '/bin',
    dirname(process.execPath),
  ]),
].join(delimiter)

/** The first two commands of a session are those that plan. */
const FIRST = 2

/** Sandboxes that are ready when a command comes; an agent thinks longer than it takes to build one. */
const READY = 4

/* ---- runners: the variables and the words of a run in a stage ---- */

/** Runners without a private /tmp write into one of the stage's. */
const sharesTmp = (make) => (stage) => {
  const { argv, ...runner } = make(stage)
  const moved = (text) => text?.replaceAll('/tmp/', `${stage.directory}/`)
  return { ...runner, argv: ({ script, words }) => argv({ script: moved(script), words: words.map(moved) }) }
}

const plain = () => ({ argv: ({ words }) => words })

const bwrap = ({ cwd }) => ({ argv: ({ words }) => [...NAIVE, '--bind', cwd, cwd, ...words] })

const llmDo =
  (...options) =>
  ({ exec }) => ({
    takesVariables: true,
    argv: ({ variables, script, words }) => [
      exec,
      ...options,
      ...variables.flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      ...(script === undefined ? ['--', ...words] : ['-c', script]),
    ],
  })

const OURS = { plain: sharesTmp(plain), bwrap, cold: llmDo('--rw', '.', '--pool', 'off'), warm: llmDo('--rw', '.') }

/** A session of each runner: its stage, and what it took for each command. */
function openSession(name, makeRunner, template) {
  const stage = makeStage()
  stage.env.PATH = PATH
  cpSync(template.cwd, stage.cwd, { recursive: true, preserveTimestamps: true })
  return { name, stage, runner: makeRunner(stage), times: [], faults: [], served: [] }
}

/* ---- a command ---- */

/** The stopwatch itself is started in the place and with the variables of the run, so no shell stands between. */
function timeOnce({ name, stage, runner, times, faults }, command) {
  const { line, status, variables } = command
  const given = runner.takesVariables ? {} : Object.fromEntries(variables)
  const env = { ...stage.env, ...runner.env, ...given }
  const watch = spawnSync(makeProgram('run'), ['1', '1', `!${status}`, ...runner.argv(command)], {
    cwd: stage.cwd,
    env,
    encoding: 'utf8',
  })
  times.push(watch.status === 0 ? Number(watch.stdout) : undefined)
  if (watch.status !== 0) faults.push(`${name}: ${line}: ${watch.stderr.trim()}`)
}

const rotated = (list, by) => list.map((_, at) => list[(at + by) % list.length])

/** @returns whether a sandbox of the pool has served it: then one is gone */
async function timeWarm(session, command, pool) {
  await pool.fill()
  const before = pool.names()
  timeOnce(session, command)
  const after = new Set(pool.names())
  return before.filter((name) => !after.has(name)).length === 1
}

async function runCommand(sessions, command, at, pool) {
  for (const session of rotated(sessions, at)) {
    if (session.name !== 'warm') timeOnce(session, command)
    else session.served.push(await timeWarm(session, command, pool))
  }
}

/* ---- a trace ---- */

async function runSessions(sessions, commands, onCommand) {
  const { stage } = sessions.find(({ name }) => name === 'warm')
  const use = async (pool) => {
    for (const [at, command] of commands.entries()) {
      onCommand(at)
      await runCommand(sessions, command, at, pool)
    }
  }
  await withPool(stage, READY, use, ['--rw', '.'])
}

async function runTrace(commands, onCommand) {
  const template = makeStage()
  makeRepository(template)
  const peers = Object.entries(NPM_PEERS)
    .filter(([name]) => isInstalled(name))
    .map(([name, make]) => [name, sharesTmp(make)])
  const sessions = [...Object.entries(OURS), ...peers].map(([name, make]) => openSession(name, make, template))
  try {
    await runSessions(sessions, commands, onCommand)
    return sessions
  } finally {
    for (const { stage } of [{ stage: template }, ...sessions]) stage.remove()
  }
}

/** A runner whose command ends otherwise than the trace says has not done the work. */
function needSameEnds(sessions) {
  const faults = sessions.filter(({ name }) => OURS[name] !== undefined).flatMap((session) => session.faults)
  if (faults.length > 0) throw new Error(`commands that ended otherwise than the trace says:\n${faults.join('\n')}`)
}

const sum = (values) => values.reduce((total, value) => total + value, 0)

function rowsOf(trace, sessions) {
  const byName = Object.fromEntries(sessions.map((session) => [session.name, session]))
  const { plain, bwrap, cold, warm } = Object.fromEntries(sessions.map(({ name, times }) => [name, times.slice(FIRST)]))
  const { served } = byName.warm
  // The time of the commands themselves is the same for all, and may be most of a session.
  const net = (times) => sum(times) - sum(plain)
  return [
    { row: `${trace}: total / naive bwrap, from the third command on`, value: sum(cold) / sum(bwrap), goal: 1.15 },
    { row: `${trace}: p95 / naive bwrap`, value: quantile(cold, 0.95) / quantile(bwrap, 0.95), goal: 1.5 },
    { row: `${trace}: p50 / naive bwrap`, value: median(cold) / median(bwrap) },
    { row: `${trace}: total / plain spawn`, value: sum(cold) / sum(plain) },
    {
      row: `${trace}: warm, total / naive bwrap`,
      value: sum(warm) / sum(bwrap),
      goal: 0.5,
      note: `${served.filter(Boolean).length} of ${served.length} runs found a sandbox ready`,
    },
    { row: `${trace}: warm, total over plain spawn / naive bwrap's over plain spawn`, value: net(warm) / net(bwrap) },
    ...Object.keys(NPM_PEERS).map((name) => peerRow(trace, byName[name], byName.bwrap, name)),
  ]
}

/** Only commands that ended as the trace says: a peer may have other walls. */
function peerRow(trace, peer, bwrap, name) {
  const row = `${trace}: ${name}, total / naive bwrap`
  if (peer === undefined) return { row, missing: 'not installed (hint: node bench/npm-peers.mjs)' }
  const { times, faults } = peer
  const right = times.flatMap((ns, at) => (ns === undefined || at < FIRST ? [] : [at]))
  if (right.length === 0) return { row, missing: `does not run here: ${faults[0]}` }
  const total = (all) => sum(right.map((at) => all[at]))
  const note = faults.length > 0 ? { note: `${faults.length} commands ended otherwise, first ${faults[0]}` } : {}
  return { row, value: total(times) / total(bwrap.times), ...note }
}

/** Rows for bench/main.mjs. */
export async function traces({ options, times, progress }) {
  const missing = PROGRAMS.find((program) => findProgram(program) === undefined)
  if (missing !== undefined) return [{ row: 'traces', missing: `${missing} is not installed` }]
  const rows = []
  for (const [trace, all] of Object.entries(readTraces())) {
    const commands = all.slice(0, options.runs)
    const sessions = await runTrace(commands, (at) => progress(`${trace}: ${at} of ${commands.length}`))
    needSameEnds(sessions)
    times[trace] = Object.fromEntries(sessions.map(({ name, times: ns }) => [name, ns.filter(Boolean)]))
    rows.push(...rowsOf(trace, sessions))
  }
  return rows
}

/* ---- for people who look for the reason ---- */

const ms = (ns) => (ns === undefined ? '-' : (ns / 1e6).toFixed(1))

/** Each command's milliseconds under each runner, and whether the pool served it. */
async function printTrace(trace, most) {
  const commands = readTraces()[trace]?.slice(0, most)
  if (commands === undefined) throw new Error(`expected one of ${Object.keys(readTraces()).join(', ')}, got "${trace}"`)
  const sessions = await runTrace(commands, () => undefined)
  console.log([...sessions.map(({ name }) => name), 'served', 'command'].join('\t'))
  for (const [at, { line }] of commands.entries())
    console.log(
      [...sessions.map(({ times }) => ms(times[at])), ...sessions.flatMap(({ served }) => served[at] ?? []), line].join(
        '\t',
      ),
    )
  for (const { faults } of sessions) for (const fault of faults) console.error(fault)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [trace, most] = process.argv.slice(2)
  await printTrace(trace, most === undefined ? undefined : Number(most)).catch((error) => {
    console.error(`traces: ${error.message}`)
    process.exitCode = 2
  })
}
