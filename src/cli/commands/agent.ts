/**
 * `llm-do agent --server URL`, `--queue URL` or `--demo-server`: serves tasks until a signal. The first one lets what runs end, the second ends it.
 * Edge: signals, timers, the machine's name.
 */
import { availableParallelism, hostname } from 'node:os'
import { runAgent } from '../../fleet/agent.ts'
import { agentSettings, SECRET_VARIABLE } from '../../fleet/agent-settings.ts'
import { environmentLayers } from '../../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../../policy/option-layer.ts'
import { parseDuration } from '../../text/units.ts'
import type { Call } from '../call.ts'
import { currentDirectory, hostEnvironment } from '../current-directory.ts'
import { NOT_OF_TASKS, refuseVariables } from '../refuse-variables.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'
import { type DemoServer, withDemoServer } from './demo-server.ts'

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const

/** The classic container task: workspace writable, 512m, 2 cpus, 30 s. */
const STANDARD_PROFILE = 'task'
const STANDARD_POLL = '5s'
const STANDARD_GRACE = '30s'
const STANDARD_LEASE = '30s'
/** Milliseconds for everything that is to be said at the end: more than a task takes to end and its source to be told. */
const LAST_MS = 10_000

const text = (flags: GivenOptions, name: string): string | undefined => {
  const value = flags[name]
  return typeof value === 'string' ? value : undefined
}

function durationOf(flags: GivenOptions, name: string, standard: string): number {
  const read = parseDuration(text(flags, name) ?? standard)
  if (!read.ok) throw usageError(`--${name}: expected a duration such as ${standard}.`, 'llm-do agent --help')
  return read.value
}

export const agent = subcommand('agent', async ({ flags }, call) => {
  if (flags['demo-server'] !== true) return await serve(flags, call, {})
  const other = ['server', 'queue'].find((name) => flags[name] !== undefined)
  if (other !== undefined)
    throw usageError(`--demo-server is a server of its own: it cannot be used with --${other}.`, 'llm-do agent --help')
  return await withDemoServer(hostEnvironment(call)[SECRET_VARIABLE] || undefined, async (demo) => {
    await writeStdout(`${demo.url}\n`)
    await writeStderr([`llm-do agent: submit tasks at ${demo.url}; end with Ctrl-C`])
    return await serve(flags, call, { demo })
  })
})

async function serve(flags: GivenOptions, call: Call, { demo }: { readonly demo?: DemoServer }): Promise<number> {
  const cwd = currentDirectory(call)
  const env = { ...hostEnvironment(call), ...(demo !== undefined && { [SECRET_VARIABLE]: demo.secret }) }
  refuseVariables(env, NOT_OF_TASKS, 'llm-do agent')
  const profile = text({ ...environmentLayers(env, cwd).request, ...flags }, 'profile') ?? STANDARD_PROFILE
  const [server, queue, slots] = [demo?.url ?? text(flags, 'server'), text(flags, 'queue'), text(flags, 'slots')]
  const settings = agentSettings({
    env,
    given: {
      ...(server !== undefined && { server }),
      ...(queue !== undefined && { queue }),
      ...(slots !== undefined && { slots }),
    },
    host: { name: hostname(), processors: availableParallelism() },
    cwd,
  })
  const log = (line: string): void => void writeStderr([`llm-do agent: ${line}`])
  const graceMs = durationOf(flags, 'grace', STANDARD_GRACE)
  const [drain, end] = [new AbortController(), new AbortController()]
  const endNow = (): void => {
    if (end.signal.aborted) return
    end.abort('SIGTERM')
    // Whatever a connection, a source or a library still waits for. Nothing of a task outlives this process.
    setTimeout(() => process.exit(FOUND_PROBLEMS), LAST_MS).unref()
  }
  const stop = (signal: NodeJS.Signals): void => {
    if (drain.signal.aborted) {
      endNow()
      return
    }
    log(`${signal}: no more tasks; those that run have ${graceMs / 1000} s`)
    drain.abort()
    setTimeout(endNow, graceMs).unref()
  }
  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  try {
    await runAgent({
      settings,
      ...(demo !== undefined && { stateHome: demo.state }),
      profile,
      layers: [flagLayer(flags, cwd)],
      env,
      pollMs: durationOf(flags, 'poll', STANDARD_POLL),
      leaseMs: durationOf(flags, 'lease', STANDARD_LEASE),
      drain: drain.signal,
      end: end.signal,
      log,
    })
  } catch (error) {
    if (!drain.signal.aborted) throw error
    log((error as Error).message)
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, stop)
  }
  return end.signal.aborted ? FOUND_PROBLEMS : 0
}
