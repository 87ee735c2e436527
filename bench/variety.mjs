// Agents never run twice the same: other programs, other variables, the rules of a worker, ends other than a plain exit. Each is
// run once next to the same by naive bwrap, in a place where only the first run has left a plan.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NAIVE } from './bwrap.mjs'
import { makeStage } from './stage.mjs'
import { median, quantile } from './statistics.mjs'
import { timeByTurns } from './stopwatch.mjs'

/** Of the coreutils: each prints its version and ends. */
const PROGRAMS =
  `true uname date id pwd whoami arch nproc groups tty env printenv echo ls stat wc cat head tail sort uniq cut tr
  basename dirname seq expr df du sum cksum md5sum`
    .split(/\s+/)
    .filter((name) => existsSync(join('/usr/bin', name)))

const WORKER = `---
name: w
toolsets:
  shell:
    rules:
      - { pattern: git push, approval: blocked }
      - { pattern: "true *", approval: preApproved }
      - { pattern: "echo *", approval: preApproved }
---
Do it.
`

/** A file that was just written is not believed for this long; milliseconds. */
const SETTLED_MS = 200

/** Runs each pair once. @returns name -> nanoseconds, in the order of the pairs */
async function timePairs(stage, pairs) {
  const all = []
  for (const commands of pairs) all.push(await timeByTurns({ stage, commands, rounds: 1 }))
  return Object.fromEntries(Object.keys(pairs[0]).map((name) => [name, all.flatMap((times) => times[name])]))
}

const sum = (values) => values.reduce((total, value) => total + value, 0)

async function programs(stage, cold) {
  const names = PROGRAMS.slice(0, 22)
  const pairs = names.map((name) => ({
    bwrap: [...NAIVE, name, '--version'],
    cold: [stage.exec, ...cold, '--', name, '--version'],
  }))
  const [first, second, ...rest] = pairs
  await timePairs(stage, [first, second])
  return timePairs(stage, rest)
}

async function variables(stage, cold) {
  const words = (value) => [stage.exec, ...cold, '--env', `K=${value}`, '--', 'true']
  stage.run(words('first'))
  stage.run(words('first'))
  const pairs = Array.from({ length: 20 }, (_, value) => ({ bwrap: [...NAIVE, 'true'], cold: words(value) }))
  return timePairs(stage, pairs)
}

async function worker(stage, cold, runs) {
  writeFileSync(join(stage.cwd, 'w.worker'), WORKER)
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
  const without = [stage.exec, ...cold, '--', 'true']
  const under = [stage.exec, ...cold, '--worker', 'w', '--', 'true']
  const list = [stage.exec, ...cold, '-c', 'echo a | true && echo b']
  const listUnder = [stage.exec, ...cold, '--worker', 'w', '--allow-shell-syntax', '-c', 'echo a | true && echo b']
  const commands = { without, under, list, 'list under': listUnder }
  for (const words of Object.values(commands)) stage.warm(words)
  return timeByTurns({ stage, commands, rounds: runs })
}

/** @param form what is asked for of the result */
function endsIn(stage, cold, form) {
  const run = (...words) => [stage.exec, ...cold, ...form, '--', ...words]
  return [run('sh', '-c', 'exit 0'), ['!127', ...run('no-such-program')], ['!139', ...run('sh', '-c', 'kill -SEGV $$')]]
}

async function ends(stage, cold, runs) {
  const [exit, missing, signal] = endsIn(stage, cold, [])
  const [jsonExit, jsonMissing, jsonSignal] = endsIn(stage, cold, ['--json'])
  const commands = { 'an exit': exit, 'not found': missing, 'a signal': signal }
  const inJson = { 'json: an exit': jsonExit, 'json: not found': jsonMissing, 'json: a signal': jsonSignal }
  for (const words of [exit, jsonExit]) stage.warm(words)
  return timeByTurns({ stage, commands: { ...commands, ...inJson }, rounds: runs })
}

const forms = (stage, cold) => ({
  plain: [stage.exec, ...cold, '--', 'true'],
  json: [stage.exec, ...cold, '--json', '--', 'true'],
  timeout: [stage.exec, ...cold, '--timeout', '20s', '--', 'true'],
  audit: [stage.exec, ...cold, '--audit', 'log', '--', 'true'],
})

async function options(stage, cold, runs) {
  const commands = forms(stage, cold)
  for (const words of Object.values(commands)) stage.warm(words)
  return timeByTurns({ stage, commands, rounds: runs })
}

const ratio = (times, one, other) => median(times[one]) / median(times[other])

/** In a separate stage: no other benchmark may have left a plan there. */
export async function variety({ runs, times, cold }) {
  const stage = makeStage()
  try {
    const few = Math.max(5, Math.round(runs / 4))
    const named = await programs(stage, cold)
    const valued = await variables(stage, cold)
    const ruled = await worker(stage, cold, few)
    const ended = await ends(stage, cold, few)
    const formed = await options(stage, cold, few)
    Object.assign(times, { 'other programs': named, 'other values': valued, worker: ruled, ends: ended, forms: formed })
    return [
      {
        row: '20 other programs, each once: total / naive bwrap',
        value: sum(named.cold) / sum(named.bwrap),
        goal: 1.15,
      },
      {
        row: '20 other programs: p95 / naive bwrap',
        value: quantile(named.cold, 0.95) / median(named.bwrap),
        goal: 1.5,
      },
      { row: '20 other values of --env: total / naive bwrap', value: sum(valued.cold) / sum(valued.bwrap), goal: 1.15 },
      {
        row: 'a run under a worker, ms over one without',
        value: (median(ruled.under) - median(ruled.without)) / 1e6,
        goal: 2,
      },
      {
        row: 'a list in -c under a worker, ms over one without',
        value: (median(ruled['list under']) - median(ruled.list)) / 1e6,
        goal: 2,
      },
      { row: 'a program that is not there / a plain exit', value: ratio(ended, 'not found', 'an exit'), goal: 1.3 },
      { row: 'death by a signal / a plain exit', value: ratio(ended, 'a signal', 'an exit'), goal: 1.3 },
      { row: '--json: not there / a plain exit', value: ratio(ended, 'json: not found', 'json: an exit'), goal: 1.3 },
      { row: '--json: death by a signal / exit', value: ratio(ended, 'json: a signal', 'json: an exit'), goal: 1.3 },
      { row: '--timeout / without', value: ratio(formed, 'timeout', 'plain'), goal: 1.3 },
      { row: '--json / without', value: ratio(formed, 'json', 'plain'), goal: 1.6 },
      { row: '--audit / without', value: ratio(formed, 'audit', 'plain'), goal: 1.3 },
    ]
  } finally {
    stage.remove()
  }
}
