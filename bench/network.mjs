// The costs of a network restricted by name: to start, for each connection, for each byte, in memory. In a separate network namespace, where
// the server has an address that is listed; direct connections are made there without a sandbox.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROOT } from './stage.mjs'
import { median } from './statistics.mjs'
import { timeByTurns } from './stopwatch.mjs'

const ADDRESS = '203.0.114.10'
const PROGRAM = readFileSync(join(ROOT, 'bench/network.py'), 'utf8')
const PYTHON = ['/usr/bin/python3', '-c', PROGRAM]
const KIB_A_MIB = 1024

/** A host with a server, and words that enter it. */
async function openHost() {
  const set = `ip link set lo up && ip addr add ${ADDRESS}/32 dev lo && exec "$@"`
  const words = ['--net', 'sh', '-ec', set, 'sh', ...PYTHON, 'serve', ADDRESS]
  const server = spawn('unshare', words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [status] = await Promise.race([once(server.stdout, 'data').then(() => []), once(server, 'exit')])
  if (status !== undefined) throw new Error(`the server of the network bench ended with ${status}`)
  const namespace = readlinkSync(`/proc/${server.pid}/ns/net`)
  return { enter: ['nsenter', `--net=/proc/${server.pid}/ns/net`, '--'], namespace, end: () => server.kill('SIGKILL') }
}

const linkOr = (path) => {
  try {
    return readlinkSync(path)
  } catch {
    return '' // It has ended.
  }
}

function helperOn(namespace) {
  const isHelper = (pid) =>
    linkOr(`/proc/${pid}/exe`).endsWith('/bin/net') && linkOr(`/proc/${pid}/ns/net`) === namespace
  return readdirSync('/proc').find((name) => /^\d+$/.test(name) && isHelper(name))
}

/** Resident memory of the helper of a run, in KiB, once the run has printed its first line. */
async function weigh({ stage, namespace, words }) {
  const run = spawn(words[0], words.slice(1), { cwd: stage.cwd, env: stage.env, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(run, 'exit')
  try {
    const [line] = await Promise.race([once(run.stdout, 'data'), ended.then(() => ['nothing'])])
    await sleep(300)
    const pid = helperOn(namespace)
    if (pid === undefined) throw new Error(`no helper stands; the run printed ${line}`)
    return Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1])
  } finally {
    run.stdin.end()
    await ended
  }
}

/** Numbers that two clients print, by turns. */
function turns({ stage, rounds, commands }) {
  const numbers = Object.fromEntries(Object.keys(commands).map((name) => [name, []]))
  for (let round = 0; round < rounds; round += 1)
    for (const [name, words] of Object.entries(commands)) {
      const { status, stdout, stderr } = stage.run(words)
      if (status !== 0) throw new Error(`${name}: ${stderr}`)
      numbers[name].push(Number(stdout) * 1e9)
    }
  return numbers
}

const ratio = (times, one, other) => median(times[one]) / median(times[other])

async function measure({ stage, runs, times, cold }, { enter, namespace }) {
  const sandbox = (...words) => [...enter, stage.exec, ...cold, '--profile', 'build', ...words]
  const restricted = (...command) => sandbox('--allow-host', `${ADDRESS}:*`, '--', ...command)
  const starts = {
    none: sandbox('--', 'true'),
    restricted: sandbox('--allow-host', 'api.example.org', '--', 'true'),
  }
  for (const words of Object.values(starts)) stage.warm(words)
  times['network: start'] = await timeByTurns({ stage, commands: starts, rounds: runs })
  const clients = (mode) => ({
    direct: [...enter, ...PYTHON, mode, ADDRESS],
    restricted: restricted(...PYTHON, mode, ADDRESS),
  })
  for (const mode of ['latency', 'down', 'up'])
    times[`network: ${mode}`] = turns({ stage, rounds: 5, commands: clients(mode) })
  const idle = await weigh({ stage, namespace, words: restricted('sh', '-c', 'echo; cat') })
  const many = await weigh({ stage, namespace, words: restricted(...PYTHON, 'many', ADDRESS) })
  const start = times['network: start']
  return [
    { row: 'restricted network, ms over none', value: (median(start.restricted) - median(start.none)) / 1e6, goal: 3 },
    {
      row: 'connection and one byte, restricted / direct',
      value: ratio(times['network: latency'], 'restricted', 'direct'),
      goal: 3,
    },
    ...['down', 'up'].map((mode) => ({
      row: `1 GiB ${mode}, direct / restricted`,
      value: ratio(times[`network: ${mode}`], 'direct', 'restricted'),
      goal: 0.5,
      least: true,
    })),
    { row: 'memory of an idle helper, MiB', value: idle / KIB_A_MIB, goal: 0.3 },
    { row: 'memory of a helper with 1000 connections, MiB', value: many / KIB_A_MIB, goal: 2 },
  ]
}

/** Rows for bench/main.mjs. */
export async function network(bench) {
  if (process.getuid() !== 0)
    return [{ row: 'restricted network', missing: 'only root can make a network to measure in' }]
  const host = await openHost()
  try {
    return await measure(bench, host)
  } finally {
    host.end()
  }
}
