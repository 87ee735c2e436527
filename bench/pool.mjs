// A pool for the bench: started, waited for, weighed, stopped.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROOT } from './stage.mjs'

/** Longer than the keeper waits after a run before it builds the next one. */
const FILL_MS = 15_000
/** The last one that was built goes to sleep. */
const REST_MS = 10

const poolsOf = (env) => (process.getuid() === 0 ? '/run/llm-do/pool' : join(env.XDG_RUNTIME_DIR, 'llm-do/pool'))

const command = (stage, words) => stage.run([join(ROOT, 'bin/llm-do'), 'pool', ...words], { timeout: 60_000 })

/** The keeper of the stage's own directory: others may have pools on this machine. */
function keeperOf(stage) {
  const { stdout } = stage.run([join(ROOT, 'bin/llm-do'), '__pool', 'status', poolsOf(stage.env)])
  const lines = stdout
    .toString()
    .split('\n')
    .filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line)).find(({ directory }) => directory === stage.cwd)
}

/**
 * @param options of `exec` that the pool is for
 * @throws when no sandbox can be kept ready
 */
export async function withPool(stage, size, use, options = []) {
  const { status, stderr } = command(stage, ['start', '--size', String(size), '--idle-timeout', '10m', ...options])
  if (status !== 0) throw new Error(`pool start: ${stderr.toString().trim()}`)
  try {
    return await use({ fill: () => fill(stage, size), keeper: () => keeperOf(stage), names: () => namesOfReady(stage) })
  } finally {
    const keeper = keeperOf(stage)
    if (keeper !== undefined) process.kill(keeper.pid, 'SIGTERM')
  }
}

/** Names of those that are ready: one that is taken is renamed, and none comes back. */
function namesOfReady(stage) {
  const keeper = keeperOf(stage)
  if (keeper === undefined) return []
  return readdirSync(join(poolsOf(stage.env), keeper.name)).filter((name) => name.startsWith('r'))
}

/** Until all are ready. @returns how many there are: what others mount on this machine takes ready ones away */
async function fill(stage, size) {
  const end = Date.now() + FILL_MS
  let ready = 0
  while (ready < size && Date.now() < end) {
    ready = keeperOf(stage)?.ready ?? 0
    if (ready < size) await sleep(5)
  }
  await sleep(REST_MS)
  return ready
}

/** Bytes that the processes below `pid` have, each page shared among those who have it (PSS). */
export function weightBelow(pid) {
  return descendants(pid).reduce((sum, one) => sum + pssOf(one), 0)
}

/**
 * KiB that a process and those it started on the host have had at most. Not what runs inside a sandbox, nor the node that tells the end
 * of a run whose output was cut: it is loaded afterwards, and its size does not depend on the flood.
 */
export function highWater(pid) {
  const ours = [String(pid), ...descendants(pid)].filter((one) => RUNNERS.test(textOf(`/proc/${one}/comm`).trim()))
  return ours.reduce((sum, one) => sum + Number(/^VmHWM:\s+(\d+)/m.exec(textOf(`/proc/${one}/status`))?.[1] ?? 0), 0)
}

const RUNNERS = /^(llm-do|llm-do-exec|launch)$/

function descendants(pid) {
  const direct = tasks(pid).flatMap((task) => textOf(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean))
  return direct.flatMap((child) => [child, ...descendants(child)])
}

const tasks = (pid) => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

const pssOf = (pid) => Number(/^Pss:\s+(\d+)/m.exec(textOf(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) * 1024

function textOf(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
