/**
 * The entry of `llm-do` and `llm-do-exec`. A first word that is ours is a subcommand, whose code is loaded then and not
 * before; any other one is handed to the next `llm-do` on PATH.
 *
 * Edge: argv, stdio, the exit status.
 */
import { basename } from 'node:path'
import { SandboxError } from '../error.ts'
import { didYouMean } from '../policy/nearest.ts'
import { errorLines } from '../report/text.ts'
import { readWords, type Words, wordsFrom } from './argv.ts'
import { say, tell } from './output.ts'
import { usageError, type Verb } from './verb.ts'
import { VERBS, type VerbName } from './verbs.ts'

const EXEC_NAME = 'llm-do-exec'
/** What native/front.c asks when a run of its own needs words; nobody types it. */
const EXPLAIN = 'explain-outcome'
/** The sandbox failed; also for a command line that cannot be understood, as with docker(1). */
const FAILED = 125

/** Code is loaded when it is asked for: the start of the program is what people wait for. */
const LOADERS: Readonly<Record<VerbName, () => Promise<Verb>>> = {
  exec: async () => (await import('./exec.ts')).execVerb,
  profiles: async () => (await import('./profiles.ts')).profiles,
  workers: async () => (await import('./workers.ts')).workers,
  init: async () => (await import('./init.ts')).init,
  doctor: async () => (await import('./doctor.ts')).doctor,
  ps: async () => (await import('./runs.ts')).ps,
  kill: async () => (await import('./runs.ts')).kill,
  prune: async () => (await import('./runs.ts')).prune,
  images: async () => (await import('./images.ts')).images,
  audit: async () => (await import('./audit.ts')).audit,
  pool: async () => (await import('./pool.ts')).pool,
  cache: async () => (await import('./cache.ts')).cache,
  completion: async () => (await import('./completion.ts')).completion,
}

async function verbNamed(name: string): Promise<Verb | undefined> {
  return Object.hasOwn(LOADERS, name) ? await LOADERS[name as VerbName]() : undefined
}

async function usage(): Promise<number> {
  const { programUsage } = await import('./usage.ts')
  await say(programUsage())
  return 0
}

async function printVersion(): Promise<number> {
  const { packageVersion } = await import('../native.ts')
  await say(`${packageVersion()}\n`)
  return 0
}

function unknownVerb(name: string): SandboxError {
  const near = didYouMean(
    name,
    VERBS.map((verb) => verb.name),
  )
  return usageError(`no command "${name}".${near}`, 'llm-do --help')
}

async function forwardOrRefuse(name: string, { text }: Words): Promise<number> {
  if (name.startsWith('-')) throw unknownVerb(name)
  const { findNext, forward } = await import('./forward.ts')
  const next = findNext(process.argv[1] ?? '', process.env)
  if (next === undefined) throw unknownVerb(name)
  return await forward(next, text)
}

async function dispatch(program: string, words: Words): Promise<number> {
  const first = program === EXEC_NAME ? 'exec' : words.text[0]
  if (first === undefined) {
    const { programUsage } = await import('./usage.ts')
    await tell(programUsage().trimEnd().split('\n'))
    return FAILED
  }
  if (first === '--help' || first === '-h' || first === 'help') return await usage()
  if (first === '--version' || first === '-V') return await printVersion()
  if (first === EXPLAIN) return await (await import('./exec.ts')).explainVerb(wordsFrom(words, 1))
  const verb = await verbNamed(first)
  if (verb === undefined) return await forwardOrRefuse(first, words)
  return await verb(program === EXEC_NAME ? words : wordsFrom(words, 1))
}

/** A defect of ours is an error like any other, with the place for whoever mends it. */
function asSandboxError(error: unknown): SandboxError {
  if (error instanceof SandboxError) return error
  const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
  return new SandboxError('INTERNAL', message, {
    problems: stack
      .split('\n')
      .slice(1, 4)
      .map((place) => place.trim()),
    hint: 'please report this, with the command line that led here',
    cause: error,
  })
}

async function main(): Promise<number> {
  try {
    return await dispatch(basename(process.argv[1] ?? ''), readWords())
  } catch (error) {
    // When stderr takes nothing either, the exit status has to say it all.
    await tell(errorLines(asSandboxError(error))).catch(() => undefined)
    return FAILED
  }
}

// Nothing may keep us here once the answer is given: a stdin that was passed on, a socket of a pool.
void main().then((status) => process.exit(status))
