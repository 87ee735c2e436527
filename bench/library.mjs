// Measures a program that uses the library; main.mjs starts it in a separate process, since memory and the event loop count.
//   node library.mjs cold RUNS BWRAP_WORDS...    spawn of `true`, of bwrap, cold runs of an open sandbox and exec(), by turns
//   node library.mjs warm RUNS                   spawn of `true` and warm runs, by turns, each with a sandbox ready for it
//   node library.mjs idle|flood cold|warm        the most memory of this process; during a flood of 1 GiB
// One line of JSON on stdout. LLM_DO_BENCH_ROOT names the build.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

const { exec, openSandbox } = await import(pathToFileURL(join(process.env.LLM_DO_BENCH_ROOT, 'dist/index.js')).href)

const TRUE = ['true']
const FLOOD = ['head', '-c', String(1024 ** 3), '/dev/zero']
/** Kept ready; a run waits for two of them, so that none is built during it. */
const SIZE = 4
const READY_MS = 10_000

function spawned(words) {
  return new Promise((resolve, reject) => {
    spawn(words[0], words.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] })
      .on('error', reject)
      .on('close', (status) => (status === 0 ? resolve() : reject(new Error(`${words[0]}: status ${status}`))))
  })
}

async function succeed(run) {
  const { ok, message } = await run
  if (!ok) throw new Error(message)
}

async function timed(run) {
  const begun = process.hrtime.bigint()
  await run()
  return Number(process.hrtime.bigint() - begun)
}

async function timesByTurns(ways, { rounds, before = async () => undefined }) {
  const times = Object.fromEntries(Object.keys(ways).map((name) => [name, []]))
  for (const run of Object.values(ways)) await run() // the first of each compiles, probes and remembers
  for (let round = 0; round < rounds; round += 1)
    for (const [name, run] of Object.entries(ways)) {
      await before()
      times[name].push(await timed(run))
    }
  return times
}

async function filled(sandbox) {
  const end = Date.now() + READY_MS
  while (sandbox.ready() < SIZE && Date.now() < end) await sleep(5)
  await sleep(5) // the last one that was built goes to sleep
}

async function withSandbox(warm, use) {
  const sandbox = await openSandbox({ warm })
  try {
    return await use(sandbox)
  } finally {
    await sandbox.close()
  }
}

const coldTimes = (rounds, naive) =>
  withSandbox(0, async (sandbox) => {
    const ways = {
      bwrap: () => spawned(naive),
      spawn: () => spawned(TRUE),
      cold: () => succeed(sandbox.exec({ command: TRUE })),
      'exec()': () => succeed(exec({ command: TRUE })),
    }
    return { times: await timesByTurns(ways, { rounds }) }
  })

const warmTimes = (rounds) =>
  withSandbox(SIZE, async (sandbox) => {
    const ways = { spawn: () => spawned(TRUE), warm: () => succeed(sandbox.exec({ command: TRUE })) }
    const before = () => filled(sandbox)
    await before()
    const times = await timesByTurns(ways, { rounds, before })
    return { times, served: sandbox.served() }
  })

/** KiB. The sandbox is open and has served a run before, so what is loaded late is not counted to the flood. */
const mostMemory = (command, warm) =>
  withSandbox(warm, async (sandbox) => {
    for (const one of [TRUE, command]) {
      if (warm > 0) await filled(sandbox)
      await succeed(sandbox.exec({ command: one }))
    }
    return { maxKiB: process.resourceUsage().maxRSS, served: sandbox.served() }
  })

const [what, how, ...naive] = process.argv.slice(2)
const measured = {
  cold: () => coldTimes(Number(how), naive),
  warm: () => warmTimes(Number(how)),
  idle: () => mostMemory(TRUE, how === 'warm' ? SIZE : 0),
  flood: () => mostMemory(FLOOD, how === 'warm' ? SIZE : 0),
}
console.log(JSON.stringify(await measured[what]()))
