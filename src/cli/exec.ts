/**
 * `llm-do exec`: command line -> request, result -> text and exit status. What happens in between is src/exec.ts.
 *
 * Edge: stdio, signals, the working directory, process.env.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { SandboxError } from '../error.ts'
import type { ExecOptions } from '../exec.ts'
import { invocationOf } from '../launch-cache/key.ts'
import { environmentLayers } from '../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../policy/options.ts'
import type { AuditEntry } from '../report/audit.ts'
import { refusal } from '../report/classify.ts'
import { exitStatus } from '../report/exit-status.ts'
import { JSON_FORMS, type JsonForm, printJson } from '../report/json.ts'
import type { Result } from '../report/result.ts'
import { errorLines, resultLines } from '../report/text.ts'
import { type Words, wordsFrom } from './argv.ts'
import { type CommandLine, commandOf, readCommandLine } from './command-line.ts'
import { say, tell } from './output.ts'
import { usageError } from './verb.ts'

/** What is asked of us beside the policy: flags, and below them their twins in the environment. */
interface Asked {
  readonly given: GivenOptions
  readonly options: ExecOptions
  readonly json: JsonForm | undefined
}

function word(given: GivenOptions, name: string): string | undefined {
  const value = given[name]
  return typeof value === 'string' ? value : undefined
}

/** A switch that the environment turns on (`true`) means the default form. */
function jsonForm(value: GivenOptions[string]): JsonForm | undefined {
  if (value === undefined || value === false) return undefined
  return JSON_FORMS.find((form) => form === value) ?? 'native'
}

function currentDirectory(): string {
  try {
    return realpathSync(process.cwd())
  } catch (cause) {
    throw new SandboxError('ZONE_INVALID', 'the directory this was called from does not exist any more.', {
      hint: 'cd to a directory that exists',
      cause,
    })
  }
}

/** The bytes of the command, where its words are not UTF-8. Those of `-c SCRIPT` come before it. */
function commandBytes({ bytes }: Words, { commandAt, script }: CommandLine): readonly Uint8Array[] | undefined {
  if (bytes === undefined) return undefined
  if (bytes.slice(0, commandAt).some((word) => Buffer.from(word).toString().includes('\ufffd'))) {
    throw usageError(
      'an option of the command line is not valid UTF-8.',
      'put the name into a profile, or use another path to the file',
    )
  }
  const shell = script === undefined ? [] : ['/bin/sh', '-c', script].map((word) => Buffer.from(word))
  return [...shell, ...bytes.slice(commandAt)]
}

function read(words: Words, line: CommandLine): Asked {
  const cwd = currentDirectory()
  const given: GivenOptions = { ...environmentLayers(process.env, cwd).request, ...line.given }
  const json = jsonForm(given['json'])
  const profile = word(given, 'profile')
  const bytes = commandBytes(words, line)
  const options: ExecOptions = {
    command: commandOf(line),
    ...(bytes && { commandBytes: bytes }),
    layers: [flagLayer(line.given, cwd)],
    ...(profile !== undefined && { profile }),
    cwd,
    env: process.env,
    mode: json === undefined ? 'inherit' : 'capture',
    stdin: 'inherit',
  }
  return { given, options, json }
}

/** Requests that node must see each time; the profile is part of what the front-end compares. */
function isForFront({ given, json }: Asked): boolean {
  const others = ['worker', 'workshop', 'approval', 'audit', 'allow-shell-syntax'].filter((name) => given[name])
  return json === undefined && others.length === 0
}

/** `--plan`, with `--argv` or `--why`: prints what was decided, runs nothing. */
async function showPlan({ given, options }: Asked): Promise<number> {
  const { prepare, printLaunch } = await import('../exec.ts')
  const prepared = await prepare(options)
  const why = word(given, 'why')
  if (why !== undefined) {
    const { whyText } = await import('./why.ts')
    await say(whyText(prepared.policy.origins, why))
  } else if (given['argv'] === true) {
    await say(ended(await printLaunch(prepared)))
  } else await say(`${JSON.stringify(prepared.plan, null, 2)}\n`)
  return 0
}

const ended = (text: string) => (text.endsWith('\n') ? text : `${text}\n`)

/** Signals that ask us to stop. The run is ended by our own hand, so that nothing of it is left. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

async function runUntilSignal(options: ExecOptions): Promise<Result> {
  const { exec } = await import('../exec.ts')
  const controller = new AbortController()
  const stop = (signal: NodeJS.Signals) => controller.abort(signal)
  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  try {
    return await exec({ ...options, signal: controller.signal })
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, stop)
  }
}

/** It was let through, and then there was nothing to run. */
const NOTHING_DECIDED = new Set(['COMMAND_NOT_FOUND', 'COMMAND_NOT_EXECUTABLE'])

function decisionOn({ error }: Result): AuditEntry['decision'] {
  if (error === undefined || NOTHING_DECIDED.has(error.code)) return 'run'
  return error.code === 'COMMAND_BLOCKED' ? 'blocked' : 'refused'
}

async function record({ given }: Asked, result: Result): Promise<void> {
  const file = word(given, 'audit')
  if (file === undefined) return
  const { appendAudit } = await import('../report/audit-file.ts')
  const worker = word(given, 'worker')
  await appendAudit(file, {
    time: new Date().toISOString(),
    result,
    ...(worker !== undefined && { worker }),
    decision: decisionOn(result),
    decidedBy: 'policy',
  })
}

/** A run that cannot be recorded must not happen. */
async function checkRecord({ given }: Asked): Promise<void> {
  const file = word(given, 'audit')
  if (file === undefined) return
  const { checkAuditFile } = await import('../report/audit-file.ts')
  await checkAuditFile(file)
}

/** A refusal is part of the record, too. */
async function recordRefusal(asked: Asked, error: unknown): Promise<void> {
  if (!(error instanceof SandboxError)) return
  const { command, profile = 'default' } = asked.options
  await record(asked, refusal(error, command, profile))
}

async function run(asked: Asked, words: Words): Promise<number> {
  const { json } = asked
  const invocation = words.bytes === undefined && isForFront(asked) ? invocationOf(words.text) : undefined
  const options = { ...asked.options, ...(invocation && { invocation }) }
  await checkRecord(asked)
  const result = await runUntilSignal(options).catch(async (error: unknown) => {
    await recordRefusal(asked, error)
    throw error
  })
  await record(asked, result)
  if (json === undefined) await tell(resultLines(result))
  else await say(printJson(result, json))
  return exitStatus(result)
}

/** The form of JSON that was asked for, also when nothing else about the command line can be understood. */
function jsonInspite(words: readonly string[]): JsonForm | undefined {
  const end = words.indexOf('--')
  const found = (end === -1 ? words : words.slice(0, end)).find((word) => /^--json(=\w+)?$/.test(word))
  return jsonForm(
    found?.split('=')[1] ?? (found === undefined ? process.env['LLM_DO_EXEC_JSON'] || undefined : 'native'),
  )
}

/** What is known of a command line that may be wrong: as much as can be read of it. */
function readInspite(words: readonly string[]): { readonly command: readonly string[]; readonly profile: string } {
  try {
    const line = readCommandLine(words)
    return { command: commandOf(line), profile: word(line.given, 'profile') ?? 'default' }
  } catch {
    return { command: [], profile: 'default' } // The error that is being reported says what is wrong with it.
  }
}

/** Whoever asked for JSON gets JSON, for a refusal too. */
async function refuse(error: SandboxError, words: readonly string[]): Promise<number> {
  const json = jsonInspite(words)
  const { command, profile } = readInspite(words)
  const result = refusal(error, command, profile)
  if (json === undefined) await tell(errorLines(error))
  else await say(printJson(result, json))
  return exitStatus(result)
}

async function answer(words: Words): Promise<number> {
  const line = readCommandLine(words.text)
  if (line.help) {
    const { execUsage } = await import('./usage.ts')
    await say(execUsage())
    return 0
  }
  if (line.version) {
    const { packageVersion } = await import('../native.ts')
    await say(`${packageVersion()}\n`)
    return 0
  }
  const asked = read(words, line)
  const { plan, argv, why } = asked.given
  if (plan === true) return await showPlan(asked)
  if (argv === true || why !== undefined)
    throw usageError(`${argv === true ? '--argv' : '--why'} belongs to --plan.`, 'llm-do exec --plan ...')
  return await run(asked, words)
}

/**
 * The front-end ran the command and its end needs words: `explain-outcome FD WORDS...`, FD holding what launch reported.
 * Nothing is run again.
 */
export async function explainVerb(words: Words): Promise<number> {
  const status = readFileSync(Number(words.text[0]), 'utf8')
  const own = wordsFrom(words, 1)
  try {
    const { explainOutcome } = await import('../exec.ts')
    const result = await explainOutcome(read(own, readCommandLine(own.text)).options, status)
    await tell(resultLines(result))
    return exitStatus(result)
  } catch (error) {
    if (error instanceof SandboxError) return await refuse(error, own.text)
    throw error
  }
}

export async function execVerb(words: Words): Promise<number> {
  try {
    return await answer(words)
  } catch (error) {
    if (error instanceof SandboxError) return await refuse(error, words.text)
    throw error
  }
}
