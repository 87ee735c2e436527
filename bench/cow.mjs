// The costs of a copy-on-write directory: to start, for programs that read and write much, and to list and apply their changes. Each command
// runs by turns in the same directory copy-on-write and writable; its files are removed before the next round.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { makeStage, ROOT } from './stage.mjs'
import { median, quantile } from './statistics.mjs'
import { timeByTurns } from './stopwatch.mjs'

const llmDo = (stage) => join(dirname(stage.exec), 'llm-do')

function must(stage, words) {
  const { status, stdout, stderr } = stage.run(words)
  if (status !== 0) throw new Error(`${words.slice(0, 6).join(' ')}: status ${status}: ${stderr}`)
  return stdout.toString()
}

/** Root's layers are all in one place: only those of this stage go. */
function discardLayers(stage) {
  const mine = layersOf(stage)
  if (mine.length > 0) must(stage, [llmDo(stage), 'discard', ...mine])
}

const layersOf = (stage) =>
  JSON.parse(must(stage, [llmDo(stage), 'ps', '--cow', '--json']))
    .filter(({ zones }) => zones.some(({ source }) => source.startsWith(stage.directory)))
    .map(({ id }) => id)

/* ---- commands ---- */

const sources = (count) =>
  Array.from(
    { length: count },
    (_, file) =>
      `${Array.from({ length: 60 }, (_, n) => `int f${file}_${n}(int x) { for (int i = 0; i < x; i++) x ^= i * ${n + 3}; return x; }`).join('\n')}\n`,
  )

function writeFiles(directory, count, textOf) {
  mkdirSync(directory, { recursive: true })
  for (let at = 0; at < count; at += 1) writeFileSync(join(directory, `${at}.txt`), textOf(at))
}

/** Each is net of a run of `true`, and leaves what it made, which the next round of the writable side begins by removing. */
export const COMMANDS = [
  {
    name: 'gcc -O1 of 40 files',
    goal: 1.15,
    script: 'cd c && rm -f *.o && gcc -O1 -c *.c',
    prepare: ({ cwd }) => {
      mkdirSync(join(cwd, 'c'))
      for (const [at, text] of sources(40).entries()) writeFileSync(join(cwd, `c/${at}.c`), text)
    },
  },
  {
    name: 'npm ci of this project',
    goal: 1.1,
    script:
      'cd npm && rm -rf node_modules && npm ci --offline --ignore-scripts --no-audit --no-fund --cache ../cache >/dev/null',
    prepare: (stage) => {
      mkdirSync(join(stage.cwd, 'npm'))
      for (const name of ['package.json', 'package-lock.json'])
        copyFileSync(join(ROOT, name), join(stage.cwd, 'npm', name))
      must(stage, ['sh', '-c', 'cd npm && npm ci --ignore-scripts --no-audit --no-fund --cache ../cache >/dev/null'])
    },
  },
  {
    name: 'git status of 10000 files',
    goal: 3.5,
    script: 'cd git && git status --short >/dev/null',
    prepare: (stage) => {
      for (let at = 0; at < 50; at += 1) writeFiles(join(stage.cwd, `git/${at}`), 200, (file) => `${at} ${file}\n`)
      must(stage, ['sh', '-c', 'cd git && git init -q && git add -A'])
    },
  },
]

async function command(stage, cold, rounds, { name, goal, script, prepare }) {
  prepare(stage)
  const shown = (...words) => [stage.exec, ...cold, '--timeout', '5m', ...words]
  const commands = {
    'nothing, writable': shown('--rw', '.', '--', 'sh', '-c', 'true'),
    'nothing, copy-on-write': shown('--cow', '.', '--', 'sh', '-c', 'true'),
    writable: shown('--rw', '.', '--', 'sh', '-c', script),
    'copy-on-write': shown('--cow', '.', '--', 'sh', '-c', script),
  }
  for (const words of Object.values(commands)) stage.warm(words)
  const times = await timeByTurns({ stage, commands, rounds, before: () => discardLayers(stage) })
  const ratios = times.writable.map(
    (ns, round) =>
      (times['copy-on-write'][round] - median(times['nothing, copy-on-write'])) /
      (ns - median(times['nothing, writable'])),
  )
  const half = [0.25, 0.75].map((p) => quantile(ratios, p).toFixed(2))
  return {
    times,
    row: {
      row: `${name}: copy-on-write / writable, net of start-up`,
      value: median(ratios),
      goal,
      note: `middle half of ${rounds} rounds: ${half.join(' to ')}`,
    },
  }
}

/* ---- start ---- */

async function start(stage, cold, rounds, directory) {
  const shown = (flag) => [stage.exec, ...cold, flag, directory, '--', 'true']
  const commands = { writable: shown('--rw'), 'copy-on-write': shown('--cow') }
  for (const words of Object.values(commands)) stage.warm(words)
  return timeByTurns({ stage, commands, rounds })
}

/* ---- verbs ---- */

/** @returns median seconds */
function timeOf(rounds, act) {
  const seconds = Array.from({ length: rounds }, () => {
    const began = performance.now()
    act()
    return (performance.now() - began) / 1000
  })
  return median(seconds)
}

const EDIT = `
for d in 0 1 2 3 4; do cd e/$d; sed -i s/old/new/ ?.txt ??.txt [1-5]??.txt; rm 9??.txt; cd ../..; done
mkdir made; for n in $(seq 1500); do echo $n > made/$n; done
`

function verbs(stage, cold) {
  for (let at = 0; at < 5; at += 1) writeFiles(join(stage.cwd, `e/${at}`), 1000, (file) => `old ${file}\n`)
  const edit = (script) => {
    must(stage, [stage.exec, ...cold, '--cow', '.', '--', 'sh', '-ec', script])
    const [id] = layersOf(stage)
    return id
  }
  const few = edit('sed -i s/old/new/ e/0/* e/1/* e/2/*')
  const diff = timeOf(5, () => must(stage, [llmDo(stage), 'diff', few]))
  discardLayers(stage)
  const many = edit(EDIT)
  const operations = JSON.parse(must(stage, [llmDo(stage), 'changes', '--json', many])).changes.length
  const apply = timeOf(3, () => {
    must(stage, [llmDo(stage), 'apply', many])
    must(stage, [llmDo(stage), 'undo', many])
  })
  discardLayers(stage)
  return [
    { row: 'diff of 3000 files, seconds', value: diff, goal: 1 },
    {
      row: `apply of ${operations} changes and its undo, seconds`,
      value: apply,
      goal: 4,
      note: 'goal: 2 seconds each of 5000',
    },
  ]
}

/** A file that changes is applied at the end of its run. */
async function applied(stage, cold, rounds) {
  const words = (script) => [stage.exec, ...cold, '--cow', '.', '--apply', 'on-success', '--', 'sh', '-c', script]
  const commands = { nothing: words(':'), 'one file': words('date +%N > stamp') }
  for (const command of Object.values(commands)) stage.warm(command)
  const times = await timeByTurns({ stage, commands, rounds })
  discardLayers(stage)
  const value = median(times['one file']) / median(times.nothing)
  return { row: '--apply on-success of one file / nothing changed', value, goal: 2.5 }
}

/** Rows for bench/main.mjs, in a separate stage. */
export async function cow({ runs, times, cold }) {
  const stage = makeStage()
  try {
    const rows = []
    for (const [directory, count] of [
      ['empty', 0],
      ['project', 1000],
    ]) {
      writeFiles(join(stage.cwd, directory), count, String)
      const started = await start(stage, cold, runs, directory)
      times[`copy-on-write: start, ${count} files`] = started
      const value = (median(started['copy-on-write']) - median(started.writable)) / 1e6
      rows.push({ row: `start with --cow over --rw, ${count} files, ms`, value, goal: 1 })
    }
    rows.push(await applied(stage, cold, runs))
    for (const one of COMMANDS) {
      const { times: measured, row } = await command(stage, cold, Math.max(5, Math.round(runs / 10)), one)
      times[`copy-on-write: ${one.name}`] = measured
      rows.push(row)
    }
    return [...rows, ...verbs(stage, cold)]
  } finally {
    discardLayers(stage)
    stage.remove()
  }
}
