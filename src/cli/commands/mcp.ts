/**
 * `llm-do mcp`: serves commands in a sandbox to a client of the Model Context Protocol. The policy is the one of these options.
 * Edge: stdio, signals.
 */

import { type Granted, Runner } from '../../mcp/runner.ts'
import { environmentLayers } from '../../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../../policy/option-layer.ts'
import type { Call } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStderr } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'
import { untilSignal } from './exec.ts'

/** What the environment may ask of exec as well; served in silence without it, a command could do more than was meant. */
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

export const mcp = subcommand('mcp', async ({ flags }, call) => {
  const granted = grantedBy(flags, call)
  const { serveStdio } = await import('../../mcp/stdio.ts')
  return await untilSignal(async (signal) => {
    const runner = await Runner.open(granted)
    try {
      const waiting = await serveStdio(runner, signal)
      await writeStderr(waiting.map((id) => `llm-do: changes wait: llm-do diff ${id.slice(0, 8)}`))
      return 0
    } finally {
      await runner.close()
    }
  })
})
