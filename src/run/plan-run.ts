/**
 * Ask, look, decide: from the caller's request to a plan, without starting or making anything.
 * Edge: this process as the caller: its environment and directory.
 */
import path from 'node:path'
import type { Permits } from '../backends/backend.ts'
import type { Listener } from '../backends/capture.ts'
import type { ChildStdio } from '../backends/child-process.ts'
import { BACKENDS, backendNamed, offersFor } from '../backends/index.ts'
import type { ObservedReport } from '../backends/outcome.ts'
import type { PendingChanges } from '../cow/pending.ts'
import { SandboxError } from '../error.ts'
import { readAuthorities } from '../host/authorities.ts'
import type { HostFacts } from '../host/facts.ts'
import { lookForWorktree, type WorktreeLook } from '../host/linked-worktree.ts'
import { secretDirectory } from '../host/own-directory.ts'
import { untrustedFrom } from '../host/program.ts'
import type { Invocation } from '../launch-cache/cache-key.ts'
import { isTerminated, secretFiles } from '../network/termination.ts'
import { upstreamOf } from '../network/upstream.ts'
import { exactCwd } from '../os/exact-cwd.ts'
import type { LentSignals } from '../os/passed-signals.ts'
import { nextToObserve } from '../plan/choose-backend.ts'
import { commandEnvironment } from '../plan/environment.ts'
import { markPlaces, type Places } from '../plan/hash.ts'
import { pathFact } from '../plan/mounts.ts'
import type { BackendOffer } from '../plan/offers.ts'
import { warnOfOpenSockets, zonesWithOpenSockets } from '../plan/open-sockets.ts'
import type { Plan } from '../plan/plan.ts'
import type { Request } from '../plan/request.ts'
import { resolvePlan } from '../plan/resolve-plan.ts'
import { TRUST_PLACES } from '../plan/trust.ts'
import { keepSecrets } from '../policy/after-secrets.ts'
import { restrictionProblems } from '../policy/cross-key-checks.ts'
import { environmentLayers } from '../policy/environment.ts'
import type { SandboxInput } from '../policy/keys/index.ts'
import type { PolicyLayer } from '../policy/layer.ts'
import { loadProfile } from '../policy/load.ts'
import { mergePolicies } from '../policy/merge.ts'
import { needsOf } from '../policy/needs.ts'
import type { Policy } from '../policy/policy.ts'
import { profileName } from '../policy/profile-layer.ts'
import { withTerminal } from '../policy/terminal-layer.ts'
import { checkLayers } from '../policy/validate-layers.ts'
import { type BackendName, isWritable } from '../policy/values.ts'
import type { JsonForm } from '../report/json.ts'
import { decidingPaths, describeCaller, type Environment, ownPrograms, profileDirectories } from './caller.ts'
import { filterOf } from './filter.ts'
import { nearerRepositories, projectOf } from './home-project.ts'
import type { HomeCaller } from './homes.ts'
import type { NarrowingSources } from './narrowing-sources.ts'
import { observeMachine, observePolicyPaths, openSocketsIn } from './observe.ts'
import { withRepository } from './repository-zones.ts'
import { readGitIdentity, resolveToolHosts, type ToolSources } from './tool-hosts.ts'

export interface ExecOptions {
  readonly command: readonly string[]
  /** The command's words as bytes, where one of them is not UTF-8. */
  readonly commandBytes?: readonly Uint8Array[]
  /** The program's settings of the sandbox, in the words of a profile; host paths are relative to `cwd`. Above the profile. */
  readonly policy?: SandboxInput
  /** The same from sources that messages name, such as flags; above `policy`, the last one wins. */
  readonly layers?: readonly PolicyLayer[]
  /** Name or path; default `default`. */
  readonly profile?: string
  readonly cwd?: string
  /** The caller's environment; default process.env of this process. */
  readonly env?: Environment
  /** `capture` (default): stdout and stderr are in the result; `inherit`: the command gets our own. */
  readonly mode?: 'inherit' | 'capture'
  /** Default `ignore`: empty. */
  readonly stdin?: ChildStdio['stdin'] | Uint8Array
  /** stdin and stderr of the caller are terminals: such a run has no default timeout. */
  readonly isAtTerminal?: boolean
  /** So is stdout: `tty: auto` gives the command another terminal. */
  readonly hasTerminal?: boolean
  /** Process that started the caller, where a run may end with it; 0 where it is in another pid namespace. */
  readonly parent?: number
  /** While a promise that it returns is pending, the command's output waits. What it fails with ends the run, and is what is thrown. */
  readonly onStdout?: Listener
  readonly onStderr?: Listener
  /**
   * Has the last word on the policy before anything is planned: may only narrow it, ask a person, or throw. Workers use it.
   */
  readonly narrow?: (grant: Policy, request: Request) => Promise<Policy>
  /** Sees what was planned before anything is made or started, and may throw: a zone may lead elsewhere than when it was judged. */
  readonly accept?: (policy: Policy, plan: Plan) => void
  /** Told of the plan before the command starts; what it warns of is in the result, too. An engine that fails is another plan. */
  readonly onPlanned?: (plan: Plan) => Promise<void>
  /** With `narrow`: what the policy that it gave last was made from. Without it a plan is only good for the run it was made for. */
  readonly narrowedFrom?: () => NarrowingSources | undefined
  /** How the command line was written: with it the plan is left for the C client, see launch-cache/. */
  readonly invocation?: Invocation
  /** With `invocation`: what the client does with an ordinary end, without node. */
  readonly ending?: Ending
  /**
   * Decides about the changes to copy-on-write zones: `on-success` applies them when the command exits with 0 and nothing
   * prevents it; a function decides after any end; `never` (default) keeps them until a person decides.
   */
  readonly apply?: ApplyChoice | ((waiting: PendingChanges) => Promise<boolean>)
  /** With the policy's `explain`: calls that only ask about a file are watched, too, which makes programs slow that ask about thousands. */
  readonly watchesLooks?: true
  /** Sees all that the observer has noted, also of a command that succeeded. */
  readonly watch?: (report: ObservedReport) => void
  /** The ID of a run whose layer this one continues; its copy-on-write zones must be the same. */
  readonly cowContinue?: string
  /** The sandbox serves other commands of this user's while its own one runs, see src/run/named-sandboxes.ts. Of backends with launch files. */
  readonly serve?: ServeOptions
  /** Answers questions about hosts (`network.grants: ask`), until `ended`; without it such a run is refused. Its output is for people. */
  readonly answerHosts?: (runId: string, ended: AbortSignal, plan: Plan) => Promise<void>
  /** Ends the run; the reasons SIGINT, SIGTERM, SIGQUIT and SIGHUP are passed on to the command, any other is SIGTERM to it. */
  readonly signal?: AbortSignal
  /** Signals for the command, which do not end the run. */
  readonly signals?: LentSignals
}

export interface ServeOptions {
  /** Name of the run; it must be unique. */
  readonly runId: string
  /** Where other commands are asked for: this user's alone. */
  readonly directory: string
  /** Called once, when the command has been executed. */
  readonly onServing: () => void
}

export interface Ending {
  /** Of JSON that the result is printed in; without it the output passes through. */
  readonly form?: JsonForm
  /** The log that the run is appended to, absolute. */
  readonly audit?: string
  /** The line that says how the run was isolated is printed. */
  readonly isLogged?: boolean
}

export const APPLY_CHOICES = ['on-success', 'never'] as const
export type ApplyChoice = (typeof APPLY_CHOICES)[number]

/** The plan, and the inputs of its decisions. */
export interface Prepared {
  readonly policy: Policy
  readonly request: Request
  readonly facts: HostFacts
  readonly plan: Plan
  /** A zone has files of sockets that have ended, see findSockets. */
  readonly hasUnboundSockets: boolean
  /** The candidates for the backend, in the order of `auto`. */
  readonly offers: readonly BackendOffer[]
  /** The command's complete environment, secrets included. */
  readonly commandEnv: Readonly<Record<string, string>>
  readonly options: ExecOptions
  /** Files that were read for the policy, and paths where one of them could have been. */
  readonly sources: { readonly read: readonly string[]; readonly missing: readonly string[] }
  /** The sources of the hosts for the names of tools. */
  readonly tools: ToolSources
}

/**
 * Everything up to the decision; starts and makes nothing.
 * @throws SandboxError for a policy or a host that allows no run
 */
export async function prepare(options: ExecOptions): Promise<Prepared> {
  return prepareBy(options, 'trial')
}

/** Names of tools and a worker change the network; the result must pass the same checks as the operator's own lists. */
function refuseNetwork({ network }: Policy, { secretDirectories }: Request): void {
  const problems = restrictionProblems(network)
  const [first] = problems
  if (first !== undefined)
    throw new SandboxError('POLICY_INVALID', first, { problems, hint: 'llm-do exec --plan --why network.allow' })
  // A sandbox may be shown any other directory, and would find the socket there.
  if (network.grants !== undefined && secretDirectories.length === 0)
    throw new SandboxError('POLICY_INVALID', 'network.grants: expected a runtime directory of this user, got none.', {
      hint: 'export XDG_RUNTIME_DIR=DIRECTORY (yours, mode 0700), or log in by PAM (loginctl enable-linger)',
    })
}

/** The variable's value may hold a password, and is repeated nowhere. */
function withUpstream(request: Request, { network }: Policy, env: Environment): Request {
  if (network.mode !== 'restricted') return request
  const reading = upstreamOf(env)
  if (reading.ok) return reading.value === undefined ? request : { ...request, upstream: reading.value }
  throw new SandboxError('POLICY_INVALID', `https_proxy: expected ${reading.expected}, got something else.`, {
    hint: "NO_PROXY='*' llm-do exec ...   (reaches hosts directly)",
  })
}

/** TLS that ends here is verified by this host's bundle, and inside by the authority of the run alone. */
function withAuthorities(request: Request, policy: Policy, env: Environment): Request {
  if (policy.network.mode === 'none' || isTerminated(policy.network)) return request
  const notBelow = untrustedDirectories({ policy, request })
  const authorities = readAuthorities({ env, shown: TRUST_PLACES, notBelow })
  return authorities === undefined ? request : { ...request, authorities }
}

/**
 * In a sandbox of our own there are no namespaces, and its walls stand around whatever is decided in it: `auto` is what can be had
 * there, which only narrows.
 */
function settleInside(policy: Policy, { isInsideOwn }: HostFacts): Policy {
  const { backend, engine, image, runtime } = policy
  const isOpen = backend === 'auto' && engine === 'auto' && image === undefined && runtime === undefined
  return isOpen && isInsideOwn ? { ...policy, backend: 'no-namespaces' } : policy
}

/** How it is known that an engine works: by trying each of them before, or by the run itself. */
export type EngineCheck = 'trial' | 'run'

export async function prepareBy(options: ExecOptions, check: EngineCheck): Promise<Prepared> {
  const { env, request: asked, spoken, grant, sources, tools } = await readGrant(options)
  const narrowed = keepSecrets((await options.narrow?.(grant, asked)) ?? grant, grant)
  const request = withAuthorities(withUpstream(asked, narrowed, env), narrowed, env)
  refuseNetwork(narrowed, request)
  const needs = needsOf(narrowed, request.command)
  const permits = permitsOf(env, spoken)
  const facts = await factsFor({ policy: narrowed, request, env, needs, permits, check })
  const policy = settleInside(narrowed, facts)
  const { plan, offers, hasUnboundSockets } = await decide({ policy, request, facts, needs, permits, tools })
  options.accept?.(policy, plan)
  const commandEnv = commandEnvironment(plan, policy, env)
  return { policy, request, facts, plan, offers, hasUnboundSockets, commandEnv, options, sources, tools }
}

interface Seen extends Pick<Prepared, 'policy' | 'request' | 'facts' | 'tools'> {
  readonly needs: ReturnType<typeof needsOf>
  readonly permits: Permits
}

async function decide(seen: Seen): Promise<Pick<Prepared, 'plan' | 'offers' | 'hasUnboundSockets'>> {
  const { policy, request, facts, needs, permits, tools } = seen
  const refused = policy.backend === 'auto' ? [] : backendNamed(policy.backend).traits.refuses(policy.network.mode)
  const filter = await filterOf(policy, { ...facts, refused })
  const offers = offersFor({ policy, facts, permits })
  const { warnings } = tools
  const resolved = resolvePlan({ policy, facts, request, needs, offers, ...filter, warnings })
  const zones = zonesWithOpenSockets(resolved, backendNamed(resolved.backend).traits)
  const place = pathFact(facts.paths, request.cwd)
  const openSockets = openSocketsIn(zones)
  const hasUnboundSockets = Object.values(openSockets).some(({ hasUnbound }) => hasUnbound)
  return { plan: warnOfOpenSockets(resolved, place, { zones, openSockets }), offers, hasUnboundSockets }
}

export interface Move {
  readonly from: Places
  readonly to: Places
}

/**
 * The plan of the same call for other directories, of which nothing is known but that they are some: what a plan for any directory is held
 * against (launch-cache/any-directory.ts). Of files below them it sees what was seen there.
 * @throws SandboxError where the policy cannot be used for them
 */
export async function prepareIn(prepared: Prepared, move: Move): Promise<Prepared> {
  const { facts, request, tools } = prepared
  const [place] = move.to
  const layers = prepared.options.layers?.map((layer) => movedLayer(layer, move))
  const options = { ...prepared.options, cwd: place.path, ...(layers === undefined ? {} : { layers }) }
  const env = options.env ?? process.env
  const { repository: _, ...rest } = request
  const moved = { ...rest, cwd: place.path }
  const spoken = environmentLayers(env, place.path)
  const { policy: merged, sources } = await policyOf({ options, request: moved, env, spoken: spoken.layers })
  const policy = settleInside(keepSecrets(merged, merged), facts)
  const seen = {
    policy,
    request: moved,
    facts: { ...facts, paths: movedPaths(facts.paths, move) },
    needs: needsOf(policy, request.command),
    permits: permitsOf(env, spoken),
    tools,
  }
  const decided = await decide(seen)
  const look = { read: [], missing: [path.join(place.path, '.git')] }
  return {
    ...prepared,
    ...seen,
    ...decided,
    options,
    sources: withFiles(sources, look),
  }
}

/** The words of zones that name the directories name the others. */
function movedLayer(layer: PolicyLayer, { from, to }: Move): PolicyLayer {
  const directory = layer.directory === from[0].path ? to[0].path : layer.directory
  const { zones } = layer.values
  if (layer.layer !== 'flag' || !Array.isArray(zones)) return { ...layer, directory }
  const moved = zones.map((zone) => {
    const at = from.findIndex(({ path }, index) => index > 0 && path === zone.hostPath)
    return at === -1 ? zone : { ...zone, hostPath: to[at]?.path }
  })
  return { ...layer, directory, values: { ...layer.values, zones: moved } }
}

function movedPaths(paths: HostFacts['paths'], { from, to }: Move): HostFacts['paths'] {
  const move = (path: string): string => markPlaces(path, from, (at) => to[at]?.path ?? '')
  return Object.fromEntries(
    Object.values(paths).map((fact) => {
      const at = from.findIndex(({ path }) => path === fact.path)
      const { dev, ino, uid, gid } = to[at] ?? fact
      return [move(fact.path), { ...fact, path: move(fact.path), real: move(fact.real), dev, ino, uid, gid }]
    }),
  )
}

const permitsOf = (env: Environment, spoken: ReturnType<typeof environmentLayers>): Permits => ({
  unsandboxed: env['LLM_DO_ALLOW_UNSANDBOXED'] === '1',
  docker: !spoken.withoutDocker,
})

/** The operator's grants, and the request. */
export interface Granted {
  readonly env: Environment
  readonly request: Request
  readonly spoken: ReturnType<typeof environmentLayers>
  readonly grant: Policy
  readonly sources: Prepared['sources']
  readonly tools: ToolSources
}

/**
 * The policy of profile, environment and flags, before it is narrowed.
 * @throws SandboxError for a command, a directory or a policy that cannot be used
 */
export async function readGrant(options: ExecOptions): Promise<Granted> {
  const env = options.env ?? process.env
  const caller = describeCaller({
    command: checkedCommand(options.command),
    cwd: options.cwd ?? exactCwd(),
    env,
    captured: options.mode !== 'inherit' && options.answerHosts === undefined,
  })
  // Under a worker nothing is shown but what was granted and asked for.
  const look = options.narrow === undefined ? lookForWorktree(caller.cwd, ownUid()) : NO_LOOK
  const { worktree, repository } = look
  const seen = {
    ...caller,
    ...(worktree === undefined ? {} : { worktree }),
    ...(repository === undefined ? {} : { repository }),
    ...(options.hasTerminal === true ? { hasTerminal: true as const } : {}),
    ...(options.parent === 0 ? { isParentUnseen: true as const } : {}),
  }
  const spoken = environmentLayers(env, seen.cwd)
  const { policy, sources } = await policyOf({ options, request: seen, env, spoken: spoken.layers })
  const places = await placesOf(policy, seen, env)
  const homeProject =
    policy.home === null && !policy.repository
      ? seen.cwd
      : projectOf(seen.cwd, look, { uid: ownUid(), home: seen.home })
  const nearer = homeProject === seen.cwd || worktree !== undefined ? [] : nearerRepositories(seen.cwd, homeProject)
  const question = toolQuestion({ policy, request: seen, env })
  const zoned = withRepository(policy, { ...seen, project: homeProject })
  const resolved = await resolveToolHosts(await withKeptHome(zoned, { env, project: homeProject }), question)
  const { identity, tools } = readGitIdentity(resolved, question)
  const request = {
    ...seen,
    ...places,
    ...(homeProject === seen.cwd ? {} : { homeProject }),
    ...(identity === undefined ? {} : { gitIdentity: identity }),
    ...(resolved.policy.selfInside ? { ownPrograms: ownPrograms() } : {}),
  }
  return {
    env,
    request,
    spoken,
    grant: resolved.policy,
    sources: withFiles(withFiles(withFiles(sources, tools), look), { read: [], missing: nearer }),
    tools,
  }
}

/** Loaded for those who keep one: its name takes node's cryptography. */
async function withKeptHome(policy: Policy, caller: Omit<HomeCaller, 'uid'>): Promise<Policy> {
  if (policy.home === null) return policy
  const { withHome } = await import('./homes.ts')
  return withHome(policy, { ...caller, uid: process.getuid?.() ?? -1 })
}

/** node's cryptography, which names them, is loaded for them alone. */
async function placesOf(
  { caches }: Policy,
  { cwd }: Request,
  env: Environment,
): Promise<Pick<Request, 'privatePlaces'>> {
  if (caches.length === 0) return {}
  const { privatePlaces } = await import('../host/private-directory.ts')
  const places = privatePlaces({ env, uid: process.getuid?.() ?? -1, kind: 'caches', directory: cwd })
  return places === undefined ? {} : { privatePlaces: places }
}

const toolQuestion = ({
  policy,
  request,
  env,
}: Pick<Prepared, 'policy' | 'request'> & { readonly env: Environment }) => ({
  env,
  home: request.home,
  cwd: request.cwd,
  uid: process.getuid?.() ?? -1,
  notBelow: untrustedDirectories({ policy, request }),
  cache: secretDirectory(env, process.getuid?.() ?? -1),
})

const NO_LOOK: WorktreeLook = { read: [], missing: [] }

const withFiles = (sources: Prepared['sources'], { read, missing }: Prepared['sources']): Prepared['sources'] => ({
  read: [...new Set([...sources.read, ...read])],
  missing: [...new Set([...sources.missing, ...missing])],
})

const ownUid = (): number => process.getuid?.() ?? -1

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

/** @param directory that host paths of `policy` are relative to */
export function layersOf(
  { policy, layers = [] }: Pick<ExecOptions, 'policy' | 'layers'>,
  directory: string,
): readonly PolicyLayer[] {
  if (policy === undefined) return layers
  return [{ layer: 'flag', source: 'policy', directory, values: policy, isObject: true }, ...layers]
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
  const standard = path.join(directories.shippedDirectory, 'default.yaml')
  const isForPerson = options.isAtTerminal === true && (options.serve !== undefined || !request.captured)
  const profiles = isForPerson ? withTerminal(loaded.layers, standard) : loaded.layers
  const layers = [...profiles, ...spoken, ...layersOf(options, request.cwd)]
  const merged = mergePolicies(await checkLayers(layers), { profile: profileName(profile), home: request.home })
  const filter = typeof merged.seccomp === 'string' ? [] : [merged.seccomp.file]
  // Also what would have been found before them: the next run looks there first. And what decides which file it reads for a host.
  const files = [
    ...loaded.found,
    ...loaded.read,
    ...loaded.missing,
    ...filter,
    ...secretFiles(merged.network.credentials),
  ]
  return {
    policy: { ...merged, protectFiles: [...new Set([...files, ...decidingPaths(env, request)])] },
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
function untrustedDirectories({ policy, request }: Pick<Prepared, 'policy' | 'request'>): readonly string[] {
  return [
    ...untrustedFrom(request.cwd),
    ...policy.zones.flatMap((zone) => (isWritable(zone.mode) && zone.hostPath ? [zone.hostPath] : [])),
  ]
}

/** Facts of one backend, such as the answer of a daemon, are observed only when no backend before it is enough. */
async function factsFor(question: FactsQuestion): Promise<HostFacts> {
  const { policy, request, env, check } = question
  const notBelow = untrustedDirectories(question)
  const observe = (also: readonly BackendName[]) =>
    observeMachine({ also, policy, env, notBelow, believe: check === 'run' })
  const wanted = BACKENDS.filter(({ observe }) => observe?.isWanted(policy)).map(({ name }) => name)
  // The machine comes first: the paths are looked at while the processes that answer for it run.
  const [machine, paths] = await Promise.all([observe(wanted), observePolicyPaths(policy, request)])
  const first: HostFacts = { ...machine, paths }
  const next = nextToObserve({ ...question, facts: first, offers: offersFor({ ...question, facts: first }) })
  return next === undefined ? first : { ...(await observe([...wanted, next])), paths }
}
