// The costs of the limits of a run: the launch file of the default profile with and without the records that hold them, by turns.
//   node bench/limits.mjs [RUNS]
// Everything else is the same in both, the walls, the record of the run included. Exit status 0 when the
// goal is met, 1 when it is not, 2 when the measuring itself failed.
import { readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { makeStage, ROOT } from './stage.mjs'
import { median, quantile } from './statistics.mjs'
import { makeProgram, timeByTurns } from './stopwatch.mjs'

/** Entries of limits: native/contract.yaml. The limits of kernel memory that every run has are in both files. */
const LIMITS = new Set(['affinity', 'cgroup', 'set', 'watch', 'cpu-time', 'deadline'])
/** RLIMIT_NPROC is the limit of processes without a controller. */
const NPROC = '6'

/** Milliseconds: the whole of making, limiting, entering, reading and removing a group. */
const GOAL_MS = 0.3

/** Verb -> how many words follow it. */
function readVerbs() {
  const { verbs } = parse(readFileSync(join(ROOT, 'native/contract.yaml'), 'utf8'))
  return new Map(Object.entries(verbs).map(([verb, { words }]) => [verb, words.length]))
}

function records([, ...words]) {
  const verbs = readVerbs()
  const found = []
  for (let at = 0; at < words.length && words[at] !== 'end'; at += found.at(-1).length)
    found.push(words.slice(at, at + 1 + verbs.get(words[at])))
  return found
}

const isLimit = ([verb, number]) => LIMITS.has(verb) || (verb === 'rlimit' && number === NPROC)

function writeLaunchFile(path, magic, some) {
  writeFileSync(path, [magic, ...some.flat(), 'end', ''].join('\0'), { encoding: 'latin1', mode: 0o600 })
}

/** Both launch files, and what the first of them says about limits. */
function launchFiles(stage) {
  const words = stage.launchWords()
  const all = records(words)
  const files = { with: join(stage.directory, 'with-limits'), without: join(stage.directory, 'without-limits') }
  writeLaunchFile(files.with, words[0], all)
  writeLaunchFile(
    files.without,
    words[0],
    all.filter((record) => !isLimit(record)),
  )
  return { files, said: all.filter(isLimit).map((record) => record.join(' ')) }
}

/** One more row for bench/main.mjs: `stage`, `runs` and `times` are those of its groups. */
export async function limits({ stage, runs, times = {} }) {
  const exec = [stage.exec, '--', '/bin/true']
  stage.warm(exec)
  const { files, said } = launchFiles(stage)
  const starter = makeProgram('launch')
  const launch = (file) => [starter, join(ROOT, 'bin/llm-do'), file, '/bin/true']
  // A B B A: whatever a run leaves to the next one, and whatever grows with time, falls on both alike.
  const [one, other] = [launch(files.with), launch(files.without)]
  const commands = {
    'without limits': other,
    'with limits': one,
    'with limits, again': one,
    'without limits, again': other,
  }
  const seen = await timeByTurns({ stage, commands, rounds: Math.max(runs, 200) })
  times.limits = seen
  const pairs = (name) => seen[name].map((ns, round) => (ns + seen[`${name}, again`][round]) / 2)
  const [held, free] = [pairs('with limits'), pairs('without limits')]
  // The difference is a thirtieth of a run; taken round by round it is not touched by the machine's load, which moves slowly.
  const difference = median(held.map((ns, round) => ns - free[round]))
  return [
    { row: 'limits: ms a run over one without', value: difference / 1e6, goal: GOAL_MS, said },
    { row: 'limits: with / without', value: median(held) / median(free), said },
  ]
}

async function main() {
  const stage = makeStage()
  try {
    const times = {}
    const rows = await limits({ stage, runs: Number(process.argv[2] ?? 400), times })
    console.log(`load ${loadavg()[0].toFixed(2)}; ${rows[0].said.join(', ')}`)
    for (const [name, ns] of Object.entries(times.limits))
      console.log(
        `${name}: median ${(median(ns) / 1e6).toFixed(3)} ms, p25 ${(quantile(ns, 0.25) / 1e6).toFixed(3)} ms, ${ns.length} runs`,
      )
    for (const { row, value, goal } of rows)
      console.log(`${row}: ${value.toFixed(3)}${goal === undefined ? '' : ` (goal ${goal})`}`)
    return rows.every(({ value, goal }) => goal === undefined || value <= goal) ? 0 : 1
  } finally {
    stage.remove()
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await main().catch((error) => {
    console.error(`limits: ${error.message}`)
    return 2
  })
}
