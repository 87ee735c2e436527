/**
 * Caches a plan for the C client, with all that it was made from, so that the next run need not wait for node.
 * Edge: the caller's environment, the user's cache directory (by launch-cache/).
 */
import { isAbsolute, join } from 'node:path'
import { backendNamed } from '../backends/index.ts'
import { enginePathOf, type LaunchFileInputs, launchFile, launchRecords } from '../backends/namespace/build.ts'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import { KEY_ANY_PROGRAM, KEY_VARIABLE_PREFIX } from '../contract.ts'
import { hasLayers } from '../cow/layered.ts'
import { layerDirectories } from '../cow/state-directory.ts'
import { ACCOUNTS } from '../host/accounts.ts'
import { runsDirectory } from '../host/own-directory.ts'
import { type AnyDirectory, elsewhere, forAnyDirectory, pathInside, type Words } from '../launch-cache/any-directory.ts'
import type { Invocation } from '../launch-cache/cache-key.ts'
import { isForAnyVariables, variableRules, variablesOf } from '../launch-cache/cached-launch.ts'
import { enginesBefore, inspectedPaths, isCacheable, isForNode, isPoolable } from '../launch-cache/eligibility.ts'
import type { CacheOwner } from '../launch-cache/places.ts'
import { guardsOfProgram } from '../launch-cache/program.ts'
import { namedPlaces, POOL_SLOT } from '../launch-cache/slots.ts'
import { type GuardedLaunch, guardLaunch, makeLaunchCache, storeLaunch, wordsOf } from '../launch-cache/store.ts'
import { UPSTREAM_VARIABLES } from '../network/upstream.ts'
import { builtProgram, hostCall, nativeFiles, packageRoot, packageVersion } from '../os/native-programs.ts'
import { runProgram } from '../os/run-program.ts'
import { type Places, placesOf } from '../plan/hash.ts'
import { type PathFacts, pathFact } from '../plan/mounts.ts'
import { openedIn } from '../plan/opened.ts'
import type { Plan } from '../plan/plan.ts'
import { isolationLine } from '../report/isolation.ts'
import { auditRecords, resultRecords, wordRecords } from '../report/plan-words.ts'
import { warningLines } from '../report/text.ts'
import { filesTellingHome, profileDirectories } from './caller.ts'
import { type NarrowingSources, NOT_NARROWED } from './narrowing-sources.ts'
import { existing } from './observe.ts'
import { type ExecOptions, type Prepared, prepareIn } from './plan-run.ts'
import { keepsErrors, layersDirectoryOf } from './start.ts'

/** Made before anything is looked at: a plan that saw the directory missing would be stale as soon as it is stored. */
export function makeCacheFor(options: ExecOptions): void {
  if (options.invocation !== undefined) makeLaunchCache(cacheOwner(options))
}

const cacheOwner = ({ env = process.env }: ExecOptions): CacheOwner => ({ env, uid: process.getuid?.() ?? -1 })

/** A plan as it is left for the client. */
export interface CachedPlan extends GuardedLaunch {
  /** The same for this directory alone. */
  readonly own: () => GuardedLaunch | undefined
  /** Whether a pool is built from it, and serves every directory; else from that of this one. */
  readonly isBlank: boolean
  /** Why it serves this directory alone; undefined where it serves others, too. */
  readonly servesOneBecause?: string
}

/** The plan as the C client and the pool may use it again. @returns undefined when node must plan each time */
export async function guardedLaunch(prepared: Prepared, begunMs: number): Promise<CachedPlan | undefined> {
  const { request, options } = prepared
  const { shippedDirectory: shippedProfiles } = profileDirectories(options.env ?? process.env, request.home)
  const { invocation } = options
  // A layer can be gone on with until it is applied or discarded, and node tells what has become of it.
  if (options.cowContinue !== undefined) return undefined
  const given = variablesOf(invocation?.variables ?? [])
  if (invocation === undefined || !isCacheable({ ...prepared, shippedProfiles, given })) return undefined
  const { sealOf, takeSecret } = await import('../host/secret.ts')
  const secret = takeSecret({ env: options.env ?? process.env, uid: prepared.facts.uid })
  // Without a place that no sandbox can see, nothing on disk could be believed.
  if (secret === undefined) return undefined
  const narrowing = options.narrow === undefined ? NOT_NARROWED : options.narrowedFrom?.()
  if (narrowing === undefined) return undefined
  const { program, paths } = guardsOfProgram(prepared.policy, prepared.request, prepared.facts.paths)
  const guarding: Guarding = {
    invocation: { ...invocation, program, isForAnyVariables: isForAnyVariables(prepared.plan.env, given) },
    paths,
    narrowing,
    begunMs,
    seal: (bytes) => sealOf(secret, bytes),
  }
  const words = wordsFor(prepared, guarding)
  if (words === undefined) return undefined
  const any = await wordsForAnyDirectory(prepared, guarding, words)
  const left = guardLaunch('words' in any ? any.words : words, guarding)
  if (left === undefined) return undefined
  if ('dependsOn' in any) return { ...left, isBlank: false, own: () => left, servesOneBecause: any.dependsOn }
  const why = await whyUnfit(left, prepared, guarding.invocation)
  if (why !== '') {
    const one = guardLaunch(words, guarding)
    return one === undefined ? undefined : { ...one, isBlank: false, own: () => one, servesOneBecause: why }
  }
  const isBlank = left.pool !== POOL_SLOT
  const pool = isBlank ? left.pool : words.pool
  // The seal of a filled plan is a MAC over this text, as in native/lib/any-directory.c.
  const seal = (): string => sealOf(secret, Buffer.from(`a plan for the directory\0${left.check} ${words.pool}`))
  return { ...left, pool, isBlank, own: () => guardLaunch({ ...words, pool }, { begunMs, seal }) }
}

/** Milliseconds; it looks at a few paths. */
const FITTING_PATIENCE_MS = 10_000

/** Asks the program that fills it in. @returns why the plan does not serve this directory; empty where it does */
async function whyUnfit({ bytes }: GuardedLaunch, { request }: Prepared, invocation: Invocation): Promise<string> {
  const { sources } = namedPlaces(invocation.options)
  const { ok, stdout, why } = await runProgram({
    ...hostCall('launch', ['--fits', request.command[0] ?? '', ...sources]),
    cwd: request.cwd,
    patienceMs: FITTING_PATIENCE_MS,
    input: bytes,
  })
  return ok ? stdout.trimEnd() : why
}

/** The words of a plan that serves every directory, tried by planning from another one. */
async function wordsForAnyDirectory(prepared: Prepared, guarding: Guarding, words: Words): Promise<AnyDirectory> {
  const dependsOn = boundTo(prepared, guarding)
  if (dependsOn !== undefined) return { dependsOn }
  const { plan, policy, request, facts } = prepared
  const places = placesIn(prepared)
  const inside = pathInside({ words, places })
  if (inside !== undefined) return { dependsOn: `the plan was made from ${inside}` }
  const there = elsewhere(plan, places)
  try {
    const other = await prepareIn(prepared, { from: places, to: there })
    const { paths } = guardsOfProgram(other.policy, other.request, other.facts.paths)
    const otherWords = wordsFor(other, { ...guarding, paths })
    if (otherWords === undefined) return { dependsOn: 'the plan of another directory is not kept' }
    return forAnyDirectory(
      { words, plan, places },
      { words: otherWords, plan: other.plan, places: placesIn(other) },
      { plan, policy, request, paths: facts.paths, traits: backendNamed(plan.backend).traits },
    )
  } catch (error) {
    // A call that cannot be planned from another directory depends on this one, and gets a separate plan.
    return { dependsOn: `from another directory: ${(error as Error).message}` }
  }
}

const placesIn = ({ plan, facts, request }: Prepared): Places => placesOf(plan, pathFact(facts.paths, request.cwd))

/** The reason why a plan is only for its directory, in addition to the differences that planning from another one shows. */
function boundTo(prepared: Prepared, { invocation }: Guarding): string | undefined {
  const { policy, request, sources, tools, options } = prepared
  const { program } = invocation
  const named = namedPlaces(invocation.options).sources
  const others = placesIn(prepared).slice(1)
  const repositories = [...sources.read, ...sources.missing].filter((path) => isGitPath(path, request.cwd))
  if (request.cwd === '/') return 'it is the root directory'
  if (wordsWithPaths(options, invocation).some((word) => GOES_UP.test(word)))
    return 'a path leads up (..): what is above the directory is another one for each'
  if (others.length !== named.length || others.some(({ path }, at) => path !== named[at]))
    return 'a zone of the command line has no target, is behind a link, or lies in another directory'
  if (options.narrow !== undefined) return 'a worker or an audit log changes the policy of each run'
  if (policy.samePath) return 'samePath: paths inside are those of the directory'
  if (policy.home !== null) return 'home: it is kept for the directory'
  if (policy.caches.length > 0) return 'caches: they are kept for the directory'
  if (policy.gitIdentity) return 'gitIdentity: git is asked in the directory'
  if (tools.read.length + tools.missing.length + tools.unset.length > 0)
    return 'network.allow: names of tools are looked up in the files of the directory'
  if (repositories.length > 0) return 'it is a linked worktree or a submodule'
  if (program !== KEY_ANY_PROGRAM && program.includes('/') && !isAbsolute(program))
    return `${program} is looked for in the directory`
  return undefined
}

/** `..` above the root is the root: from two directories it can lead to one place, and from a third one to another. */
const GOES_UP = /(?:^|[^.])\.\.(?![.])/

/** Where paths that are relative to the caller's directory can be. */
function wordsWithPaths({ env = process.env }: ExecOptions, { options }: Invocation): readonly string[] {
  const said = Object.keys(env).filter((name) => name.startsWith(KEY_VARIABLE_PREFIX))
  return [...options, ...said.map((name) => env[name] ?? '')]
}

/** A file that says where the repository is, or lies in it. That there is no `.git` is looked at again for each directory. */
const isGitPath = (path: string, cwd: string): boolean => path.split('/').includes('.git') && path !== join(cwd, '.git')

export interface Guarding {
  readonly invocation: Invocation
  /** Observations that led to the plan, and must still be true. */
  readonly paths: PathFacts
  readonly narrowing?: NarrowingSources
  /** When planning began. */
  readonly begunMs: number
  /** For a plan that is left on disk. */
  readonly seal?: (bytes: Uint8Array) => string
}

/** A plan with all that it was made from, for memory; a file may hold less, see isCacheable. */
export function guardPlan(prepared: Prepared, guarding: Guarding): GuardedLaunch | undefined {
  const words = wordsFor(prepared, guarding)
  return words && guardLaunch(words, guarding)
}

function wordsFor(
  prepared: Prepared,
  { invocation, paths, narrowing = NOT_NARROWED }: Omit<Guarding, 'begunMs'>,
): Words | undefined {
  const { plan, policy, facts, request, options, sources, tools } = prepared
  const { enginePath } = enginePathOf(facts, plan)
  if (isForNode(plan)) return undefined
  // Only node looks at opened names before and after the run.
  if (plan.engine === undefined || openedIn(prepared).length > 0) return undefined
  // The key would have to hold the variable, in which may be a password.
  if (tools.isForThisRun) return undefined
  // Their server may run again by the next run, which then has a warning.
  if (prepared.hasUnboundSockets) return undefined
  const filesOfHome = filesTellingHome(options.env ?? process.env, facts.uid)
  if (filesOfHome === undefined) return undefined
  const accounts = accountsOf(plan, filesOfHome)
  return wordsOf({
    invocation,
    caller: {
      version: packageVersion(),
      root: packageRoot(),
      cwd: request.cwd,
      isAtTerminal: options.isAtTerminal ?? false,
      hasTerminal: options.hasTerminal ?? false,
      env: options.env ?? process.env,
    },
    paths: agreeing(inspectedPaths(facts, paths), inspectedPaths({ cgroup: facts.cgroup }, narrowing.paths)),
    read: [
      ...sources.read,
      ...narrowing.read,
      ...accounts.read,
      ...(request.authorities?.files ?? []).map(({ file }) => file),
      ...(enginePath === undefined ? [] : [enginePath]),
      ...nativeFiles({ isHostNetwork: plan.network.mode === 'host' }),
      // Another planner of the same version (a build from a checkout) makes other plans. The sources alone, in a test, have none.
      ...existing([builtProgram()]),
    ],
    absent: [
      ...sources.missing,
      ...narrowing.missing,
      ...accounts.missing,
      ...homeAsSaid(options),
      ...(request.authorities?.files ?? []).flatMap(({ names }) => names),
      ...(enginePath === undefined ? [] : enginesBefore(enginePath, request.path)),
    ],
    variables: variableRules(plan.env, policy, variablesOf(invocation.variables)),
    unset: [...tools.unset, ...(plan.network.mode === 'restricted' ? UPSTREAM_VARIABLES : [])],
    isPoolable: isPoolable(prepared),
    endsWithParent: plan.dieWithParent === true,
    judgement: narrowing.judgement,
    ending: endingRecords(prepared, narrowing.worker),
    records: launchRecords(plan, fileInputs(prepared)),
    places: placesIn(prepared),
    planHash: plan.hash,
  })
}

/** A link in it may lead to another home, which the plan has only by where it led. */
const homeAsSaid = ({ env: { HOME } = process.env }: ExecOptions): readonly string[] =>
  HOME === undefined || HOME === '' ? [] : [HOME]

/** The plan's share of what the client prints and records at the end of the run. */
function endingRecords(
  { plan, policy, facts, options }: Prepared,
  worker: string | undefined,
): readonly LaunchRecord[] {
  const { form, audit, isLogged = false } = options.ending ?? {}
  return [
    ...(options.apply === 'on-success' && hasLayers(plan)
      ? layerDirectories(options.env ?? process.env, facts.uid).map((place) => ['apply', place] as const)
      : []),
    ...wordRecords(plan, { origins: policy.origins, form }),
    ...(form === undefined ? [] : resultRecords(plan, form)),
    ...(audit === undefined ? [] : auditRecords(plan, audit, worker)),
    ...(form === undefined ? warningLines(plan.warnings).map((line) => ['warning', line] as const) : []),
    ...(isLogged ? [['isolation', isolationLine(plan.backend)] as const] : []),
  ]
}

type Identities = Readonly<Record<string, string | undefined>>

/** Two looks at one place that differ are none that a plan could rest on. */
function agreeing(one: Identities, other: Identities): Identities {
  const torn = Object.keys(one).filter((path) => path in other && other[path] !== one[path])
  return { ...other, ...one, ...Object.fromEntries(torn.map((path) => [path, undefined])) }
}

/** Names of homes are protected in the homes of all accounts, so another list of accounts is another plan. */
function accountsOf({ zones }: Plan, filesOfHome: readonly string[]): Prepared['sources'] {
  const files = [...(zones.every(({ mode }) => mode === 'ro') ? [] : [ACCOUNTS]), ...filesOfHome]
  const read = existing([...new Set(files)])
  return { read, missing: files.filter((file) => !read.includes(file)) }
}

/** Leaves the plan for the C client: the next run with the same words in the same place does not wait for node. */
export async function cacheForClient(prepared: Prepared, begunMs: number): Promise<CachedPlan | undefined> {
  const guarded = await guardedLaunch(prepared, begunMs)
  await cachePlan(prepared, guarded)
  return guarded
}

/** The runs that start without Node once this plan is there, for people. */
export async function servedRuns(prepared: Prepared, invocation: Invocation | undefined): Promise<string> {
  const options = { ...prepared.options, ...(invocation === undefined ? {} : { invocation }) }
  const left = invocation && (await guardedLaunch({ ...prepared, options }, Date.now()))
  if (left === undefined) return 'Node plans each run'
  const why = left.servesOneBecause
  return why === undefined ? 'kept, for every directory' : `kept, for this directory alone: ${why}`
}

export async function cachePlan({ options }: Prepared, guarded: GuardedLaunch | undefined): Promise<void> {
  if (guarded !== undefined) storeLaunch(cacheOwner(options), guarded)
}

/** The launch file alone, for pools, which keep the rest in memory. */
export function plainLaunch(prepared: Prepared): Uint8Array {
  return launchFile(prepared.plan, fileInputs(prepared))
}

function fileInputs(prepared: Prepared): LaunchFileInputs {
  const { plan, facts, request, options } = prepared
  const layersDirectory = layersDirectoryOf(prepared)
  return {
    ...enginePathOf(facts, plan),
    runsDirectory: runsDirectory(options.env ?? process.env, facts.uid),
    callerDirectory: request.cwd,
    ...(keepsErrors(options) ? { keepsErrors: true } : {}),
    ...(request.authorities && { authorities: request.authorities.files }),
    ...(layersDirectory === undefined ? {} : { layersDirectory }),
  }
}
