/**
 * The story of a run: one command in, one result out. Every caller (CLI, workers, pool) ends here, and nothing else
 * builds a sandbox. plan-run.ts makes the plan, start.ts runs it, cache-plan.ts caches it for the C client, report/ explains the outcome.
 * Edge: this process as the caller; the event loop.
 */
import { isatty } from 'node:tty'
import { type Captured, outcomeOfStatus } from '../backends/launch-status.ts'
import { endedOnItsOwn, type Outcome } from '../backends/outcome.ts'
import { appliedPending, isListed, pendingAfter } from '../cow/pending.ts'
import { SandboxError } from '../error.ts'
import { entryIdentities } from '../host/entries.ts'
import type { GuardedLaunch } from '../launch-cache/store.ts'
import { nativeDirectory } from '../os/native-programs.ts'
import { changedWarnings, openedIn } from '../plan/opened.ts'
import type { Plan } from '../plan/plan.ts'
import { holdsCredentials, isWithin, normal } from '../plan/well-known-paths.ts'
import { classify } from '../report/classify.ts'
import type { InvisiblePath } from '../report/hints.ts'
import { loopbackPorts } from '../report/loopback.ts'
import { lostHints, savedHints } from '../report/lost-files.ts'
import { missingNames } from '../report/missing-names.ts'
import type { LedPaths } from '../report/observed.ts'
import type { Result } from '../report/result.ts'
import { absolutePathsIn, endOf } from '../report/stderr-denials.ts'
import { writtenHints } from '../report/written-names.ts'
import { cachePlan, guardedLaunch, makeCacheFor } from './cache-plan.ts'
import { withCallbacks } from './callbacks.ts'
import { makeOwnDirectory } from './caller.ts'
import { ledOut } from './led-out.ts'
import { listeningAmong } from './listening.ts'
import { prepareZones } from './make-zones.ts'
import { existing } from './observe.ts'
import { type ExecOptions, type Prepared, prepareBy } from './plan-run.ts'
import { now } from './run-id.ts'
import { invisibleInterpreter, invisiblePath } from './show-path.ts'
import { start } from './start.ts'

/**
 * Runs one command in one sandbox.
 * @throws SandboxError when the sandbox was refused, and whatever a listener or the input has failed with; a command that fails, and a
 * sandbox that could not be built, are results
 */
export async function exec(options: ExecOptions): Promise<Result> {
  const begunMs = now()
  makeCacheFor(options)
  makeOwnDirectory(options.env ?? process.env)
  const { prepared, outcome, guarded } = await withCallbacks(options, (callbacks) =>
    run({ ...options, ...callbacks }, begunMs),
  )
  await cachePlan(prepared, guarded)
  return decide(options, await judge(prepared, outcome), outcome)
}

/** Applies or discards the changes to copy-on-write zones, if the caller has decided beforehand. */
async function decide({ apply, env = process.env }: ExecOptions, result: Result, { layer }: Outcome): Promise<Result> {
  if (result.cow === undefined || layer === undefined || apply === undefined || !isListed(result.cow)) return result
  const isWanted = typeof apply === 'function' ? await apply(result.cow) : apply === 'on-success' && result.ok
  if (!isWanted) return result
  return { ...result, cow: await appliedPending(result.cow, { ...layer, env }) }
}

interface Ran {
  readonly prepared: Prepared
  readonly outcome: Outcome
  /** The plan for the C client. */
  readonly guarded: GuardedLaunch | undefined
}

/**
 * The run itself tries an engine that was not tried before; only if it fails, every engine is tried by an empty sandbox. Not with an
 * input of which the first attempt may take a part.
 */
async function run(options: ExecOptions, begunMs: number): Promise<Ran> {
  const check = options.stdin === undefined || canRestart(options.stdin) ? 'run' : 'trial'
  const ran = await attempt(await prepareZones(() => prepareBy(options, check)), begunMs)
  if (!isEngineInDoubt(ran)) return ran
  const again = await prepareZones(() => prepareBy(options, 'trial'))
  // The engine works: what failed is something else, and would fail again.
  return again.plan.hash === ran.prepared.plan.hash ? { ...ran, prepared: again } : attempt(again, begunMs)
}

const canRestart = (stdin: NonNullable<ExecOptions['stdin']>): boolean =>
  typeof stdin === 'string' || stdin instanceof Uint8Array || stdin.canRestart

/** The plan for the C client is written while the command runs. A plan that cannot be guarded is made again next time. */
async function attempt(prepared: Prepared, begunMs: number): Promise<Ran> {
  refuseUnanswered(prepared)
  await prepared.options.onPlanned?.(prepared.plan)
  const opened = openedIn(prepared)
  const before = entryIdentities(opened.map(({ path }) => path))
  const supervised = start(prepared)
  const guarding = afterStart(() => guardedLaunch(prepared, begunMs)).catch(() => undefined)
  const [outcome, guarded] = await Promise.all([supervised, guarding])
  const after = entryIdentities(opened.map(({ path }) => path))
  const warnings = [...outcome.warnings, ...changedWarnings({ opened, before, after })]
  return { prepared, outcome: { ...outcome, warnings }, guarded }
}

/** Libraries, agents and services have no person to ask. */
function refuseUnanswered({ plan: { network }, options }: Prepared): void {
  if (network.mode !== 'restricted' || network.grants !== 'ask' || options.answerHosts !== undefined) return
  throw new SandboxError('POLICY_INVALID', 'network.grants: ask needs a person at a terminal, who is asked there.', {
    hint: 'llm-do exec --ask-hosts at a terminal, or --allow-later, which llm-do allow adds hosts to',
  })
}

/** Waits for the next turn of the event loop: a process is started within the turn in which `spawn` is called. */
async function afterStart<T>(then: () => Promise<T>): Promise<T> {
  await new Promise((resolve) => setImmediate(resolve))
  return then()
}

/** Only where launch itself says that the command never started. */
function isEngineInDoubt({ prepared: { facts, plan }, outcome: { reason, failure } }: Ran): boolean {
  const isUntried = plan.engine !== undefined && facts.untried === plan.engine
  return isUntried && reason === 'setup' && failure?.code === 'SETUP_FAILED'
}

/** The result of a run that the C client started: the same plan, made again, and the outcome that launch reported. */
export async function explainOutcome(options: ExecOptions, status: string, captured?: Captured): Promise<Result> {
  const outcome = outcomeOfStatus(status, captured)
  // A sandbox that could not be built is a question to the engines.
  const prepared = await prepareBy(options, isUnbuilt(outcome) ? 'trial' : 'run').catch((error: unknown) => {
    throw isUnbuilt(outcome) ? error : unexplained(outcome, error)
  })
  await options.onPlanned?.(prepared.plan)
  return decide(options, await judge(prepared, outcome), outcome)
}

const isUnbuilt = ({ failure }: Outcome): boolean => failure?.code === 'SETUP_FAILED'

/** The command can have changed what its plan was made from, such as its own working directory. Never a refusal: it has run. */
function unexplained({ exitCode, signal }: Outcome, error: unknown): unknown {
  if (!(error instanceof SandboxError)) return error
  const end = signal === null ? `exit code ${exitCode}` : signal
  return new SandboxError(
    'BACKEND_FAILED',
    `the command has run and ended with ${end}, and what its plan was made from has changed, so there is no more to tell: ${error.message}`,
    { hint: 'look at what it changed before you run it again', cause: error },
  )
}

/** Turns an outcome into the result for the caller. */
export async function judge(prepared: Prepared, outcome: Outcome): Promise<Result> {
  const { plan, policy, facts, request, options } = prepared
  if (outcome.observed !== undefined) options.watch?.(outcome.observed)
  return classify(plan, outcome, request.command, {
    origins: policy.origins,
    ...hiddenPaths(prepared, outcome),
    interpreter: isInterpreterMissing(outcome) ? invisibleInterpreter(prepared) : undefined,
    homes: request.homes,
    led: ledRows(prepared, outcome),
    listening: listeningFor(prepared, outcome),
    written: writtenFor(prepared, outcome),
    lost: lostFor(prepared, outcome),
    isBuffered: request.captured || (!plan.tty && !isatty(1)),
    pending: await pendingAfter({
      ...(outcome.layer === undefined ? {} : { layer: { ...outcome.layer, env: options.env ?? process.env } }),
    }),
    ...(plan.engine === undefined || outcome.failure === undefined ? {} : { program: `${nativeDirectory()}/llm-do` }),
    ...(facts.surroundings === undefined ? {} : { around: facts.surroundings }),
  })
}

/** Only what --allow-host localhost:PORT can help. */
function listeningFor({ plan }: Prepared, outcome: Outcome): readonly number[] {
  if (outcome.exitCode === 0 || !endedOnItsOwn(outcome) || plan.network.mode === 'host') return []
  return listeningAmong(loopbackPorts(endOf(outcome.stderr)))
}

/** At a terminal only the words of the command are known: its stderr is the terminal. */
function writtenFor({ plan, request }: Prepared, outcome: Outcome): readonly string[] {
  if (request.captured || outcome.exitCode === 0 || !endedOnItsOwn(outcome) || !isatty(2)) return []
  return writtenHints(request.command, plan, (path) => existing([path]).length > 0)
}

/** Captured output names what it has saved; at a terminal the words of the command do. */
function lostFor({ plan, request }: Prepared, outcome: Outcome): readonly string[] {
  if (outcome.exitCode !== 0) return []
  if (request.captured) return savedHints([endOf(outcome.stdout), endOf(outcome.stderr)], plan)
  return isatty(2) ? lostHints(request.command, plan) : []
}

/** Some names of the sandbox's root lie above the workspace on the host. The result has their path on the host, or leaves them out. */
function ledRows(prepared: Prepared, { observed }: Outcome): LedPaths {
  const reads = (observed?.rows ?? []).filter(({ what }) => what === 'hidden-read').map(({ path }) => normal(path))
  const elsewhere = reads.filter((path) => existing([path]).length === 0)
  const led = (path: string) => ledOut({ paths: [path], modules: [] }, prepared)[0]
  return new Map(elsewhere.map((path) => [path, led(path)]))
}

/** Paths that are here and not inside, among the words of a command that has failed and in what it said: never for the reason. */
function hiddenPaths(
  prepared: Prepared,
  outcome: Outcome,
): { readonly invisible?: readonly InvisiblePath[]; readonly hidden?: readonly InvisiblePath[] } {
  if (!endedOnItsOwn(outcome) || outcome.exitCode === 0) return {}
  const { plan, request } = prepared
  const isSecret = (path: string) => request.homes.some((home) => holdsCredentials(path, home))
  const hidden = existing(
    absolutePathsIn(endOf(outcome.stderr)).filter((path) => isHidden(path, plan) && !isSecret(path)),
  )
  // People read a hint of what the command line names, and then no denial of it; JSON has one row of each path.
  const words = request.command.slice(1).filter((word) => word.startsWith('/') && isHidden(word, plan))
  const others = existing([...new Set(words)].filter((word) => !request.captured || !hidden.includes(word)))
  const said = missingNames(endOf(outcome.stderr))
  const led = ledOut({ ...said, paths: said.paths.filter((name) => !hidden.includes(name)) }, prepared)
  const relative = request.command.slice(1).filter((word) => /^[^-/]/.test(word))
  const named = ledOut({ paths: relative, modules: [] }, prepared)
  return {
    hidden: [...hidden.map((path) => invisiblePath(path, prepared) ?? { path }), ...led],
    invisible: [
      // No flag is named that would show them.
      ...others.flatMap((path) => (isSecret(path) ? { path } : (invisiblePath(path, prepared) ?? []))),
      ...named.filter(({ path }) => !request.captured || !led.some((one) => one.path === path)),
    ],
  }
}

function isHidden(path: string, plan: Plan): boolean {
  // Nothing of the host is in a directory or a tmpfs that the sandbox makes.
  const made = plan.system.filter(({ op }) => op === 'directory' || op === 'file')
  const shown = plan.system.filter((entry) => !made.includes(entry))
  const isShown =
    [...plan.scratch, ...made].some(({ target }) => path === target) ||
    [...plan.zones, ...shown].some(({ target }) => isWithin(path, target))
  // Of /etc the plan mounts the files that programs need: the rest of it, such as /etc/shadow, is never suggested.
  return path !== '/' && !isShown && !/^\/(proc|dev|etc)(\/|$)/.test(path)
}

const isInterpreterMissing = ({ failure }: Outcome): boolean =>
  failure?.code === 'COMMAND_NOT_EXECUTABLE' && failure.errno === 'ENOENT'
