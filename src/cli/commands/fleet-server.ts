/**
 * `llm-do fleet-server`: serves agents and the page until it is stopped; docs/reference/fleet-server.md.
 * Edge: stdio, a temporary directory, signals.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Environment } from '../call.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'
import { untilSignal } from './exec.ts'

const DEFAULT_PORT = 8930
const HIGHEST_PORT = 65_535

function portOf(text: unknown): number {
  if (text === undefined) return DEFAULT_PORT
  const port = Number(text)
  if (/^\d+$/.test(String(text)) && port <= HIGHEST_PORT) return port
  throw usageError(`--port: expected 0 to ${HIGHEST_PORT}, got "${text}".`, 'llm-do fleet-server --port 0')
}

/** Serves until a signal asks to stop. */
async function serve(directory: string, port: number, env: Environment): Promise<void> {
  const { startFleetServer } = await import('../../fleet/server/server.ts')
  const secret = env['WORKER_TOKEN_SECRET'] || undefined
  await untilSignal(async (signal) => {
    const server = await startFleetServer({ port, directory, secret })
    await writeStdout(`${server.url}\n`)
    const token = secret === undefined ? '' : 'WORKER_TOKEN_SECRET=... '
    await writeStderr([`llm-do: agents: ${token}llm-do agent --server ${server.url}; end with Ctrl-C`])
    if (!signal.aborted) await new Promise((stop) => signal.addEventListener('abort', stop, { once: true }))
    await server.close()
  })
}

export const fleetServer = subcommand('fleet-server', async ({ flags }, { env }) => {
  const port = portOf(flags['port'])
  const data = flags['data']
  if (typeof data === 'string') {
    await serve(resolve(data), port, env)
    return 0
  }
  const directory = mkdtempSync(join(tmpdir(), 'llm-do-fleet.'))
  try {
    await serve(directory, port, env)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  return 0
})
