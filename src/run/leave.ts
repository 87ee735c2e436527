/**
 * Leaves a plan for the C client, with all that it was made from, so that the next run need not wait for node.
 * Edge: the caller's environment, the user's cache directory (by launch-cache/).
 */
import { enginePathOf, type LaunchFileInputs, launchFile, launchRecords } from '../backends/namespace/build.ts'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import { runsDirectory } from '../backends/runs-directory.ts'
import { ACCOUNTS } from '../host/accounts.ts'
import type { Invocation } from '../launch-cache/cache-key.ts'
import { isForAnyVariables, variableRules, variablesOf } from '../launch-cache/cached-launch.ts'
import { enginesBefore, inspectedPaths, isCacheable, isForNode, isPoolable } from '../launch-cache/eligibility.ts'
import type { CacheOwner } from '../launch-cache/places.ts'
import { guardsOfProgram } from '../launch-cache/program.ts'
import { type GuardedLaunch, guardLaunch, makeLaunchCache, storeLaunch } from '../launch-cache/store.ts'
import { builtProgram, nativeFiles, packageRoot, packageVersion } from '../os/native-programs.ts'
import type { PathFacts } from '../plan/mounts.ts'
import { openedIn } from '../plan/opened.ts'
import type { Plan } from '../plan/plan.ts'
import { endRecords } from '../report/foreseen-ends.ts'
import { isolationLine } from '../report/isolation.ts'
import { auditRecords, templateRecords } from '../report/result-template.ts'
import { warningLines } from '../report/text.ts'
import { filesTellingHome, profileDirectories } from './caller.ts'
import { type NarrowingSources, NOT_NARROWED } from './narrowing-sources.ts'
import { existing } from './observe.ts'
import type { ExecOptions, Prepared } from './plan-run.ts'
import { layersDirectoryOf } from './start.ts'

/** Made before anything is looked at: a plan that saw the directory missing would be stale as soon as it is stored. */
export function makeCacheFor(options: ExecOptions): void {
  if (options.invocation !== undefined) makeLaunchCache(cacheOwner(options))
}

const cacheOwner = ({ env = process.env }: ExecOptions): CacheOwner => ({ env, uid: process.getuid?.() ?? -1 })

/** The plan as the C client and the pool may use it again. @returns undefined when node must plan each time */
export async function guardedLaunch(prepared: Prepared, begunMs: number): Promise<GuardedLaunch | undefined> {
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
  return guardPlan(prepared, {
    invocation: { ...invocation, program, isForAnyVariables: isForAnyVariables(prepared.plan.env, given) },
    paths,
    narrowing,
    begunMs,
    seal: (bytes) => sealOf(secret, bytes),
  })
}

export interface Guarding {
  readonly invocation: Invocation
  /** What was seen and led to the plan, and must still be so. */
  readonly paths: PathFacts
  readonly narrowing?: NarrowingSources
  /** When planning began. */
  readonly begunMs: number
  /** For a plan that is left on disk. */
  readonly seal?: (bytes: Uint8Array) => string
}

/** A plan with all that it was made from, for memory; a file may hold less, see isCacheable. */
export async function guardPlan(
  prepared: Prepared,
  { invocation, paths, narrowing = NOT_NARROWED, begunMs, seal }: Guarding,
): Promise<GuardedLaunch | undefined> {
  const { plan, policy, facts, request, options, sources, tools } = prepared
  const { enginePath } = enginePathOf(facts, plan)
  if (isForNode(plan)) return undefined
  // Only node looks at opened names before and after the run.
  if (plan.engine === undefined || openedIn(prepared).length > 0) return undefined
  // The key would have to hold the variable, in which may be a password.
  if (tools.isForThisRun) return undefined
  const filesOfHome = filesTellingHome(options.env ?? process.env, facts.uid)
  if (filesOfHome === undefined) return undefined
  const accounts = accountsOf(plan, filesOfHome)
  return guardLaunch({
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
      ...(enginePath === undefined ? [] : [enginePath]),
      ...nativeFiles({ isHostNetwork: plan.network.mode === 'host' }),
      // Another planner of the same version (a build from a checkout) makes other plans. The sources alone, in a test, have none.
      ...existing([builtProgram()]),
    ],
    absent: [
      ...sources.missing,
      ...narrowing.missing,
      ...accounts.missing,
      ...(enginePath === undefined ? [] : enginesBefore(enginePath, request.path)),
    ],
    variables: variableRules(plan.env, policy, variablesOf(invocation.variables)),
    unset: tools.unset,
    isPoolable: isPoolable(prepared),
    endsWithParent: plan.dieWithParent === true,
    judgement: narrowing.judgement,
    ending: endingRecords(prepared, narrowing.worker),
    records: launchRecords(plan, fileInputs(prepared)),
    begunMs,
    seal,
  })
}

/** What the client says and writes at the end of the run. */
function endingRecords({ plan, policy, options }: Prepared, worker: string | undefined): readonly LaunchRecord[] {
  const { form, audit, isLogged = false } = options.ending ?? {}
  return [
    ...endRecords(plan, { origins: policy.origins, form, isAudited: audit !== undefined }),
    ...(form === undefined ? [] : templateRecords(plan, form)),
    ...(audit === undefined ? [] : auditRecords(plan, audit, worker)),
    ...(form === undefined ? warningLines(plan.warnings).map((line) => ['warning', line] as const) : []),
    ...(isLogged ? [['isolation', isolationLine(plan.backend)] as const] : []),
  ]
}

type Places = Readonly<Record<string, string | undefined>>

/** Two looks at one place that differ are none that a plan could rest on. */
function agreeing(one: Places, other: Places): Places {
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
export async function leaveForClient(prepared: Prepared, begunMs: number): Promise<GuardedLaunch | undefined> {
  const guarded = await guardedLaunch(prepared, begunMs)
  await leave(prepared, guarded)
  return guarded
}

export async function leave({ options }: Prepared, guarded: GuardedLaunch | undefined): Promise<void> {
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
    ...(layersDirectory === undefined ? {} : { layersDirectory }),
  }
}
