/**
 * The story of a run: one command in, one result out. Everything else (CLI, workers, pool) ends here; there is no second way
 * to build a sandbox.
 * Edge: this process as the caller: its environment, directory and stdin.
 */

import { isatty } from 'node:tty'
import type { RunInputs } from './backend/backend.ts'
import type { Launch } from './backend/launch.ts'
import { printLaunchFile } from './backend/launchfile.ts'
import { launchFile, launchRecords, namespace } from './backend/namespace.ts'
import {
  decidingPlaces,
  describeCaller,
  doorsIn,
  type Environment,
  existing,
  filterOf,
  makeOwnDirectory,
  mountWaysOf,
  newRunId,
  now,
  observeMachine,
  observePolicyPaths,
  prepareZones,
  profileDirectories,
} from './edges.ts'
import { SandboxError } from './error.ts'
import { ACCOUNTS } from './host/accounts.ts'
import { usableCache } from './host/cache.ts'
import { lookAtEntries } from './host/entries.ts'
import type { HostFacts } from './host/facts.ts'
import { standingAt } from './host/program.ts'
import type { Invocation } from './launch-cache/cache-key.ts'
import { variableRules } from './launch-cache/cached-launch.ts'
import { enginesBefore, isCacheable, isPoolable, placesOf } from './launch-cache/eligibility.ts'
import {
  type GuardedLaunch,
  guardLaunch,
  launchCacheDirectory,
  makeLaunchCache,
  storeLaunch,
} from './launch-cache/store.ts'
import { helperFiles, helpersDirectory, packageRoot, packageVersion } from './os/native-helpers.ts'
import { nextToProbe, type Permits } from './plan/choose.ts'
import { warnOfDoors, zonesWithDoors } from './plan/doors.ts'
import { commandEnvironment } from './plan/environment.ts'
import { changedWarnings, type OpenedPlace, openedPlaces } from './plan/opened.ts'
import { isWithin } from './plan/places.ts'
import type { Plan } from './plan/plan.ts'
import type { Request } from './plan/request.ts'
import { resolvePlan } from './plan/resolve.ts'
import { environmentLayers } from './policy/environment.ts'
import type { SandboxInput } from './policy/keys/index.ts'
import type { PolicyLayer } from './policy/layer.ts'
import { loadProfile } from './policy/load.ts'
import { mergePolicies } from './policy/merge.ts'
import { needsOf } from './policy/needs.ts'
import type { Policy } from './policy/policy.ts'
import { checkLayers } from './policy/validate-layers.ts'
import { classify } from './report/classify.ts'
import { shellWord } from './report/hints.ts'
import type { JsonForm } from './report/json.ts'
import type { Result } from './report/result.ts'
import { answerRecords } from './report/result-template.ts'
import type { ChildStdio } from './supervisor/child.ts'
import type { Listener } from './supervisor/framed.ts'
import { type Captured, outcomeOfStatus } from './supervisor/launch-status.ts'
import { superviseNamespace } from './supervisor/namespace.ts'
import type { Outcome } from './supervisor/outcome.ts'
import { runsDirectory } from './supervisor/runs-directory.ts'

export interface ExecOptions {
  readonly command: readonly string[]
  /** The command's words as bytes, where one of them is not UTF-8. */
  readonly commandBytes?: readonly Uint8Array[]
  /** What the program wants of the sandbox, in the words of a profile; host paths are relative to `cwd`. Above the profile. */
  readonly policy?: SandboxInput
  /** The same by voices that are told apart in messages, such as flags; above `policy`, the last one wins. */
  readonly layers?: readonly PolicyLayer[]
  /** Name or path; default `default`. */
  readonly profile?: string
  readonly cwd?: string
  /** The caller's environment; default process.env of this process. */
  readonly env?: Environment
  /** `capture` (default): stdout and stderr are in the result; `inherit`: the command gets our own. */
  readonly mode?: 'inherit' | 'capture'
  readonly stdin?: ChildStdio['stdin']
  /** While a promise that it returns is pending, the command's output waits; only on the backend namespace. */
  readonly onStdout?: Listener
  readonly onStderr?: Listener
  /**
   * Has the last word on the policy before anything is planned: may only narrow it, ask somebody, or throw. Workers come in here.
   */
  readonly narrow?: (grant: Policy, request: Request) => Promise<Policy>
  /** Sees what was planned before anything is made or started, and may throw: a zone may lead elsewhere than when it was judged. */
  readonly accept?: (policy: Policy, plan: Plan) => void
  /** How the command line was written: with it the plan is left for the front-end, see launch-cache/. */
  readonly invocation?: Invocation
  /** With `invocation`: the form of JSON that the result is printed in; without it the output passes through. */
  readonly form?: JsonForm
  /** Ends the run; a reason that is the name of a signal is passed on to the command. */
  readonly signal?: AbortSignal
}

/** What was decided, and what it was decided from. */
export interface Prepared {
  readonly policy: Policy
  readonly request: Request
  readonly facts: HostFacts
  readonly plan: Plan
  /** The command's complete environment, secrets included. */
  readonly commandEnv: Readonly<Record<string, string>>
  readonly options: ExecOptions
  /** Files that were read for the policy, and places where one of them could have been. */
  readonly sources: { readonly read: readonly string[]; readonly missing: readonly string[] }
}

/**
 * Everything up to the decision; starts and makes nothing.
 * @throws SandboxError for a policy or a host that allows no run
 */
export async function prepare(options: ExecOptions): Promise<Prepared> {
  return prepareBy(options, 'trial')
}

/** How it is known that an engine works: by trying each of them before, or by the run itself. */
type EngineCheck = 'trial' | 'run'

async function prepareBy(options: ExecOptions, check: EngineCheck): Promise<Prepared> {
  const { env, request, spoken, grant, sources } = await readGrant(options)
  const policy = (await options.narrow?.(grant, request)) ?? grant
  const needs = needsOf(policy, request.command)
  const permits = { unsandboxed: env['LLM_DO_ALLOW_UNSANDBOXED'] === '1', docker: !spoken.withoutDocker }
  const facts = await factsFor({ policy, request, env, needs, permits, check })
  const seccompFilter = await filterOf(policy, facts)
  const mountWays = await mountWaysOf(policy, seccompFilter(facts.arch), facts)
  const resolved = resolvePlan({ policy, facts, request, needs, permits, seccompFilter, mountWays })
  const plan = warnOfDoors(resolved, doorsIn(zonesWithDoors(resolved)))
  options.accept?.(policy, plan)
  return { policy, request, facts, plan, commandEnv: commandEnvironment(plan, policy, env), options, sources }
}

/** What the operator grants, and who asks for it. */
export interface Granted {
  readonly env: Environment
  readonly request: Request
  readonly spoken: ReturnType<typeof environmentLayers>
  readonly grant: Policy
  readonly sources: Prepared['sources']
}

/**
 * The policy of profile, environment and flags, before anybody narrows it.
 * @throws SandboxError for a command, a directory or a policy that cannot be used
 */
export async function readGrant(options: ExecOptions): Promise<Granted> {
  const env = options.env ?? process.env
  const request = describeCaller({
    command: checkedCommand(options.command),
    cwd: options.cwd ?? process.cwd(),
    env,
    captured: options.mode !== 'inherit',
  })
  const spoken = environmentLayers(env, request.cwd)
  const { policy, sources } = await policyOf({ options, request, env, spoken: spoken.layers })
  return { env, request, spoken, grant: policy, sources }
}

/**
 * Runs one command in one sandbox.
 * @throws SandboxError when the sandbox was refused; a command that fails, and a sandbox that could not be built, are results
 */
export async function exec(options: ExecOptions): Promise<Result> {
  const begunMs = now()
  const cache = options.invocation === undefined ? undefined : launchCache(options)
  if (cache !== undefined) makeLaunchCache(launchCacheDirectory(cache))
  makeOwnDirectory(options.env ?? process.env)
  const { prepared, outcome, guarded } = await run(options, begunMs)
  await leave(prepared, guarded)
  return judge(prepared, outcome)
}

function launchCache({ env = process.env }: ExecOptions): string | undefined {
  return usableCache(env, process.getuid?.() ?? -1)
}

interface Ran {
  readonly prepared: Prepared
  readonly outcome: Outcome
  /** The plan for the front-end. */
  readonly guarded: GuardedLaunch | undefined
}

/** An engine that nobody tried before is tried by the run itself; only if nothing comes of it, every engine is tried by itself. */
async function run(options: ExecOptions, begunMs: number): Promise<Ran> {
  const ran = await attempt(await prepareZones(() => prepareBy(options, 'run')), begunMs)
  if (!isEngineInDoubt(ran)) return ran
  const again = await prepareZones(() => prepareBy(options, 'trial'))
  // The engine works: what failed is something else, and would fail again.
  return again.plan.hash === ran.prepared.plan.hash ? { ...ran, prepared: again } : attempt(again, begunMs)
}

/** What is left for the front-end is put together while the command runs. A plan that cannot be guarded is made again next time. */
async function attempt(prepared: Prepared, begunMs: number): Promise<Ran> {
  const places = openedIn(prepared)
  const before = lookAtEntries(places.map(({ path }) => path))
  const supervised = supervise(prepared)
  const guarding = afterStart(() => guardedLaunch(prepared, begunMs)).catch(() => undefined)
  const [outcome, guarded] = await Promise.all([supervised, guarding])
  const after = lookAtEntries(places.map(({ path }) => path))
  const warnings = [...outcome.warnings, ...changedWarnings({ places, before, after })]
  return { prepared, outcome: { ...outcome, warnings }, guarded }
}

/** Where a change is told in the result: names that are protected unless the policy opens them. Mostly none. */
function openedIn({ policy, plan, request }: Pick<Prepared, 'policy' | 'plan' | 'request'>): readonly OpenedPlace[] {
  return policy.protectNot.length === 0 ? [] : openedPlaces({ policy, zones: plan.zones, homes: request.homes })
}

/** A process is started within the turn of the event loop in which it was asked for. */
async function afterStart<T>(then: () => Promise<T>): Promise<T> {
  await new Promise((resolve) => setImmediate(resolve))
  return then()
}

/** Only where launch itself says that the command never started. */
function isEngineInDoubt({ prepared: { facts, plan }, outcome: { cause, failure } }: Ran): boolean {
  const isUntried = plan.engine !== undefined && facts.untried === plan.engine
  return isUntried && cause === 'setup' && failure !== undefined
}

/** What the front-end's run came to, told by whoever knows the words: the same plan, made again, and the outcome of launch. */
export async function explainOutcome(options: ExecOptions, status: string, captured?: Captured): Promise<Result> {
  const outcome = outcomeOfStatus(status, captured)
  // A sandbox that could not be built is a question to the engines.
  return judge(await prepareBy(options, outcome.cause === 'setup' ? 'trial' : 'run'), outcome)
}

/** What an outcome means for whoever asked for the run. */
export async function judge(prepared: Prepared, outcome: Outcome): Promise<Result> {
  const { plan, policy, facts, request } = prepared
  return classify(plan, outcome, request.command, {
    origins: policy.origins,
    invisible: await invisibleWords(prepared, outcome),
    ...(plan.engine === undefined ? {} : { program: `${helpersDirectory()}/launch` }),
    ...(facts.surroundings === undefined ? {} : { around: facts.surroundings }),
  })
}

/** The exact process of a plan, for people: its argv and what it reads. */
export async function printLaunch(prepared: Prepared): Promise<string> {
  const { plan, facts } = prepared
  const run = await runInputsOf(prepared, 'run')
  if (plan.backend !== 'namespace') {
    const { buildElsewhere } = await import('./supervisor/elsewhere.ts')
    return printWords(buildElsewhere(plan, run))
  }
  const { file, argv } = namespace.build(plan, run)
  const engine = enginePathOf(facts, plan)
  const told = launchFile(plan, {
    runsDirectory: run.runsDirectory,
    ...(engine === undefined ? {} : { enginePath: engine }),
  })
  return `${printWords({ file, argv })}${printLaunchFile(told)}`
}

function printWords({ file, argv }: Pick<Launch, 'file' | 'argv'>): string {
  return `${[file, ...argv].map(shellWord).join(' ')}\n`
}

/* ---- the steps ---- */

function checkedCommand(command: readonly string[]): readonly string[] {
  if (command[0] === undefined)
    throw new SandboxError('COMMAND_INVALID', 'there is no command to run', {
      hint: 'llm-do exec [options] -- COMMAND [ARG...]',
    })
  const broken = command.findIndex((word) => word.includes('\0'))
  if (broken !== -1)
    throw new SandboxError(
      'COMMAND_INVALID',
      `argument ${broken} of the command contains a NUL byte, which no process can receive`,
      {
        hint: 'pass binary data by stdin or by a file in a zone',
      },
    )
  return command
}

interface PolicyQuestion {
  readonly options: ExecOptions
  readonly request: Request
  readonly env: Environment
  readonly spoken: readonly PolicyLayer[]
}

function layersOf({ policy, layers = [] }: ExecOptions, directory: string): readonly PolicyLayer[] {
  return policy === undefined ? layers : [{ layer: 'flag', source: 'policy', directory, values: policy }, ...layers]
}

async function policyOf({
  options,
  request,
  env,
  spoken,
}: PolicyQuestion): Promise<Pick<Prepared, 'policy' | 'sources'>> {
  const profile = options.profile ?? 'default'
  const directories = profileDirectories(env, request.home)
  const loaded = await loadProfile({ ...directories, name: profile, cwd: request.cwd })
  const layers = [...loaded.layers, ...spoken, ...layersOf(options, request.cwd)]
  const merged = mergePolicies(await checkLayers(layers), { profile, home: request.home })
  const filter = typeof merged.seccomp === 'string' ? [] : [merged.seccomp.file]
  // Also what would have been found before them: the next run looks there first.
  const files = [...loaded.found, ...loaded.read, ...loaded.missing, ...filter]
  return {
    policy: { ...merged, protectFiles: [...new Set([...files, ...decidingPlaces(env, request)])] },
    sources: { read: [...new Set([...loaded.read, ...loaded.found, ...filter])], missing: loaded.missing },
  }
}

interface FactsQuestion {
  readonly policy: Policy
  readonly request: Request
  readonly env: Environment
  readonly needs: ReturnType<typeof needsOf>
  readonly permits: Permits
  readonly check: EngineCheck
}

/** Where a command can write, or could when it was called from here: no program of the host is looked for there. */
function untrustedPlaces({ policy, request }: Pick<Prepared, 'policy' | 'request'>): readonly string[] {
  return [
    ...standingAt(request.cwd),
    ...policy.zones.flatMap((zone) => (zone.mode === 'rw' && zone.hostPath ? [zone.hostPath] : [])),
  ]
}

/** A container daemon is slow to answer, so it is asked only when the namespace backend is not enough. */
async function factsFor(question: FactsQuestion): Promise<HostFacts> {
  const { policy, request, env, check } = question
  const notBelow = untrustedPlaces(question)
  const look = (want: readonly ('namespace' | 'docker' | 'wasm')[]) =>
    observeMachine({ want, policy, env, notBelow, believe: check === 'run' })
  // The machine is asked first: the paths are looked at while a process that was asked thinks.
  const [machine, paths] = await Promise.all([
    look(policy.runtime === 'wasmtime' ? ['namespace', 'wasm'] : ['namespace']),
    observePolicyPaths(policy, request),
  ])
  const first: HostFacts = { ...machine, paths }
  if (nextToProbe({ ...question, facts: first }) === undefined) return first
  return { ...(await look(['namespace', 'docker'])), paths }
}

function enginePathOf(facts: HostFacts, plan: Plan): string | undefined {
  return plan.engine === 'bwrap' ? facts.bwrap?.path : undefined
}

function runInputs({ plan, facts, request, commandEnv, options }: Prepared, runId: string): RunInputs {
  const enginePath = enginePathOf(facts, plan)
  return {
    runId,
    command: request.command,
    ...(options.commandBytes === undefined ? {} : { commandBytes: options.commandBytes }),
    commandEnv,
    ...(enginePath === undefined ? {} : { enginePath }),
    helpers: helpersDirectory(),
    runsDirectory: runsDirectory(options.env ?? process.env, facts.uid),
    stdinIsTerminal: isatty(0),
  }
}

function stdioOf({ options, plan }: Prepared): ChildStdio {
  return {
    mode: options.mode ?? 'capture',
    stdin: options.stdin ?? 'ignore',
    outputCap: plan.limits.output ?? null,
    ...(options.onStdout === undefined ? {} : { onStdout: options.onStdout }),
    ...(options.onStderr === undefined ? {} : { onStderr: options.onStderr }),
  }
}

/** The plan as the front-end and the pool may use it again. @returns undefined when it is node's each time */
export async function guardedLaunch(prepared: Prepared, begunMs: number): Promise<GuardedLaunch | undefined> {
  const { request, options } = prepared
  const { shippedDirectory: shippedProfiles } = profileDirectories(options.env ?? process.env, request.home)
  if (options.invocation === undefined || !isCacheable({ ...prepared, shippedProfiles })) return undefined
  const { sealOf, takeSecret } = await import('./host/secret.ts')
  const secret = takeSecret({ env: options.env ?? process.env, uid: prepared.facts.uid })
  // Without a place that no sandbox can see, nothing on disk could be believed.
  if (secret === undefined) return undefined
  return guardPlan(prepared, { invocation: options.invocation, begunMs, seal: (bytes) => sealOf(secret, bytes) })
}

export interface Guarding {
  readonly invocation: Invocation
  /** When planning began. */
  readonly begunMs: number
  /** For a plan that is left on disk. */
  readonly seal?: (bytes: Uint8Array) => string
}

/** A plan with all that it was made from, for memory; a file may hold less, see isCacheable. */
export async function guardPlan(
  prepared: Prepared,
  { invocation, begunMs, seal }: Guarding,
): Promise<GuardedLaunch | undefined> {
  const { plan, policy, facts, request, options, sources } = prepared
  const enginePath = enginePathOf(facts, plan)
  // Only node looks at opened names before and after the run.
  if (plan.engine === undefined || openedIn(prepared).length > 0) return undefined
  const run = runInputs(prepared, '')
  const accounts = accountsOf(plan)
  return guardLaunch({
    invocation,
    caller: { version: packageVersion(), root: packageRoot(), cwd: request.cwd, env: options.env ?? process.env },
    places: placesOf(prepared),
    read: [...sources.read, ...accounts.read, ...(enginePath === undefined ? [] : [enginePath]), ...helperFiles()],
    absent: [
      ...sources.missing,
      ...accounts.missing,
      ...(enginePath === undefined ? [] : enginesBefore(enginePath, request.path)),
    ],
    variables: variableRules(plan.env, policy),
    isPoolable: isPoolable(prepared),
    answer: options.form === undefined ? [] : answerRecords(plan, options.form),
    records: launchRecords(plan, run),
    begunMs,
    seal,
  })
}

/** Names of homes are protected in the homes of all accounts, so another list of accounts is another plan. */
function accountsOf({ zones }: Plan): Prepared['sources'] {
  if (zones.every(({ mode }) => mode === 'ro')) return { read: [], missing: [] }
  return existing([ACCOUNTS]).length > 0 ? { read: [ACCOUNTS], missing: [] } : { read: [], missing: [ACCOUNTS] }
}

/** The next run with the same words in the same place need not wait for node. */
export async function leaveForFront(prepared: Prepared, begunMs: number): Promise<GuardedLaunch | undefined> {
  const guarded = await guardedLaunch(prepared, begunMs)
  await leave(prepared, guarded)
  return guarded
}

async function leave({ options }: Prepared, guarded: GuardedLaunch | undefined): Promise<void> {
  const cache = launchCache(options)
  if (cache !== undefined && guarded !== undefined) storeLaunch(launchCacheDirectory(cache), guarded)
}

/** The launch file alone, for who keeps the rest in memory. */
export function plainLaunch(prepared: Prepared): Uint8Array {
  const { plan, facts } = prepared
  const enginePath = enginePathOf(facts, plan)
  const { runsDirectory } = runInputs(prepared, '')
  return launchFile(plan, { runsDirectory, ...(enginePath === undefined ? {} : { enginePath }) })
}

async function supervise(prepared: Prepared): Promise<Outcome> {
  const { plan, options, policy } = prepared
  const run = await runInputsOf(prepared, newRunId())
  const stdio = stdioOf(prepared)
  const { signal } = options
  if (plan.backend === 'namespace') return superviseNamespace({ launch: namespace.build(plan, run), stdio, signal })
  const { superviseElsewhere } = await import('./supervisor/elsewhere.ts')
  return superviseElsewhere({ plan, run, stdio, signal, bestEffort: policy.bestEffort })
}

/** The other backends are loaded when one of them is meant: most runs never need them. */
async function runInputsOf(prepared: Prepared, runId: string): Promise<RunInputs> {
  const { plan, facts, request, options } = prepared
  const run = runInputs(prepared, runId)
  if (plan.backend === 'namespace') return run
  const { inputsElsewhere } = await import('./supervisor/elsewhere.ts')
  return { ...run, ...inputsElsewhere({ plan, facts, env: options.env ?? process.env, cwd: request.cwd }) }
}

/** Words of a failed command that are paths here and not inside: for a hint, never for the reason. */
async function invisibleWords({ plan, request }: Prepared, { exitCode, cause }: Outcome): Promise<readonly string[]> {
  if (cause !== 'exit' || exitCode === 0) return []
  // Nothing of the host is in a directory or a tmpfs that the sandbox makes.
  const made = plan.system.filter(({ op }) => op === 'directory' || op === 'file')
  const shown = plan.system.filter((entry) => !made.includes(entry))
  const isShown = (word: string): boolean =>
    [...plan.scratch, ...made].some(({ target }) => word === target) ||
    [...plan.zones, ...shown].some(({ target }) => isWithin(word, target))
  const words = request.command.slice(1).filter((word) => word.startsWith('/') && word !== '/' && !isShown(word))
  return existing([...new Set(words)].filter((word) => !/^\/(proc|dev)(\/|$)/.test(word)))
}
