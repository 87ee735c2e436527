// The daily work of agents in a writable zone: the packages of this project are installed from a cache, offline, and its types are checked.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './stage.mjs'
import { netRatio } from './statistics.mjs'
import { timeByTurns } from './stopwatch.mjs'

const INSTALL = 'npm ci --ignore-scripts --no-audit --no-fund --loglevel=error'
const COMMANDS = {
  'npm ci': (side) => `cd ${side} && ${INSTALL} --offline --cache ../packages >/dev/null`,
  tsc: (side) => `cd ${side} && node node_modules/typescript/bin/tsc --noEmit -p tsconfig.json`,
}
const SIDES = ['inside', 'outside']
const PROJECT = ['package.json', 'package-lock.json', 'tsconfig.json', 'src']
/** A run takes seconds. */
const ROUNDS_MAX = 8

/** A project for each side, because both write into it. Outside of any sandbox the packages may come from npm's registry, once. */
function makeProjects(stage) {
  for (const side of SIDES) {
    const directory = join(stage.cwd, side)
    mkdirSync(directory, { recursive: true })
    for (const name of PROJECT) cpSync(join(ROOT, name), join(directory, name), { recursive: true })
    const words = ['-c', `${INSTALL} --prefer-offline --cache "$0"`, join(stage.cwd, 'packages')]
    const { status, stderr } = spawnSync('sh', words, { cwd: directory, encoding: 'utf8' })
    if (status !== 0) return `npm ci: ${stderr.trim().split('\n').at(-1)}`
  }
  return undefined
}

/** The guard looks through all that is in the zone, so `stage` should hold nothing else. */
export async function work({ stage, runs, times, cold, progress }) {
  progress('work: packages')
  const missing = makeProjects(stage)
  const rows = []
  for (const [name, scriptOf] of Object.entries(COMMANDS)) {
    const row = { row: `${name} of this project, net of start-up`, goal: 1.03 }
    rows.push(missing === undefined ? { ...row, ...(await measure(name, scriptOf)) } : { ...row, missing })
  }
  return rows

  async function measure(name, scriptOf) {
    const inside = (text) => [stage.exec, ...cold, '--rw', '.', '--memory', '4g', '--', 'sh', '-c', text]
    stage.warm(inside('true'))
    times[name] = await timeByTurns({
      stage,
      commands: {
        'true inside': inside('true'),
        'true outside': ['sh', '-c', 'true'],
        inside: inside(scriptOf('inside')),
        outside: ['sh', '-c', scriptOf('outside')],
      },
      rounds: Math.min(ROUNDS_MAX, runs),
      onRound: (round) => progress(`work: ${name}, round ${round}`),
    })
    return netRatio(times[name])
  }
}
