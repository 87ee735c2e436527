// Times of processes, by turns, taken by a small C program: see run.c.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, renameSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = dirname(HERE)
const FLAGS = [
  '-D_GNU_SOURCE',
  '-std=gnu11',
  '-O2',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-static',
  '-s',
  `-I${join(ROOT, 'native')}`,
]

const changedAt = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** The program of bench/NAME.c. musl, because its start-up and spawn are the shortest; gcc on machines without musl. */
export function makeProgram(name) {
  const source = join(HERE, `${name}.c`)
  const program = join(ROOT, `build/bench-${name}`)
  if (changedAt(program) > changedAt(source)) return program
  mkdirSync(dirname(program), { recursive: true })
  const made = `${program}.${process.pid}`
  const tries = ['musl-gcc', 'gcc'].map((compiler) =>
    spawnSync(compiler, [...FLAGS, '-o', made, source], { encoding: 'utf8' }),
  )
  if (!tries.some(({ status }) => status === 0))
    throw new Error(`${name}.c: cannot be compiled: ${tries.map(({ stderr }) => stderr).join('')}`)
  renameSync(made, program)
  return program
}

/**
 * Runs every command `rounds` times by turns, each round in another order.
 * @param commands name -> argv
 * @param before is awaited ahead of each round, outside of what is measured
 * @returns name -> nanoseconds of each round
 */
export async function timeByTurns({ stage, commands, rounds, atOnce = 1, onRound = () => undefined, before }) {
  const names = Object.keys(commands)
  const rows = []
  const onRow = (row) => onRound(rows.push(row))
  if (before === undefined) await runRounds({ stage, commands, rounds, atOnce, onRow })
  else
    for (let round = 0; round < rounds; round += 1) {
      await before()
      await runRounds({ stage, commands, rounds: 1, atOnce, onRow })
    }
  return Object.fromEntries(names.map((name, index) => [name, rows.map((row) => row[index])]))
}

async function runRounds({ stage, commands, rounds, atOnce, onRow }) {
  const words = Object.values(commands).flatMap((command, index) => (index === 0 ? command : [':::', ...command]))
  const child = spawn(makeProgram('run'), [String(rounds), String(atOnce), ...words], {
    cwd: stage.cwd,
    env: stage.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const chunks = []
  child.stderr.on('data', (chunk) => chunks.push(chunk))
  const ended = new Promise((resolve) => child.once('close', resolve))
  for await (const line of createInterface({ input: child.stdout })) onRow(line.split(' ').map(Number))
  const status = await ended
  if (status !== 0) throw new Error(`the stopwatch stopped: ${Buffer.concat(chunks).toString().trim()}`)
}
