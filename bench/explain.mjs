// The costs of an observed run (--explain), for programs that open much. Each command runs by turns watched and not, in the same writable
// directory; a watched run is planned by node each time, which is a part of its start-up.
import { COMMANDS } from './cow.mjs'
import { makeStage } from './stage.mjs'
import { median, quantile } from './statistics.mjs'
import { timeByTurns } from './stopwatch.mjs'

const GOAL = 1.25

async function command(stage, cold, rounds, { name, script, prepare }) {
  prepare(stage)
  const shown = (...words) => [stage.exec, ...cold, '--timeout', '5m', '--rw', '.', ...words]
  const commands = {
    'nothing, plain': shown('--', 'sh', '-c', 'true'),
    'nothing, watched': shown('--explain', '--', 'sh', '-c', 'true'),
    plain: shown('--', 'sh', '-c', script),
    watched: shown('--explain', '--', 'sh', '-c', script),
  }
  for (const words of Object.values(commands)) stage.warm(words)
  const times = await timeByTurns({ stage, commands, rounds })
  const ratios = times.plain.map(
    (ns, round) => (times.watched[round] - median(times['nothing, watched'])) / (ns - median(times['nothing, plain'])),
  )
  const half = [0.25, 0.75].map((p) => quantile(ratios, p).toFixed(2))
  return {
    times,
    row: {
      row: `${name}: watched / not watched, net of start-up`,
      value: median(ratios),
      goal: GOAL,
      note: `middle half of ${rounds} rounds: ${half.join(' to ')}`,
    },
  }
}

/** Rows for bench/main.mjs, in a separate stage. */
export async function explain({ runs, times, cold }) {
  const stage = makeStage()
  try {
    const rows = []
    for (const one of COMMANDS) {
      const { times: measured, row } = await command(stage, cold, Math.max(5, Math.round(runs / 10)), one)
      times[`explain: ${one.name}`] = measured
      rows.push(row)
    }
    return rows
  } finally {
    stage.remove()
  }
}
