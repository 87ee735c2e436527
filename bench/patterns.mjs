// Patterns that people repeat a thousand times: a task in a new directory, a large project. Each row is a ratio of one interleaved run.
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { NAIVE } from './bwrap.mjs'
import { withPool } from './pool.mjs'
import { median } from './statistics.mjs'
import { timeByTurns } from './stopwatch.mjs'

/** Goals of a fresh directory over a known one, and over naive bwrap in a fresh one. */
const FRESH_GOAL = 1.15
const FRESH_BWRAP_GOAL = 1.3

const FORMS = {
  'no option': [],
  '--rw .': ['--rw', '.'],
  '--cow .': ['--cow', '.'],
  '--json --rw .': ['--json', '--rw', '.'],
  '--rw DIR:/work': ['--rw', 'DIR:/work'],
}

/** In each round a directory that nothing has run in: one behind the same link, and one at the same path. */
function freshDirectories(stage) {
  const [next, job, known] = ['next', 'job', 'known'].map((name) => join(stage.directory, name))
  let count = 0
  for (const path of [job, known]) mkdirSync(path)
  return {
    next,
    job,
    known,
    make() {
      count += 1
      const directory = join(stage.directory, `task${count}`)
      mkdirSync(directory)
      symlinkSync(directory, `${next}.new`)
      renameSync(`${next}.new`, next)
      renameSync(job, `${job}${count}`)
      mkdirSync(job)
    },
  }
}

async function freshRows(bench) {
  const { stage, runs } = bench
  const fresh = freshDirectories(stage)
  const commands = { bwrap: [`@${fresh.next}`, ...NAIVE, 'true'] }
  for (const [name, words] of Object.entries(FORMS)) {
    const commandFor = (directory) => {
      const named = words.map((word) => word.replace('DIR', directory))
      return [stage.exec, ...bench.cold, ...named, '--', 'true']
    }
    stage.warm(commandFor(fresh.known))
    commands[`${name}, known`] = commandFor(fresh.known)
    const isNamed = words.some((word) => word.startsWith('DIR'))
    commands[`${name}, fresh`] = [...(isNamed ? [] : [`@${fresh.next}`]), ...commandFor(fresh.job)]
  }
  const before = () => fresh.make()
  const times = await timeByTurns({ stage, commands, rounds: runs, before })
  bench.times['fresh directories'] = times
  const ratio = (one, other) => median(times[one]) / median(times[other])
  return [
    ...Object.keys(FORMS).map((name) => ({
      row: `${name} in a fresh directory / in a known one`,
      value: ratio(`${name}, fresh`, `${name}, known`),
      goal: FRESH_GOAL,
    })),
    {
      row: '--rw . in a fresh directory / naive bwrap',
      value: ratio('--rw ., fresh', 'bwrap'),
      goal: FRESH_BWRAP_GOAL,
    },
  ]
}

/** Ready for runs one after the other, and for four at once; rounds of four in a block of a flood, ten times as many runs as the pool holds. */
const [FEW, MANY, FLOOD_ROUNDS, FLOOD_BLOCKS] = [2, 8, 20, 5]
const FRESH_POOL_GOAL = 0.55
const FLOOD_GOALS = { cold: 0.9, pool: 1.25 }

/** Each process in a directory that nothing has run in. */
const inNew = (stage, words) => [
  'sh',
  '-c',
  'mkdir "$0$$" && cd "$0$$" && exec "$@"',
  join(stage.directory, 'new'),
  ...words,
]

/** One pool for all directories. */
function poolRow(bench) {
  const { stage, runs } = bench
  const warm = [stage.exec, '--rw', '.', '--', 'true']
  stage.warm(warm)
  return withPool(
    stage,
    FEW,
    async ({ fill }) => {
      const commands = {
        bwrap: inNew(stage, [...NAIVE, 'true']),
        pool: inNew(stage, warm),
        none: inNew(stage, ['true']),
      }
      const times = await timeByTurns({ stage, commands, rounds: runs, before: fill })
      bench.times['fresh directories, pool'] = times
      const without = (name) => median(times[name]) - median(times.none)
      return {
        row: 'pool, --rw . in a fresh directory / naive bwrap, both without making the directory',
        value: without('pool') / without('bwrap'),
        goal: FRESH_POOL_GOAL,
      }
    },
    ['--rw', '.'],
  )
}

/** Blocks of one command by turns; the keeper alone refills the pool meanwhile. */
function floodRows(bench) {
  const { stage } = bench
  const exec = [stage.exec, '--rw', '.']
  const words = {
    bwrap: [...NAIVE, 'true'],
    cold: [...exec, ...bench.cold, '--', 'true'],
    pool: [...exec, '--', 'true'],
  }
  for (const command of [words.cold, words.pool]) stage.warm(command)
  const measure = async ({ fill }) => {
    const times = Object.fromEntries(Object.keys(words).map((name) => [name, []]))
    for (let block = 0; block < FLOOD_BLOCKS; block += 1)
      for (const [name, command] of Object.entries(words)) {
        await fill()
        const commands = { [name]: inNew(stage, command) }
        const { [name]: rows } = await timeByTurns({ stage, commands, rounds: FLOOD_ROUNDS, atOnce: 4 })
        times[name].push(rows.reduce((sum, ns) => sum + ns, 0))
      }
    bench.times['fresh directories, four at once'] = times
    return ['cold', 'pool'].map((name) => ({
      row: `four at once, each in a fresh directory, ${name} / bwrap`,
      value: median(times.bwrap) / median(times[name]),
      goal: FLOOD_GOALS[name],
      least: true,
    }))
  }
  return withPool(stage, MANY, measure, ['--rw', '.'])
}

/** Directories below a root, in a square of two levels, and files in each. Goals in ms over an empty directory: of root, of another user; while a host of runs is up. */
const TREES = {
  '10000 files': { side: 48, files: 4, goals: [3, 5], watched: 1 },
  '100000 files': { side: 115, files: 7, goals: [18, 28], watched: 2 },
}

function makeTree(path, { side, files }) {
  const range = (count) => Array.from({ length: count }, (_, index) => index)
  for (const place of range(side).flatMap((one) => range(side).map((other) => join(path, `d${one}`, `e${other}`)))) {
    mkdirSync(place, { recursive: true })
    for (const file of range(files)) writeFileSync(join(place, `file${file}`), '')
  }
}

/** More than a watcher waits before it reads a zone, and runs that miss it. */
const SETTLING_RUNS = 5
const SETTLING_MS = 400

async function settle(stage, commands) {
  for (let left = SETTLING_RUNS; left > 0; left -= 1) {
    for (const command of Object.values(commands)) stage.warm(command)
    await sleep(SETTLING_MS)
  }
}

async function largeRows(bench) {
  const { stage, runs } = bench
  const places = { empty: join(stage.directory, 'empty') }
  mkdirSync(places.empty)
  for (const [name, tree] of Object.entries(TREES)) {
    places[name] = join(stage.directory, name.replace(' ', '-'))
    makeTree(places[name], tree)
  }
  const inPlaces = (words) =>
    Object.fromEntries(Object.entries(places).map(([name, place]) => [name, [`@${place}`, ...words]]))
  const exec = [stage.exec, '--rw', '.', ...bench.cold, '--', 'true']
  const measure = async (title, goalOf) => {
    await settle(
      stage,
      Object.fromEntries(Object.entries(places).map(([name, place]) => [name, ['env', '-C', place, ...exec]])),
    )
    const times = await timeByTurns({ stage, commands: inPlaces(exec), rounds: runs })
    bench.times[`large directories${title}`] = times
    return Object.entries(TREES).map(([name, tree]) => ({
      row: `--rw . in ${name}${title}, ms over an empty directory`,
      value: (median(times[name]) - median(times.empty)) / 1e6,
      goal: goalOf(tree),
    }))
  }
  const alone = await measure('', ({ goals }) => goals[process.getuid() === 0 ? 0 : 1])
  const watched = await withPool(stage, 1, () => measure(' while a pool is up', (tree) => tree.watched), ['--rw', '.'])
  return [...alone, ...watched]
}

export const patterns = async (bench) => [
  ...(await freshRows(bench)),
  await poolRow(bench),
  ...(await floodRows(bench)),
  ...(await largeRows(bench)),
]
