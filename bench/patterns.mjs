// What people do a thousand times: a task in a directory of its own, a large project. Each row is a ratio of one interleaved run.
import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { NAIVE } from './bwrap.mjs'
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

export const patterns = (bench) => freshRows(bench)
