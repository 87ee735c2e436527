/**
 * The entry of `llm-do` and `llm-do-exec`, which native/client/main.c or the script of scripts/commands.mjs start. If the first word names a
 * subcommand, its code is loaded. Any other word is refused and starts no program.
 *
 * Edge: the call, stdio, the exit status.
 */
import { SandboxError } from '../error.ts'
import { errorLines } from '../report/text.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { type Call, readCall, wordsFrom } from './call.ts'
import { leaveStreams, writeStderr, writeStdout } from './stdio.ts'
import type { Subcommand } from './subcommand.ts'
import { COMPLETE, DECLARED, SUPERVISE, type SubcommandName } from './subcommands.ts'
import { usageError } from './usage-error.ts'

/** The sandbox failed; also for a command line that cannot be understood, as with docker(1). */
const FAILED = 125

/** Each subcommand is loaded when it is used, because loading all of them would slow down every start. */
const LOADERS: Readonly<Record<SubcommandName, () => Promise<Subcommand>>> = {
  exec: async () => (await import('./commands/exec.ts')).exec,
  profiles: async () => (await import('./commands/profiles.ts')).profiles,
  homes: async () => (await import('./commands/homes.ts')).homes,
  workers: async () => (await import('./commands/workers.ts')).workers,
  init: async () => (await import('./commands/init.ts')).init,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  why: async () => (await import('./commands/why.ts')).why,
  learn: async () => (await import('./commands/learn.ts')).learn,
  mcp: async () => (await import('./commands/mcp.ts')).mcp,
  changes: async () => (await import('./commands/layer.ts')).changes,
  diff: async () => (await import('./commands/layer.ts')).diff,
  apply: async () => (await import('./commands/layer.ts')).apply,
  undo: async () => (await import('./commands/layer.ts')).undo,
  discard: async () => (await import('./commands/layer.ts')).discard,
  run: async () => (await import('./commands/run.ts')).run,
  logs: async () => (await import('./commands/logs.ts')).logs,
  stop: async () => (await import('./commands/stop.ts')).stop,
  ps: async () => (await import('./commands/ps.ts')).ps,
  allow: async () => (await import('./commands/allow.ts')).allow,
  kill: async () => (await import('./commands/kill.ts')).kill,
  prune: async () => (await import('./commands/prune.ts')).prune,
  images: async () => (await import('./commands/images.ts')).images,
  audit: async () => (await import('./commands/audit.ts')).audit,
  report: async () => (await import('./commands/report.ts')).report,
  pool: async () => (await import('./commands/pool.ts')).pool,
  'fleet-server': async () => (await import('./commands/fleet-server.ts')).fleetServer,
  agent: async () => (await import('./commands/agent.ts')).agent,
  batch: async () => (await import('./commands/batch.ts')).batch,
  cache: async () => (await import('./commands/cache.ts')).cache,
  completion: async () => (await import('./commands/completion.ts')).completion,
  help: async () => help,
  version: async () => (await import('./commands/version.ts')).version,
}

async function subcommandNamed(name: string): Promise<Subcommand | undefined> {
  return Object.hasOwn(LOADERS, name) ? await LOADERS[name as SubcommandName]() : undefined
}

async function usage(): Promise<number> {
  const { programUsage } = await import('./help.ts')
  await writeStdout(programUsage())
  return 0
}

/** `help workers show` is `workers show --help`. */
async function help(call: Call): Promise<number> {
  const [name, action] = call.text.filter((word) => !word.startsWith('-'))
  if (name === undefined) return await usage()
  const subcommand = await subcommandNamed(name)
  if (subcommand === undefined) throw await unknownSubcommand([name], call.env)
  const actions = DECLARED.find((declaration) => declaration.name === name)?.actions?.map((one) => one.name) ?? []
  if (action !== undefined && !actions.includes(action))
    throw usageError(`no command "${name} ${action}".${didYouMean(action, actions)}`, `llm-do help ${name}`)
  return await subcommand({
    env: call.env,
    parent: call.parent,
    text: action === undefined ? ['--help'] : [action, '--help'],
  })
}

/** @param words the first of them, and what follows it where all of it may be a command */
async function unknownSubcommand(words: readonly string[], env: Call['env']): Promise<SandboxError> {
  const [name = ''] = words
  const { otherVerb } = await import('./other-verbs.ts')
  const other = otherVerb(words, env['PATH'])
  if (other !== undefined) return usageError(`no command "${name}".`, other)
  const near = didYouMean(
    name,
    DECLARED.map((declaration) => declaration.name),
  )
  return usageError(`no command "${name}".${near}`, 'llm-do --help')
}

/** `llm-do-exec WORDS` arrives as `exec WORDS`. */
async function dispatch(call: Call): Promise<number> {
  const [first] = call.text
  if (call.outcome !== undefined) {
    const { explain } = await import('./commands/exec.ts')
    return await explain(wordsFrom(call, 1), call.outcome)
  }
  if (first === undefined) {
    const { programUsage } = await import('./help.ts')
    await writeStderr(programUsage().trimEnd().split('\n'))
    return FAILED
  }
  if (first === '--help' || first === '-h') return await help(wordsFrom(call, 1))
  if (first === COMPLETE) return await (await import('./commands/complete.ts')).complete(wordsFrom(call, 1))
  if (first === SUPERVISE) return await (await import('./commands/run.ts')).supervise(wordsFrom(call, 1))
  const subcommand = await subcommandNamed(first === '--version' || first === '-V' ? 'version' : first)
  if (subcommand === undefined) throw await unknownSubcommand(call.text, call.env)
  return await subcommand(wordsFrom(call, 1))
}

/** A defect of this program is reported like any other error, with the place in the code. */
function asSandboxError(error: unknown): SandboxError {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error(String(error))
  // By name: a verb in a separate bundle has another copy of the class.
  if (name === SandboxError.name) return error as SandboxError
  return new SandboxError('INTERNAL', message, {
    problems: stack
      .split('\n')
      .slice(1, 4)
      .map((candidate) => candidate.trim()),
    hint: 'please report this, with the command line that led here',
    cause: error,
  })
}

async function main(): Promise<number> {
  try {
    return await dispatch(readCall())
  } catch (error) {
    // When stderr takes nothing either, the exit status has to say it all.
    await writeStderr(errorLines(asSandboxError(error))).catch(() => undefined)
    return FAILED
  }
}

// Nothing may keep us here once the answer is given: a stdin that was passed on, a socket of a pool.
void main().then((status) => {
  // Where the runner itself has failed, it may have left a terminal as it was to the command.
  if (status !== FAILED) leaveStreams()
  process.exit(status)
})
