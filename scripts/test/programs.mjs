// Programs that `make test` starts: their output is kept, not shown, and every one ends with the run.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const checkout = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
export const isRoot = process.getuid?.() === 0

/** Debian keeps the programs of docker, nft and e2fsprogs here. */
export const PATH = `${process.env.PATH}${delimiter}/usr/local/sbin:/usr/sbin:/sbin`

/** The variables of make must not reach a make that a test starts. */
export const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(MAKEFLAGS|MAKELEVEL|MFLAGS|MAKEOVERRIDES|GNUMAKEFLAGS)$/.test(name),
  ),
)

const started = new Set()
const state = { isStopping: false }

/** After Ctrl-C or SIGTERM nothing new starts. */
export const isStopping = () => state.isStopping

/** Starts a program in a new process group and remembers it until it ends. */
export function start(file, argv, options) {
  const child = spawn(file, argv, { detached: true, ...options })
  started.add(child)
  child.once('close', () => started.delete(child))
  child.once('error', () => started.delete(child))
  return child
}

/** Ends a program with all that stayed in its process group. */
export function end(child, signal = 'SIGTERM') {
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

/** Ends every program that still runs, and lets no new one start. */
export function endAll(signal) {
  state.isStopping = true
  for (const child of started) end(child, signal)
}

/**
 * Runs a program to its end.
 * @param limitMs ends a hang
 * @returns {Promise<{ status: number, output: string, isStopped: boolean }>} `output`: both streams in the order in which they came
 */
export function run(file, argv, { cwd = checkout, env = {}, limitMs = 20 * 60_000 } = {}) {
  if (isStopping())
    return Promise.resolve({ status: 1, output: 'FAIL not started\nthe run was stopped\n', isStopped: true })
  return new Promise((resolve) => {
    const options = { cwd, env: { ...environment, PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] }
    const child = start(file, argv, options)
    const chunks = []
    const result = { isStopped: false }
    const limit = setTimeout(() => {
      result.isStopped = true
      chunks.push(Buffer.from(`\nFAIL ${file}: stopped after ${limitMs / 60_000} minutes\n`))
      end(child, 'SIGKILL')
    }, limitMs)
    const finish = (status) => {
      clearTimeout(limit)
      resolve({ status, output: Buffer.concat(chunks).toString(), ...result })
    }
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(chunk))
    child.once('error', (error) => {
      chunks.push(Buffer.from(`FAIL ${file}: ${error.message}\n`))
      finish(1)
    })
    child.once('close', (code) => finish(code ?? 1))
  })
}

const read = (file) => {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return '' // It has ended, or belongs to another user.
  }
}

/**
 * Processes of a run: their variables name its directory (TMPDIR), or their words do and their parent is one of them or gone, as that of
 * a keeper is, which clears its variables. A person's `tail -f` of a file there has a shell as its parent, and is left alone.
 */
function processesIn(directory) {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const all = new Map(
    pids.map((pid) => {
      const parent = Number(/^PPid:\s*(\d+)$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)
      const words = read(`/proc/${pid}/cmdline`)
      return [Number(pid), { pid: Number(pid), parent, words, variables: read(`/proc/${pid}/environ`) }]
    }),
  )
  const isOwn = (one) => {
    if (one === undefined) return false
    if (one.variables.includes(`${directory}/`)) return true
    return one.words.includes(`${directory}/`) && (one.parent <= 1 || isOwn(all.get(one.parent)))
  }
  return [...all.values()].filter(isOwn).map(({ pid, words }) => ({ pid, words: words.replaceAll('\0', ' ').trim() }))
}

/**
 * Waits for the processes of a run to end and kills those that stay: daemons, keepers and sandboxes of tests that were stopped.
 * @returns their words, none after a run that was not stopped
 */
export async function endProcessesIn(directory, { patienceMs = 5_000 } = {}) {
  const until = performance.now() + patienceMs
  while (processesIn(directory).length > 0 && performance.now() < until) await sleep(100)
  const left = processesIn(directory)
  for (const { pid } of left) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if (error.code !== 'ESRCH') throw error
    }
  }
  return left.map(({ words }) => words)
}
