// How often the end of a run is reported wrongly while the machine is busy: counts, no times.
//
//   node bench/ends.mjs [RUNS] [JOBS]     RUNS of each kind (10000), JOBS at once (four for each processor)
//
// Exits with 1 after a wrong report.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

const PROGRAM = join(import.meta.dirname, '../bin/llm-do-exec')
const [runs = 10_000, jobs = 4 * availableParallelism()] = process.argv.slice(2).map(Number)

const KINDS = [
  { command: ['no-such-command'], status: 127 },
  { command: ['/usr'], status: 126 },
  { command: ['true'], status: 0 },
  { command: ['sh', '-c', 'exit 3'], status: 3 },
  { command: ['sh', '-c', 'kill -KILL $$'], status: 137 },
]

async function statusOf(command) {
  const child = spawn(PROGRAM, ['--memory', '256m', '--', ...command], { stdio: 'ignore' })
  const [status] = await once(child, 'close')
  return status
}

async function count({ command, status }) {
  const others = new Map()
  let left = runs
  const work = async () => {
    while (left-- > 0) {
      const told = await statusOf(command)
      if (told !== status) others.set(told, (others.get(told) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  const wrong = [...others].map(([told, times]) => `${told} ${times} times`).join(', ')
  console.log(`${command.join(' ').padEnd(24)} expected ${String(status).padStart(3)}: ${wrong || 'always'}`)
  return others.size
}

let wrong = 0
for (const kind of KINDS) wrong += await count(kind)
process.exitCode = wrong > 0 ? 1 : 0
