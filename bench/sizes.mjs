// Costs that grow with a number of hosts, zones, variables, and so on, each from 1 to 10 000 or as far as it is accepted. No curve may
// be steeper than linear, and too many are refused at once.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeStage } from './stage.mjs'
import { median } from './statistics.mjs'
import { timeByTurns } from './stopwatch.mjs'

const SIZES = [1, 10, 100, 1000, 10_000]
const ROUNDS = 7
/** Times ten in number may cost this much more than ten times as much: the rest is noise. */
const STEEPEST = 1.5
/** Milliseconds. A growth below it is noise. */
const LEAST_GROWTH = 3
const REFUSED_WITHIN = 600

const times = (count, one) => Array.from({ length: count }, (_, index) => one(index))

/** A profile with a list of that many entries. */
function profile(stage, name, count, lines) {
  const path = join(stage.directory, `${name}${count}.yaml`)
  writeFileSync(path, `sandbox:\n  extends: default\n${lines.join('\n')}\n`)
  return ['--profile', path]
}

function zones(stage, count, flag) {
  const root = mkdtempSync(join(stage.directory, 'zones-'))
  return times(count, (index) => {
    const path = join(root, String(index))
    mkdirSync(path)
    return [flag, path]
  }).flat()
}

/** A file of tasks that do nothing. */
function tasks(stage, count) {
  const path = join(stage.directory, `tasks${count}.jsonl`)
  const lines = times(count, (index) => `${JSON.stringify({ id: String(index), command: ['true'] })}\n`)
  writeFileSync(path, lines.join(''))
  return path
}

function manyRuns(stage, count, words) {
  for (let at = 0; at < count; at += 1) {
    const { status, stderr } = stage.run([stage.exec, ...words(at)])
    if (status !== 0) throw new Error(`${words(at).join(' ')}: ${stderr}`)
  }
}

/** Kind -> what makes so many of it, and the words of the run that has them. What others leave behind is made once for all sizes. */
const KINDS = {
  hosts: (stage, count) => [
    ...profile(stage, 'hosts', count, [
      '  network:',
      '    mode: restricted',
      '    allow:',
      ...times(count, (n) => `      - h${n}.example.com`),
    ]),
    '--',
    'true',
  ],
  'read-only zones': (stage, count) => [...zones(stage, count, '--ro'), '--', 'true'],
  'writable zones': (stage, count) => [...zones(stage, count, '--rw'), '--', 'true'],
  variables: (_, count) => [...times(count, (n) => ['--env', `V${n}=x`]).flat(), '--', 'true'],
  arguments: (_, count) => ['--', 'true', ...times(count, (n) => `a${n}`)],
  'protected names': (stage, count) => [
    ...profile(stage, 'protected', count, ['  protect:', ...times(count, (n) => `    - n${n}.txt`)]),
    '--rw',
    '.',
    '--',
    'true',
  ],
  'tasks of a batch': (stage, count) => [stage.llmDo, 'batch', tasks(stage, count)],
  'KiB of output in JSON': (_, count) => ['--json', '--', 'head', '-c', String(count * 1024), '/dev/zero'],
}

/** No more than that are measured: each of them is a run. */
const MOST = { 'tasks of a batch': 1000 }

/** Runs that wait for their end. @returns it */
async function liveRuns(stage, count) {
  const { cwd, env, exec } = stage
  const wait = ['--timeout', 'none', '--', 'sh', '-c', 'echo; exec sleep 3600']
  const runs = times(count, () => spawn(exec, wait, { cwd, env, stdio: ['ignore', 'pipe', 'ignore'] }))
  for (const run of runs) await once(run.stdout, 'data')
  return async () => {
    for (const run of runs) run.kill()
    for (const run of runs) if (run.exitCode === null && run.signalCode === null) await once(run, 'exit')
  }
}

/** A user's earlier runs have left it; the run itself does not ask for it. `words` come after `llm-do-exec`. */
const REMAINS = {
  'waiting layers': {
    most: 1000,
    leave: (stage, count) => manyRuns(stage, count, () => ['--cow', '.', '--', 'sh', '-c', 'echo x > file']),
    words: ['--cow', '.', '--', 'true'],
  },
  // Node makes each of them.
  'cached plans': {
    most: 100,
    leave: (stage, count) => manyRuns(stage, count, (n) => ['--timeout', `${n + 1000}s`, '--', 'true']),
    words: ['--', 'true'],
  },
  'records of live runs': { most: 100, leave: liveRuns, words: ['--', 'true'] },
}

/** Times of one size, in milliseconds; how long the refusal took where it is not accepted. */
async function timeOf(stage, words) {
  const command = words[0] === stage.llmDo ? words : [stage.exec, ...words]
  for (let time = 0; time < 2; time += 1)
    if (stage.run(command).status !== 0) return { refused: await onlyTime(stage, ['!125', ...command]) }
  return { accepted: await onlyTime(stage, command) }
}

async function onlyTime(stage, command) {
  const { it } = await timeByTurns({ stage, commands: { it: command }, rounds: ROUNDS })
  return median(it) / 1e6
}

/** The largest ratio of what each step of ten costs over ten times what the step before cost. */
function steepness(points) {
  const [first] = points
  const growth = points.map(({ ms }) => Math.max(ms - first.ms, LEAST_GROWTH))
  const steps = points.slice(2).map((_, index) => growth[index + 2] / growth[index + 1] / 10)
  return Math.max(...steps, 0)
}

function rowsOf(kind, { points, refused }) {
  const note = points.map(({ count, ms }) => `${count}: ${ms.toFixed(1)} ms`).join(', ')
  const rows = [
    { row: `${kind}: the steepest step of ten over linear`, value: steepness(points), goal: STEEPEST, note },
  ]
  return refused === undefined
    ? rows
    : [...rows, { row: `${kind}: ms until ${refused.count} are refused`, value: refused.ms, goal: REFUSED_WITHIN }]
}

async function curve({ stage, progress, kind, most = SIZES.at(-1), wordsFor }) {
  const points = []
  for (const count of SIZES.filter((size) => size <= most)) {
    progress(`sizes: ${kind}, ${count}`)
    const { accepted, refused } = await timeOf(stage, await wordsFor(stage, count))
    if (refused !== undefined) return { points, refused: { count, ms: refused } }
    points.push({ count, ms: accepted })
  }
  return { points }
}

async function remainsCurve(stage, progress, kind) {
  const { most, leave, words } = REMAINS[kind]
  const ends = []
  let there = 0
  const wordsFor = async (_, count) => {
    ends.push(await leave(stage, count - there))
    there = count
    return words
  }
  try {
    return await curve({ stage, progress, kind, most, wordsFor })
  } finally {
    for (const end of ends) await end?.()
  }
}

/** Another place for each kind: the remains of one do not count for another. */
async function inOwnPlace(measure) {
  const stage = makeStage()
  try {
    return await measure(stage)
  } finally {
    stage.remove()
  }
}

export async function sizes({ progress }) {
  const rows = []
  for (const [kind, wordsFor] of Object.entries(KINDS))
    rows.push(
      ...rowsOf(kind, await inOwnPlace((stage) => curve({ stage, progress, kind, most: MOST[kind], wordsFor }))),
    )
  for (const kind of Object.keys(REMAINS))
    rows.push(...rowsOf(kind, await inOwnPlace((stage) => remainsCurve(stage, progress, kind))))
  return rows
}
