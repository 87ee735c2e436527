// Programs that `make test` starts: their output is kept, not shown, and every one ends with the run.
import { spawn } from 'node:child_process'
import { delimiter, dirname } from 'node:path'
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

/** Starts a program in a process group of its own and remembers it until it ends. */
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

/** Ends every program that still runs. */
export function endAll(signal) {
  for (const child of started) end(child, signal)
}

/**
 * Runs a program to its end.
 * @param limitMs ends a hang
 * @returns {Promise<{ status: number, output: string, isStopped: boolean }>} `output`: both streams in the order in which they came
 */
export function run(file, argv, { cwd = checkout, env = {}, limitMs = 20 * 60_000 } = {}) {
  return new Promise((resolve) => {
    const options = { cwd, env: { ...environment, PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] }
    const child = start(file, argv, options)
    const chunks = []
    const state = { isStopped: false }
    const limit = setTimeout(() => {
      state.isStopped = true
      chunks.push(Buffer.from(`\nFAIL ${file}: stopped after ${limitMs / 60_000} minutes\n`))
      end(child, 'SIGKILL')
    }, limitMs)
    const finish = (status) => {
      clearTimeout(limit)
      resolve({ status, output: Buffer.concat(chunks).toString(), ...state })
    }
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(chunk))
    child.once('error', (error) => {
      chunks.push(Buffer.from(`FAIL ${file}: ${error.message}\n`))
      finish(1)
    })
    child.once('close', (code) => finish(code ?? 1))
  })
}
