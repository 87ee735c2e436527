/** Ask, look, decide - this is "decide": policy, facts and request become the plan. Pure, and the same bytes for the same inputs. */
import { posix } from 'node:path'
import { SandboxError } from '../error.ts'
import type { HostFacts } from '../host/facts.ts'
import { judge, rulesOf } from '../network/host-rule.ts'
import { isTerminated, namedHosts, printHostPort } from '../network/termination.ts'
import type { GitIdentity, GitSigning } from '../network/tools/git.ts'
import type { Policy } from '../policy/policy.ts'
import { EVERYTHING } from '../policy/protected.ts'
import { seccompName } from '../policy/values.ts'
import type { MountWay } from '../seccomp/ways.ts'
import { shellWord } from '../text/shell-word.ts'
import { cacheWarnings } from './caches.ts'
import { type ChoiceInputs, chooseBackend } from './choose-backend.ts'
import { detachProblems } from './detach.ts'
import { plannedDevices } from './devices.ts'
import { closesTmp, plannedVariables, resolveWorkdir, VAR_TMP, variableProblems } from './environment.ts'
import { named } from './hash.ts'
import { warnOfKnownSockets } from './known-sockets.ts'
import { type PlannedLimits, plannedLimits } from './limits.ts'
import { type Mounts, ownStateIn, pathFact, resolveMounts, scratchAt } from './mounts.ts'
import type { BackendOffer, BackendTraits } from './offers.ts'
import type { Plan, PlannedNetwork, PlannedZone, SystemEntry } from './plan.ts'
import { gitPathsAtRoot } from './protected-paths.ts'
import type { Request } from './request.ts'
import { sysFiles } from './sys-files.ts'
import { HOSTNAME, SANDBOX_GID, SANDBOX_UID, type System, systemTree } from './system-tree.ts'
import { hiddenCommand, resolveToolchains, type Toolchains } from './toolchain.ts'
import { plannedTrust, trustProblems } from './trust.ts'
import { environmentLinks } from './virtual-environment.ts'
import { byText, isBelow, isWithin, shown, WORKSPACE } from './well-known-paths.ts'

export interface PlanInputs extends ChoiceInputs {
  readonly request: Request
  /** The compiled system call filter of the policy, hexadecimal, empty for `off`. */
  readonly seccompFilter: (arch: HostFacts['arch']) => string
  /** Mount operations that this filter allows a command. */
  readonly mountWays: readonly MountWay[]
  /** Of the policy, before it was planned. */
  readonly warnings?: readonly string[]
}

/**
 * Decides everything about one run.
 * @throws SandboxError NO_BACKEND when no backend covers the needs; ZONE_INVALID or POLICY_INVALID with all problems of the policy at once
 */
export function resolvePlan(inputs: PlanInputs): Plan {
  const mounts = resolveMounts({
    // Under the host's own root every path is seen where it is.
    policy: hasHostRoot(inputs) ? { ...inputs.policy, samePath: true } : inputs.policy,
    request: inputs.request,
    paths: inputs.facts.paths,
    uid: inputs.facts.uid,
    platform: inputs.facts.platform,
  })
  refuseIf('ZONE_INVALID', mounts.problems)
  refuseIf('POLICY_INVALID', [...variableProblems(inputs.policy), ...requestProblems(inputs)])
  const choice = chooseBackend(inputs)
  return assemble(inputs, choice, mounts)
}

/** No such backend is ever taken unless the policy names it. */
function hasHostRoot({ policy, offers }: PlanInputs): boolean {
  return offers.find(({ name }) => name === policy.backend)?.traits.root === 'host'
}

const HINTS = {
  ZONE_INVALID: 'change the zones that are named; the rules for sources and targets are in docs/reference/profiles.md',
  POLICY_INVALID: 'change what is named; every key is explained in docs/reference/profiles.md',
} as const

function refuseIf(code: 'ZONE_INVALID' | 'POLICY_INVALID', problems: readonly string[]): void {
  const [first] = problems
  if (first === undefined) return
  const more = problems.length === 1 ? '' : ` (and ${problems.length - 1} more)`
  throw new SandboxError(code, `${first}${more}`, { problems, hint: HINTS[code] })
}

function requestProblems({ facts, request, policy }: PlanInputs): readonly string[] {
  const kind = pathFact(facts.paths, request.cwd).kind
  const gone =
    kind === 'directory'
      ? []
      : [`the working directory ${shown(request.cwd)} is ${kind === 'missing' ? 'gone' : 'no directory'}`]
  const trust = trustProblems(policy.network, facts.paths)
  const { cgroupParent, sshAgent } = policy
  return [
    ...gone,
    ...trust,
    ...when(
      sshAgent && request.sshAgentSocket === undefined,
      'ssh-agent: SSH_AUTH_SOCK is not set, so the sandbox has no agent',
    ),
    ...when(
      cgroupParent !== undefined && facts.cgroup.rung !== 'parent',
      `cgroupParent: ${shown(cgroupParent ?? '')} cannot be used: ${facts.cgroup.lacking}`,
    ),
  ]
}

const when = (is: boolean, text: string): readonly string[] => (is ? [text] : [])

function assemble(inputs: PlanInputs, choice: BackendOffer, resolved: Mounts): Plan {
  const { policy, facts, request } = inputs
  const toolchains = toolchainsFor(inputs, choice, resolved)
  const mounts = { ...resolved, scratch: withVarTmp(policy, choice, resolved) }
  const own = choice.traits.findsGit ? mounts.zones : mounts.zones.map(coverGit)
  const zones = [...own, ...toolchains.zones].sort((a, b) => byText(a.target, b.target))
  const workdir = resolveWorkdir({
    policy,
    request,
    paths: facts.paths,
    zones: mounts.zones,
    workspace: hasHostRoot(inputs) ? inputs.request.cwd : WORKSPACE,
  })
  const { limits, warnings } = plannedLimits({
    policy,
    offers: choice,
    cpus: facts.cpus,
    hasWritableZone: zones.some(({ mode }) => mode === 'rw'),
  })
  const devices = plannedDevices(policy, facts.paths, facts.uid)
  const system = systemFor({ inputs, choice, mounts, zones, toolchains, workdir, limits, hardware: devices.system })
  refuseIf('ZONE_INVALID', system.problems)
  refuseIf('POLICY_INVALID', unheldProtections(inputs, choice, mounts))
  refuseIf('POLICY_INVALID', workdirProblems({ inputs, mounts, zones, system, workdir, choice }))
  refuseIf('POLICY_INVALID', devices.problems)
  const trust = plannedTrust(policy.network, facts.paths, system.entries)
  const plan: Omit<Plan, 'hash'> = {
    schema: 1,
    profile: policy.profile,
    backend: choice.name,
    ...(choice.engine === undefined ? {} : { engine: choice.engine }),
    ...(policy.image === undefined ? {} : { image: policy.image }),
    ...(policy.runtime === undefined ? {} : { runtime: policy.runtime }),
    dockerReuse: policy.docker.reuse,
    needs: inputs.needs,
    zones,
    ...layerOf(policy, zones),
    scratch: mounts.scratch,
    ...(devices.devices.length === 0 ? {} : { devices: devices.devices }),
    system: system.entries,
    network: plannedNetwork(inputs, choice),
    ...(trust === undefined ? {} : { trust }),
    ...plannedAuthorities(inputs, choice),
    limits,
    ...cgroupParent(inputs, choice),
    env: plannedVariables({
      policy,
      request,
      paths: facts.paths,
      backend: choice.name,
      root: choice.traits.root,
      zones,
      workdir,
      toolchains: toolchains.env,
    }),
    workdir,
    seccomp: { profile: seccompName(policy), arch: facts.arch, filter: inputs.seccompFilter(facts.arch) },
    landlockAbi: facts.landlockAbi,
    uid: SANDBOX_UID,
    gid: SANDBOX_GID,
    identity: facts.uid === 0 ? 'fresh' : 'self',
    hostname: HOSTNAME,
    tty: policy.tty === 'auto' ? request.hasTerminal === true && !request.captured : policy.tty,
    ...(policy.dieWithParent ? { dieWithParent: true } : {}),
    warnings: [
      ...(inputs.warnings ?? []),
      ...when(policy.dieWithParent && request.isParentUnseen === true, PARENT_UNSEEN),
      ...when(policy.network.record === true, RECORDED),
      ...when(isUpstreamUnused(inputs, choice), NO_UPSTREAM),
      ...(request.authorities?.warnings ?? []),
      ...terminationWarnings(policy),
      // The kernel has one listener for each process.
      ...when(policy.explain && policy.seccomp === 'nested', NO_SECOND_LISTENER),
      ...cacheWarnings(policy, request),
      ...warnOfKnownSockets(zones, request.sshAgentSocket),
      ...(choice.warnings ?? []),
      ...mounts.warnings,
      ...warnings,
      ...devices.warnings,
      ...commandWarnings(inputs, choice, zones),
      ...repositoryWarnings(inputs, zones),
      ...worktreeWarnings(inputs, zones),
    ],
  }
  return named(plan, pathFact(facts.paths, request.cwd))
}

/**
 * Programs that keep what is large out of /tmp write to /var/tmp. It is a link to /tmp, whose bound holds for both; where no link can be, in
 * an image, above a zone, and for sockets where /tmp is closed to them, it is another directory in memory of that size.
 */
function withVarTmp(policy: Policy, { traits }: BackendOffer, { zones, scratch }: Mounts): Mounts['scratch'] {
  const targets = [...zones, ...scratch].map(({ target }) => target)
  const isLink = traits.root === 'assembled' && !closesTmp(zones) && !targets.some((target) => isBelow(target, VAR_TMP))
  const isThere = targets.some((target) => isWithin(VAR_TMP, target))
  if (isLink || isThere || !['assembled', 'image'].includes(traits.root)) return scratch
  return [...scratch, scratchAt(VAR_TMP, policy.resources.tmp, 0o1777)].sort((a, b) => byText(a.target, b.target))
}

function plannedNetwork(
  { policy: { network }, request: { upstream } }: PlanInputs,
  { gives, traits }: BackendOffer,
): PlannedNetwork {
  const by = gives['net-restricted']
  if (network.mode !== 'restricted' || (by !== 'nftables' && by !== 'listeners')) return network
  return { ...network, by, ...(upstream !== undefined && traits.root === 'assembled' && { upstream }) }
}

function plannedAuthorities({ request }: PlanInputs, { traits }: BackendOffer): Pick<Plan, 'authorities'> {
  const files = traits.root === 'assembled' ? (request.authorities?.files ?? []) : []
  return files.length === 0 ? {} : { authorities: files.map(({ file, target }) => ({ file, target })) }
}

const isUpstreamUnused = ({ policy, request }: PlanInputs, { traits }: BackendOffer): boolean =>
  policy.network.mode === 'restricted' && request.upstream !== undefined && traits.root !== 'assembled'

const PARENT_UNSEEN =
  'dieWithParent: the program that started llm-do is in another pid namespace, so llm-do cannot see its end; the run continues after it'
const RECORDED =
  'the network is recorded, not restricted: every public name can be reached; the result lists the --allow-host flags that were needed'
const NO_UPSTREAM =
  'hosts are reached directly, and not by the proxy of https_proxy: only the namespace backend uses it'
const NO_SECOND_LISTENER =
  'explain: a sandbox inside that watches system calls itself (a seccomp listener) is refused that with EBUSY'

/** A credential alone opens no connection. */
function terminationWarnings({ network }: Policy): readonly string[] {
  if (network.terminate === true && namedHosts(network).length === 0)
    return [
      'network.terminate: TLS of no host ends here, because neither network.credentials nor network.requests names one: add one in a profile, or leave out --terminate-tls',
    ]
  if (!isTerminated(network)) return []
  const rules = rulesOf(network)
  const closed = namedHosts(network).filter(
    ({ host, port }) => !judge(rules, { kind: 'name', name: host }, port).isAllowed,
  )
  return closed.map(
    (place) =>
      `network.terminate: ${printHostPort(place)} is not reached, because no rule of network.allow lets it be (--allow-host ${printHostPort(place)})`,
  )
}

function layerOf({ cow, resources }: Policy, zones: readonly PlannedZone[]): Pick<Plan, 'layer'> {
  if (!zones.some(({ mode }) => mode === 'cow')) return {}
  // A layer in memory stays there after the run, where its limit does not count it any more.
  const sizes = [cow.size, ...(cow.upper === 'memory' ? [resources.memory] : [])].filter((size) => size !== null)
  return { layer: { upper: cow.upper, keepMs: cow.keep, ...(sizes.length === 0 ? {} : { size: Math.min(...sizes) }) } }
}

/** Where nothing finds git directories when the run starts, those at the root of a zone are named. */
function coverGit(zone: PlannedZone): PlannedZone {
  if (zone.git === undefined) return zone
  return { ...zone, protect: [...zone.protect, ...gitPathsAtRoot(zone.git)].sort(byText) }
}

function unheldProtections(
  { policy, facts, mountWays }: PlanInputs,
  choice: BackendOffer,
  { zones }: Mounts,
): readonly string[] {
  return detachProblems({
    traits: choice.traits,
    ways: mountWays,
    landlockAbi: facts.landlockAbi,
    kernel: facts.kernel,
    profile: seccompName(policy),
    isRoot: facts.uid === 0,
    zones,
    isOpen: policy.protectNot.includes(EVERYTHING),
    ownIn: (zone) => ownStateIn(zone, { policy, paths: facts.paths }),
  })
}

/** The command sees no more of the host than the plan lists. */
function isShownByPlan({ root, opensByPath }: BackendTraits): boolean {
  return root === 'assembled' || opensByPath
}

/** Only an assembled root shows the host's own programs; an image brings its own. */
function toolchainsFor(
  { policy, request, facts }: PlanInputs,
  { traits }: BackendOffer,
  { zones }: Mounts,
): Toolchains {
  if (policy.toolchains === 'off' || !isShownByPlan(traits)) return { zones: [], env: {}, links: {} }
  return resolveToolchains({ request, paths: facts.paths, zones })
}

interface Parts {
  readonly inputs: PlanInputs
  readonly choice: BackendOffer
  readonly mounts: Mounts
  readonly zones: readonly PlannedZone[]
  readonly toolchains: Toolchains
  readonly workdir: string
  readonly limits: PlannedLimits
  /** Of /sys, for devices. */
  readonly hardware: readonly SystemEntry[]
}

function systemFor({ inputs, choice, mounts, zones, toolchains, workdir, limits, hardware }: Parts): System {
  if (choice.engine === undefined && !choice.traits.opensByPath) return { entries: [], problems: [] }
  const { policy, facts } = inputs
  const directories = workdir === WORKSPACE ? [WORKSPACE] : []
  return systemTree({
    paths: facts.paths,
    network: policy.network,
    zones,
    scratch: mounts.scratch,
    links: { ...toolchains.links, [VAR_TMP]: '/tmp' },
    aliases: policy.samePath ? {} : environmentLinks(inputs.request, facts.paths, zones),
    directories,
    files: sysFiles(limits, facts.cpuList),
    hardware,
    ...(inputs.request.gitIdentity && policy.gitIdentity ? { gitIdentity: signable(inputs) } : {}),
  })
}

interface WorkdirCheck extends Omit<Parts, 'toolchains' | 'limits' | 'hardware'> {
  readonly system: System
}

/** A directory inside that nothing shows cannot be started in. What is in an image is not known here. */
function workdirProblems({ inputs, mounts, zones, system, workdir, choice }: WorkdirCheck): readonly string[] {
  if (inputs.policy.workdir === undefined || choice.traits.root !== 'assembled') return []
  const shownTargets = [...zones, ...mounts.scratch].map(({ target }) => target)
  const shownBySystem = system.entries.some(({ op, target }) =>
    op === 'directory' ? target === workdir : op !== 'file' && isWithin(workdir, target),
  )
  if (shownBySystem || workdir === '/' || shownTargets.some((shownTarget) => isWithin(workdir, shownTarget))) return []
  return [
    `workdir: ${shown(workdir)} does not exist inside; expected a directory in a zone, for example ${posix.join(WORKSPACE, '.')}`,
  ]
}

function cgroupParent({ policy, facts }: PlanInputs, { traits }: BackendOffer): { readonly cgroupParent?: string } {
  const parent = policy.cgroupParent ?? facts.cgroup.parent
  return !traits.hasCgroup || parent === undefined ? {} : { cgroupParent: parent }
}

function commandWarnings(
  inputs: PlanInputs,
  { traits }: BackendOffer,
  zones: readonly PlannedZone[],
): readonly string[] {
  const { policy, request, facts } = inputs
  if (!isShownByPlan(traits)) return []
  return [
    ...hiddenCommand({ request, paths: facts.paths, zones }),
    ...signingWarnings(inputs),
    ...when(policy.sshAgent && facts.uid === 0, AGENT_OF_ROOT),
  ]
}

/** For commands that use git, as far as that is known: git needs a directory that is not mounted and that no option names. */
function repositoryWarnings(
  { policy, request: { command, cwd, repository } }: PlanInputs,
  zones: readonly PlannedZone[],
): readonly string[] {
  const usesGit = policy.gitIdentity || policy.repository || posix.basename(command[0] ?? '') === 'git'
  if (repository === undefined || !usesGit || zones.some(({ source }) => isWithin(repository, source))) return []
  const root = shown(shellWord(repository))
  const isDraft = zones.some(({ mode, source }) => mode === 'cow' && isWithin(cwd, source))
  const flag = isDraft ? `--cow ${root}` : `--rw ${root} (or --ro)`
  return [`git finds no repository: ${shown(repository)} is not shown; to show it: ${flag}`]
}

/** For commands that are given an identity to commit with: the repository of a linked worktree lies elsewhere. */
function worktreeWarnings(
  { policy, request: { worktree } }: PlanInputs,
  zones: readonly PlannedZone[],
): readonly string[] {
  if (worktree === undefined || !policy.gitIdentity) return []
  const isClosed = zones.some(({ mode, source }) => mode === 'ro' && source === worktree.common)
  const isWritten = zones.some(({ mode, source }) => mode === 'rw' && isWithin(worktree.root, source))
  const common = shown(worktree.common)
  return isClosed && isWritten
    ? [`git cannot commit: ${common} is read-only; to allow it: --rw ${shown(shellWord(worktree.common))}`]
    : []
}

/** Without an agent that answers, git would fail instead of committing. */
function signable({ policy, request: { gitIdentity = {} }, facts: { uid } }: PlanInputs): GitIdentity {
  const { signing, ...identity } = gitIdentity
  return signing?.key === undefined || !policy.sshAgent || uid === 0 ? identity : gitIdentity
}

function signingWarnings(inputs: PlanInputs): readonly string[] {
  const { policy, request } = inputs
  const signing = policy.gitIdentity ? request.gitIdentity?.signing : undefined
  if (signing === undefined || signable(inputs).signing !== undefined) return []
  const [first] = signing.signs
  return [
    `git signs no ${signing.signs.join(' and no ')} inside, against ${first}.gpgsign: ${unsigned(policy, signing)}`,
  ]
}

function unsigned({ sshAgent }: Policy, { key }: GitSigning): string {
  if (key === undefined) return 'only a key of SSH can be used (gpg.format, user.signingkey)'
  return sshAgent ? "root's agent does not answer the command" : 'the agent has the key; to allow it: --ssh-agent'
}

/** OpenSSH's agent asks the kernel who calls (SO_PEERCRED) and answers its own user and root; the command of root is neither. */
const AGENT_OF_ROOT =
  'ssh-agent: as root the command has a user id of its own, which an agent of OpenSSH does not answer; run llm-do as the user of the agent'
