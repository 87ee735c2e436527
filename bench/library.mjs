// What a program sees that uses the library; started by main.mjs in a process of its own, since memory and the event loop count.
//   node library.mjs spawn RUNS BWRAP_WORDS...   spawn of `true`, of bwrap and cold runs of the library, by turns
//   node library.mjs idle|flood                  the most memory of this process; during a flood of 1 GiB
// One line of JSON on stdout. LLM_DO_BENCH_ROOT names the build.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { exec } = await import(pathToFileURL(join(process.env.LLM_DO_BENCH_ROOT, 'dist/index.js')).href)

function spawned(words) {
  return new Promise((resolve, reject) => {
    spawn(words[0], words.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] })
      .on('error', reject)
      .on('close', (status) => (status === 0 ? resolve() : reject(new Error(`${words[0]}: status ${status}`))))
  })
}

async function sandboxed(command) {
  const { ok, message } = await exec({ command, mode: 'capture' })
  if (!ok) throw new Error(message)
}

async function timed(run) {
  const begun = process.hrtime.bigint()
  await run()
  return Number(process.hrtime.bigint() - begun)
}

async function spawnTimes(rounds, naive) {
  const ways = { spawn: () => spawned(['true']), bwrap: () => spawned(naive), cold: () => sandboxed(['true']) }
  const times = { spawn: [], bwrap: [], cold: [] }
  for (const run of Object.values(ways)) await run() // the first of each compiles, probes and remembers
  for (let round = 0; round < rounds; round += 1)
    for (const [name, run] of Object.entries(ways)) times[name].push(await timed(run))
  return times
}

const [what, rounds, ...naive] = process.argv.slice(2)
if (what === 'spawn') console.log(JSON.stringify(await spawnTimes(Number(rounds), naive)))
else {
  await sandboxed(what === 'flood' ? ['head', '-c', String(1024 ** 3), '/dev/zero'] : ['true'])
  console.log(JSON.stringify({ maxKiB: process.resourceUsage().maxRSS }))
}
