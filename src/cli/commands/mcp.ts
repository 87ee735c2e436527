/**
 * `llm-do mcp`: serves commands in a sandbox to a client of the Model Context Protocol. The policy is the one of these options.
 * Edge: stdio, signals.
 */

import { serveHttp } from '../../mcp/http.ts'
import { type Granted, Runner } from '../../mcp/runner.ts'
import { serveStdio } from '../../mcp/stdio.ts'
import { newToken, readToken } from '../../mcp/token.ts'
import { environmentLayers } from '../../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../../policy/option-layer.ts'
import type { Call } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStderr } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'
import { untilSignal } from './exec.ts'

/** Options of exec that a server refuses: a variable of them that it ignored could let a command do more than was meant. */
const NOT_SERVED_WITH = ['worker', 'workshop', 'audit', 'apply', 'cow-continue'] as const

function grantedBy(flags: GivenOptions, call: Call): Granted {
  const cwd = currentDirectory(call)
  const given: GivenOptions = { ...environmentLayers(call.env, cwd).request, ...flags }
  const refused = NOT_SERVED_WITH.find((name) => given[name] !== undefined)
  if (refused !== undefined)
    throw usageError(`--${refused}: llm-do mcp serves plain runs only.`, 'put what it grants into a profile')
  const { profile } = given
  return { cwd, env: call.env, layers: [flagLayer(flags, cwd)], ...(typeof profile === 'string' && { profile }) }
}

interface Served {
  readonly runner: Runner
  readonly flags: GivenOptions
  readonly signal: AbortSignal
}

/** Only what was asked for. */
async function serve({ runner, flags, signal }: Served): Promise<readonly string[]> {
  const { http, 'token-file': file } = flags
  if (typeof http !== 'string') {
    if (file !== undefined)
      throw usageError('--token-file belongs to --http.', 'llm-do mcp --http PORT --token-file FILE')
    return await serveStdio(runner, signal)
  }
  const token = typeof file === 'string' ? readToken(file, runner.plan) : newToken()
  const tokenLines = file === undefined ? [`llm-do: token: ${token}`] : []
  const onListening = (url: string) => writeStderr([`llm-do: serving ${url}`, ...tokenLines])
  return await serveHttp(runner, { port: portOf(http), token, signal, onListening })
}

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (!(port <= 65_535))
    throw usageError(`--http: expected a port from 0 to 65535, got "${text}".`, 'llm-do mcp --http 0')
  return port
}

export const mcp = subcommand('mcp', async ({ flags }, call) => {
  const granted = grantedBy(flags, call)
  return await untilSignal(async (signal) => {
    const runner = await Runner.open(granted)
    try {
      const waiting = await serve({ runner, flags, signal })
      await writeStderr(waiting.map((id) => `llm-do: changes wait: llm-do diff ${id.slice(0, 8)}`))
      return 0
    } finally {
      await runner.close()
    }
  })
})
