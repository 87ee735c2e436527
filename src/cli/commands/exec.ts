/**
 * `llm-do exec`: command line -> request, result -> text and exit status. What happens in between is src/run/exec.ts.
 *
 * Edge: stdio, signals.
 */
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { isDeepStrictEqual } from 'node:util'
import { exitStatusOf, SandboxError } from '../../error.ts'
import { hasBash } from '../../host/program.ts'
import { areVariables, divisionOf, type Invocation, invocationOf } from '../../launch-cache/cache-key.ts'
import { type LentSignals, lendSignals } from '../../os/passed-signals.ts'
import type { Plan } from '../../plan/plan.ts'
import { environmentLayers } from '../../policy/environment.ts'
import type { PolicyLayer } from '../../policy/layer.ts'
import { flagLayer, type GivenOptions } from '../../policy/option-layer.ts'
import type { AuditEntry } from '../../report/audit.ts'
import type { AuditLog } from '../../report/audit-file.ts'
import { refusal } from '../../report/classify.ts'
import { isolationLine } from '../../report/isolation.ts'
import { type JsonForm, jsonForm, printJson } from '../../report/json.ts'
import type { Result } from '../../report/result.ts'
import { errorLines, resultLines, warningLines } from '../../report/text.ts'
import { listNamed } from '../../run/named-sandboxes.ts'
import { NOT_NARROWED } from '../../run/narrowing-sources.ts'
import type { Ending, ExecOptions, Prepared } from '../../run/plan-run.ts'
import type { Decided } from '../../worker/authorize.ts'
import type { Call, Environment, Words } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { END_SIGNALS, endBy } from '../end-by-signal.ts'
import { type CommandLine, commandOf, readCommandLine } from '../exec-arguments.ts'
import type { FinishedRun } from '../finished-run.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { usageError } from '../usage-error.ts'

/** A parsed command line: flags, and below them the variables of the environment that mean the same. */
export interface ExecRequest {
  readonly given: GivenOptions
  /** The options of the command line alone. */
  readonly flags: GivenOptions
  readonly options: ExecOptions
  readonly json: JsonForm | undefined
  /** The text of `-c`. */
  readonly script: string | undefined
  /** Values of `--env` on the command line. */
  readonly variables: readonly string[]
}

function word(given: GivenOptions, name: string): string | undefined {
  const value = given[name]
  return typeof value === 'string' ? value : undefined
}

const listOf = (value: GivenOptions[string]): readonly string[] => (typeof value === 'object' ? value : [])

/** The bytes of the command, where its words are not UTF-8. */
function commandBytes({ bytes }: Words, { commandAt, shell }: CommandLine): readonly Uint8Array[] | undefined {
  if (bytes === undefined) return undefined
  const isOfCommand = (at: number) => commandAt.some(([from, to]) => at >= from && at < to)
  if (bytes.some((word, at) => !isOfCommand(at) && Buffer.from(word).toString().includes('\ufffd'))) {
    throw usageError(
      'an option of the command line is not valid UTF-8.',
      'put the name into a profile, or use another path to the file',
    )
  }
  const before = shell === undefined ? [] : [Buffer.from(shell)]
  return [...before, ...bytes.filter((_, at) => isOfCommand(at))]
}

/** Chooses whether to apply changes to copy-on-write zones. */
async function applyOption(given: GivenOptions): Promise<Pick<ExecOptions, 'apply'>> {
  if (given['apply'] === 'on-success') return { apply: 'on-success' }
  if (given['apply'] !== 'ask') return {}
  const { askToApply } = await import('../ask-to-apply.ts')
  return { apply: askToApply(jsonForm(given['json']) === undefined) }
}

/** The directories of the run that is gone on with, as this one sees them. */
async function continued(given: GivenOptions, env: Environment, cwd: string) {
  const id = word(given, 'cow-continue')
  if (id === undefined) return undefined
  const { findLayer } = await import('../../cow/layers.ts')
  const { record, ...layer } = findLayer(id, env)
  const zones = record.zones.map(({ source, target }) => ({ mode: 'cow' as const, hostPath: source, target }))
  const values: PolicyLayer = {
    layer: 'flag',
    source: '--cow-continue',
    directory: cwd,
    values: { zones, ...(record.isCopy && { cow: { upper: 'copy' as const } }) },
  }
  return { id: layer.id, values }
}

export async function readRequest(call: Call, line: CommandLine): Promise<ExecRequest> {
  const { env } = call
  const cwd = currentDirectory(call)
  const given: GivenOptions = { ...environmentLayers(env, cwd).request, ...line.given }
  if (given['keep-state'] !== undefined)
    throw usageError('--keep-state: a new sandbox has no state.', 'llm-do exec --in NAME --keep-state -- COMMAND')
  const json = jsonForm(given['json'])
  const profile = word(given, 'profile')
  const bytes = commandBytes(call, line)
  const before = await continued(given, env, cwd)
  const options: ExecOptions = {
    command: commandOf(line),
    ...(bytes && { commandBytes: bytes }),
    layers: [...(before === undefined ? [] : [before.values]), flagLayer(line.given, cwd)],
    ...(before === undefined ? {} : { cowContinue: before.id }),
    ...(profile !== undefined && { profile }),
    ...(await applyOption(given)),
    cwd,
    env,
    mode: json === undefined ? 'inherit' : 'capture',
    stdin: 'inherit',
    isAtTerminal: isatty(0) && isatty(2),
    hasTerminal: isatty(0) && isatty(1) && isatty(2),
  }
  return { given, flags: line.given, options, json, script: line.script, variables: listOf(line.given['env']) }
}

/** A variable or a profile serves all runs, also those that have no use for it; a flag is about this run. */
async function refuseUseless({ flags }: ExecRequest, { backend, zones }: Plan): Promise<void> {
  const isKept = flags['docker-reuse'] === 'session'
  if (isKept && (await import('../../backends/index.ts')).backendNamed(backend).traits.root !== 'image')
    throw usageError(`--docker-reuse: the backend is ${backend}, which has no container.`, '--backend docker')
  if (['on-success', 'ask'].includes(word(flags, 'apply') ?? '') && !zones.some(({ mode }) => mode === 'cow'))
    throw usageError('--apply: no directory is copy-on-write, so no change waits.', 'add --cow DIRECTORY')
}

/** The worker's room is loaded for those who name a worker, or a workshop. */
async function workerRoom({ given, options }: ExecRequest) {
  if (given['worker'] === undefined && given['workshop'] === undefined) return undefined
  if (options.commandBytes !== undefined) {
    throw new SandboxError(
      'COMMAND_INVALID',
      'a word of the command is not valid UTF-8, so no rule and no person can tell it from another.',
      {
        hint: 'rename the file, or run it without --worker',
      },
    )
  }
  return await import('../under-worker.ts')
}

interface PlannedRequest {
  readonly options: ExecOptions
  /** By the rules of a worker, where there is one. */
  readonly decided: () => Decided | undefined
}

/** As it would be run. */
async function planned(request: ExecRequest): Promise<PlannedRequest> {
  const under = (await workerRoom(request))?.plannedUnderWorker(request.given, request.script)
  return {
    options: { ...request.options, ...under?.options, ...keepingLog(request, under?.options.narrow) },
    decided: () => under?.decided(),
  }
}

/** `--plan`, `--plan=json`, with `--argv` or `--why`: prints what was decided, runs nothing. */
async function showPlan(request: ExecRequest, words: Words): Promise<number> {
  const { given } = request
  const [{ prepare }, { printLaunch }] = await Promise.all([
    import('../../run/plan-run.ts'),
    import('../../run/start.ts'),
  ])
  const prepared = await prepare((await planned(request)).options)
  await refuseUseless(request, prepared.plan)
  const why = word(given, 'why')
  if (why !== undefined) {
    const { whyText } = await import('../policy-origins.ts')
    await writeStdout(whyText(prepared.policy.origins, why))
  } else if (given['argv'] === true) {
    await writeStdout(withLineEnd(await printLaunch(prepared)))
  } else if (isJsonPlan(request)) await writeStdout(`${JSON.stringify(prepared.plan, null, 2)}\n`)
  else await writeStdout(await textOfPlan(prepared, invocationFor(request, words)))
  return 0
}

/** `--plan --json` cannot mean anything else. */
const isJsonPlan = ({ given, json }: ExecRequest): boolean => given['plan'] === 'json' || json !== undefined

/** @param command as it is shown */
export async function textOfPlan(
  prepared: Prepared,
  invocation: Invocation | undefined,
  command = prepared.request.command,
): Promise<string> {
  const [{ planText }, { passedOver }, { servedRuns }] = await Promise.all([
    import('../../report/plan-text.ts'),
    import('../../plan/choose-backend.ts'),
    import('../../run/cache-plan.ts'),
  ])
  const { plan, policy } = prepared
  return planText({
    plan,
    policy,
    command,
    served: await servedRuns(prepared, invocation),
    passedOver: passedOver({ ...prepared, needs: plan.needs }, plan.backend),
  })
}

const withLineEnd = (text: string) => (text.endsWith('\n') ? text : `${text}\n`)

/** Signals that ask us to stop. The run is ended by our own hand, so that nothing of it is left. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGQUIT'] as const

export async function untilSignal<T>(
  run: (signal: AbortSignal, caller: { stop: (signal: NodeJS.Signals) => void; signals: LentSignals }) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const stop = (signal: NodeJS.Signals) => controller.abort(signal)
  const { signals, end } = lendSignals(stop)
  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  try {
    return await run(controller.signal, { stop, signals })
  } finally {
    end()
    for (const signal of STOP_SIGNALS) process.off(signal, stop)
  }
}

async function runUntilSignal(options: ExecOptions): Promise<Result> {
  const { exec: execute } = await import('../../run/exec.ts')
  return await untilSignal(async (signal, { stop, signals }) => {
    let watch: NodeJS.Timeout | undefined
    const onPlanned = async (plan: Plan) => {
      if (plan.dieWithParent && options.parent !== undefined) watch ??= watchParent(options.parent, stop)
      await options.onPlanned?.(plan)
    }
    try {
      return await execute({ ...options, signal, signals, onPlanned })
    } finally {
      clearInterval(watch)
    }
  })
}

/** Milliseconds between checks: node reports the end of its children only, not of its parent. */
const LOOK_AT_PARENT = 200

/** The end of the parent process is a reason to stop like SIGTERM. */
export function watchParent(parent: number, stop: (signal: NodeJS.Signals) => void): NodeJS.Timeout {
  const look = () => {
    if (process.ppid !== parent) stop('SIGTERM')
  }
  look()
  return setInterval(look, LOOK_AT_PARENT)
}

/** A command must not rewrite the record of its run: log and lock stay read-only in every zone that would show them. */
function keepingLog(request: ExecRequest, narrow: ExecOptions['narrow']): Pick<ExecOptions, 'narrow'> {
  const log = logOf(request)
  if (log === undefined) return narrow === undefined ? {} : { narrow }
  return {
    narrow: async (grant, asked) => {
      const { lockOf } = await import('../../os/file-lock.ts')
      const policy = (await narrow?.(grant, asked)) ?? grant
      return { ...policy, protectFiles: [...policy.protectFiles, log, lockOf(log)] }
    },
  }
}

/** The audit log, absolute. */
function logOf({ given, options: { cwd = '' } }: ExecRequest): string | undefined {
  const file = word(given, 'audit')
  return file === undefined ? undefined : resolve(cwd, file)
}

/** It was let through, and then there was nothing to run, or its end was lost. */
const LET_RUN = new Set(['COMMAND_NOT_FOUND', 'COMMAND_NOT_EXECUTABLE', 'BACKEND_FAILED'])

function decisionOn({ error }: Result): AuditEntry['decision'] {
  if (error === undefined || LET_RUN.has(error.code)) return 'run'
  return error.code === 'COMMAND_BLOCKED' ? 'blocked' : 'refused'
}

interface RecordedRun {
  readonly request: ExecRequest
  readonly result: Result
  /** By the rules of a worker, where there is one. */
  readonly decided: Decided | undefined
  readonly log: AuditLog | undefined
}

/** @returns the result, which says so where the run is not in its log */
async function record({ request: { given }, result, decided, log }: RecordedRun): Promise<Result> {
  if (log === undefined) return result
  const worker = decided?.worker ?? word(given, 'worker')
  const decision = decisionOn(result)
  const entry: AuditEntry = {
    time: new Date().toISOString(),
    result,
    ...(worker !== undefined && { worker }),
    decision,
    // A call that a rule allows can still be refused later: then the rule did not decide.
    decidedBy: (decision === 'refused' ? undefined : decided?.by) ?? 'policy',
  }
  return await log.append(entry).then(
    () => result,
    (error: unknown) => unrecorded(result, error),
  )
}

/** The result of the command is kept: nothing else records the run. */
function unrecorded(result: Result, error: unknown): Result {
  if (!(error instanceof SandboxError)) throw error
  const { code, message, hint } = error
  const earlier = result.error === undefined ? [] : [`${result.error.code}: ${result.error.message}`]
  const warnings = [...result.warnings, ...earlier]
  // The caller relies on the record more than on how the command ended.
  const exitStatus = exitStatusOf(code)
  return { ...result, ok: false, exitStatus, warnings, hints: [hint, ...result.hints], error: { code, message, hint } }
}

/** A run that cannot be recorded must not happen. */
async function openLog({ given, options: { command } }: ExecRequest): Promise<AuditLog | undefined> {
  const file = word(given, 'audit')
  if (file === undefined) return undefined
  const { openAuditLog } = await import('../../report/audit-file.ts')
  return await openAuditLog(file, command)
}

interface Refused extends Omit<RecordedRun, 'result'> {
  readonly error: unknown
}

/** A refusal is part of the record, too. */
async function recordRefusal({ error, ...run }: Refused): Promise<void> {
  if (!(error instanceof SandboxError)) return
  const { command, profile = 'default' } = run.request.options
  const { error: failed } = await record({ ...run, result: refusal(error, command, profile) })
  if (failed?.code === 'OUTPUT_FAILED')
    throw new SandboxError('OUTPUT_FAILED', `${failed.message}. It was refused: ${error.message}`, {
      hint: failed.hint,
      cause: error,
    })
}

/** How the client reads the same words; undefined where that is not how they were read here: it would run another command the next time. */
function invocationFor({ options, variables }: ExecRequest, { text }: Words): Invocation | undefined {
  const division = divisionOf(text, hasBash())
  if (division === undefined || !isDeepStrictEqual(division.command, options.command)) return undefined
  const invocation = invocationOf(division)
  return areVariables(invocation, variables) ? invocation : undefined
}

async function run(request: ExecRequest, words: Words, line: CommandLine): Promise<number> {
  const invocation = words.bytes === undefined ? invocationFor(request, words) : undefined
  const told = new Set<string>()
  const result = await runRecorded({ request, invocation, told, ...(await askingAboutHosts(request)) })
  await keepFailure(result, request, words, line)
  return await show(untold(result, told), request)
}

/** Loaded for those who want to be asked. */
async function askingAboutHosts({ given, json, options: { env = {} } }: ExecRequest): Promise<Partial<RunToRecord>> {
  if (given['ask-hosts'] !== true) return {}
  const { askAboutHosts } = await import('../ask-about-hosts.ts')
  return { changed: askAboutHosts(json === undefined, env) }
}

const untold = (result: Result, told: ReadonlySet<string>): Result => ({
  ...result,
  warnings: result.warnings.filter((warning) => !told.has(warning)),
})

/** Prints warnings known before the command starts, each once; in JSON the result has them all. */
async function warn({ json }: ExecRequest, warnings: readonly string[], told: Set<string>): Promise<void> {
  const untold = json === undefined ? warnings.filter((warning) => !told.has(warning)) : []
  for (const warning of untold) told.add(warning)
  await writeStderr(warningLines(untold))
}

/** For `llm-do why` and for completion; a word that is not UTF-8 would not come back as it was. */
async function keepFailure(
  result: Result,
  { options: { env = {}, cwd = '' } }: ExecRequest,
  { text, bytes }: Words,
  { commandAt }: CommandLine,
): Promise<void> {
  const isFailed = !result.ok && result.backend !== null && bytes === undefined
  if (!isFailed && result.denials.length === 0) return
  const { keepFailedRun, keepRefusedHosts } = await import('../../run/failed-runs.ts')
  keepRefusedHosts(env, result.denials)
  if (isFailed) keepFailedRun({ env, exitStatus: result.exitStatus, directory: cwd, words: text, commandAt })
}

export interface RunToRecord {
  readonly request: ExecRequest
  readonly invocation: Invocation | undefined
  /** Filled in: warnings that people have seen. */
  readonly told: Set<string>
  /** The last word on how it is run. */
  readonly changed?: (options: ExecOptions) => ExecOptions
}

/** The steps that the client takes without node when a run like this one has ended. */
function endingOf(request: ExecRequest): Ending {
  const audit = logOf(request)
  return {
    ...(request.json !== undefined && { form: request.json }),
    ...(audit !== undefined && { audit }),
    isLogged: request.given['log'] === true,
  }
}

export async function runRecorded({
  request,
  invocation,
  told,
  changed = (options) => options,
}: RunToRecord): Promise<Result> {
  const log = await openLog(request)
  try {
    const under = (await workerRoom(request))?.underWorker({ ...request, env: request.options.env ?? {} })
    const options = {
      ...request.options,
      ...(invocation && { invocation, ending: endingOf(request) }),
      narrowedFrom: () => NOT_NARROWED,
      ...under?.options,
      ...keepingLog(request, under?.options.narrow),
      onPlanned: async (plan: Plan) => {
        await refuseUseless(request, plan)
        await warn(request, [...(under?.decided()?.warnings ?? []), ...plan.warnings], told)
      },
    }
    const ran = await runUntilSignal(changed(options)).catch(async (error: unknown) => {
      await recordRefusal({ request, error, decided: under?.decided(), log })
      throw error
    })
    const decided = under?.decided()
    const result = { ...ran, warnings: [...(decided?.warnings ?? []), ...ran.warnings] }
    return await record({ request, result, decided, log })
  } finally {
    log?.close()
  }
}

/** The requested form of JSON, also when nothing else of the command line can be parsed. */
function jsonFormOf(words: readonly string[], env: Environment): JsonForm | undefined {
  const end = words.indexOf('--')
  const found = (end === -1 ? words : words.slice(0, end)).find((word) => /^--json(=\w+)?$/.test(word))
  return jsonForm(found?.split('=')[1] ?? (found === undefined ? env['LLM_DO_EXEC_JSON'] || undefined : 'native'))
}

/** Reads as much as it can of a command line that may be wrong. */
function readIfPossible(words: readonly string[]): { readonly command: readonly string[]; readonly profile: string } {
  try {
    const line = readCommandLine(words, hasBash())
    return { command: commandOf(line), profile: word(line.given, 'profile') ?? 'default' }
  } catch {
    return { command: [], profile: 'default' } // The error that is being reported describes what is wrong with it.
  }
}

/** A refusal is JSON, too, where JSON was requested. */
async function refuse(error: SandboxError, { text: words, env }: Call): Promise<number> {
  const json = jsonFormOf(words, env)
  const { command, profile } = readIfPossible(words)
  const result = refusal(error, command, profile)
  if (json === undefined) await writeStderr(errorLines(error))
  else await writeStdout(printJson(result, json))
  return result.exitStatus
}

async function runCall(call: Call): Promise<number> {
  const isNamed = (word: string) => listNamed(call.env).some(({ name }) => name === word)
  const line = readCommandLine(call.text, hasBash(), { isNamed })
  if (line.help) {
    const { execUsage } = await import('../help.ts')
    await writeStdout(execUsage())
    return 0
  }
  if (line.version) {
    const { packageVersion } = await import('../../os/native-programs.ts')
    await writeStdout(`${packageVersion()}\n`)
    return 0
  }
  const sandbox = word({ ...environmentLayers(call.env, currentDirectory(call)).request, ...line.given }, 'in')
  if (sandbox !== undefined) {
    const { enter } = await import('./enter.ts')
    return await enter(sandbox, call, line)
  }
  const { options, ...asked } = await readRequest(call, line)
  const request = { ...asked, options: { ...options, parent: call.parent } }
  const { plan, argv, why } = request.given
  if (plan !== undefined) return await showPlan(request, call)
  if (argv === true || why !== undefined)
    throw usageError(`${argv === true ? '--argv' : '--why'} belongs to --plan.`, 'llm-do exec --plan ...')
  return await run(request, call, line)
}

/** Text for people, or the requested JSON. */
async function show(result: Result, { given, json }: Pick<ExecRequest, 'given' | 'json'>): Promise<number> {
  if (given['log'] === true) await writeStderr([isolationLine(result.backend)])
  if (json === undefined) await writeStderr(resultLines(result))
  else await writeStdout(printJson(result, json))
  endLike(result)
  return result.exitStatus
}

/** As result_leave of native/client/result.c. */
function endLike({ reason, exitCode, exitStatus }: Result): void {
  if (reason === 'cancelled' && exitCode === null)
    endBy(END_SIGNALS.find((name) => 128 + constants.signals[name] === exitStatus))
}

async function logOfClient(request: ExecRequest, audit: NonNullable<FinishedRun['audit']>): Promise<AuditLog> {
  const { adoptAuditLog } = await import('../../report/audit-file.ts')
  return adoptAuditLog(logOf(request) ?? '', audit)
}

/**
 * The client ran the command and its end needs words: the call has a descriptor with what was captured and what launch
 * reported. Nothing is run again.
 */
export async function explain(call: Call, outcome: number): Promise<number> {
  const { readFinishedRun } = await import('../finished-run.ts')
  const { status, captured, audit } = readFinishedRun(outcome)
  try {
    const { explainOutcome } = await import('../../run/exec.ts')
    const line = readCommandLine(call.text, hasBash())
    const request = await readRequest(call, line)
    const { json } = request
    const log = audit === undefined ? undefined : await logOfClient(request, audit)
    const { options, decided } = await planned(request)
    const told = new Set<string>()
    const onPlanned = async ({ warnings }: Plan) => {
      for (const warning of json === undefined ? warnings : []) told.add(warning)
    }
    const ended = await explainOutcome({ ...options, onPlanned }, status, captured).catch(async (error: unknown) => {
      await recordRefusal({ request, error, decided: decided(), log })
      throw error
    })
    const result = await record({ request, result: ended, decided: decided(), log })
    await keepFailure(result, request, call, line)
    // The client has told them before it started the command.
    return await show(untold(result, told), request)
  } catch (error) {
    if (error instanceof SandboxError) return await refuse(error, call)
    throw error
  }
}

export async function exec(call: Call): Promise<number> {
  try {
    return await runCall(call)
  } catch (error) {
    if (error instanceof SandboxError) return await refuse(error, call)
    throw error
  }
}
