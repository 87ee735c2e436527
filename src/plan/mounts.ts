/**
 * Turns the wanted zones into mounts that can be made: canonical sources, checked targets, no conflicts, parents first.
 * Pure: everything it knows of the host it reads from path facts. All problems are collected, none is thrown.
 */
import { posix } from 'node:path'
import { SandboxError } from '../error.ts'
import type { HostFacts, PathFact } from '../host/facts.ts'
import { ZONE_WORDS } from '../policy/keys/zone-text.ts'
import type { Policy } from '../policy/policy.ts'
import { EVERYTHING, PATH } from '../policy/protected.ts'
import { HOST_MODES, isWritable, type Origin, type Zone } from '../policy/values.ts'
import { listWords } from '../text/choices.ts'
import { shellWord } from '../text/shell-word.ts'
import { plannedCaches } from './caches.ts'
import { endsOf, linksInZone, walkName } from './names.ts'
import type { LinkedFile, PlannedZone, Scratch } from './plan.ts'
import { privateProblem, privateSteps } from './private-steps.ts'
import { homesIn, openInHomes, protectedIn, protectedWords, protectProblem } from './protected-paths.ts'
import type { Request } from './request.ts'
import {
  ancestorsOf,
  byText,
  closedSource,
  closedTarget,
  holdsCredentials,
  isBelow,
  isWithin,
  normal,
  SANDBOX_HOME,
  searchPath,
  shown,
  WORKSPACE,
  withheldWorkspace,
} from './well-known-paths.ts'
import { type Shown, showsFiles, showsWorkspace, workspaceTarget } from './workspace.ts'

export type PathFacts = Readonly<Record<string, PathFact>>

export interface MountInputs {
  /** The caller's; root follows fewer links. */
  readonly uid?: number
  /** Default: linux. */
  readonly platform?: HostFacts['platform']
  readonly policy: Policy
  readonly request: Request
  readonly paths: PathFacts
}

export interface Mounts {
  /** Sorted by target, so parents come first. */
  readonly zones: readonly PlannedZone[]
  readonly scratch: readonly Scratch[]
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

/** A mount that is wanted, before anything about it was checked. */
export interface Wanted extends Pick<Zone, 'name' | 'mode' | 'size' | 'create' | 'optional' | 'sockets'> {
  readonly source?: string
  readonly target: string
  /** The runner's own for commands: every step from here on is private, nothing in it is protected, and it may lie where no zone may. */
  readonly privateRoot?: string
  /** The kind that may be there; a credential is a file, an agent is a socket. */
  readonly expects: 'any' | 'file' | 'socket'
  /** The source was written with a slash at its end. */
  readonly meansDirectory: boolean
  /** A home that we keep: what decides the next run is not in it, though it lies among it. */
  readonly isHome: boolean
  readonly from: string
  /** Start of every message about it. */
  readonly at: string
  /** The value of the flag that has nothing else to say, as it could be written. */
  readonly flag?: string
}

/** Where the SSH agent's socket appears inside. */
export const SSH_AGENT_TARGET = '/run/ssh-agent.sock'

/** The answer to a question that must have been asked; a missing one is our own defect. */
export function pathFact(paths: PathFacts, path: string): PathFact {
  const fact = paths[path]
  if (fact === undefined) {
    throw new SandboxError('INTERNAL', `plan: no facts were gathered for ${shown(path)}`, {
      hint: 'report this with the output of llm-do doctor --facts',
    })
  }
  return fact
}

/** The caller, as far as the targets of zones depend on it. */
type Caller = Pick<Request, 'cwd' | 'home'>

/**
 * The visible directories and files inside, the workspace included, for people; nothing is checked yet.
 * @param paths facts about the zones' sources; without them a zone that holds the caller's directory is recognised by its name alone
 */
export function zonesInside(policy: Shown, caller: Caller, paths: PathFacts = {}): readonly Wanted[] {
  return [...implicitWorkspace(policy, caller, paths), ...policy.zones.map((zone) => wantedZone(zone, policy, caller))]
}

/** All mounts that the policy and the request ask for, the workspace included; nothing is checked yet. */
export function wantedMounts({
  policy,
  request,
  paths = {},
}: Pick<MountInputs, 'policy' | 'request'> & { readonly paths?: PathFacts }): readonly Wanted[] {
  return [
    ...zonesInside(policy, request, paths),
    ...policy.credentials.map(
      ({ file, target, origin, optional = false }): Wanted => ({
        ...PLAIN,
        optional,
        name: `credential ${posix.basename(target)}`,
        mode: 'ro',
        source: normal(file),
        target: normal(target),
        expects: 'file',
        ...originText(origin),
      }),
    ),
    ...sshAgent(policy, request),
    ...repository(policy, request, paths),
    ...caches(policy, request, paths),
  ]
}

const realIn =
  (paths: PathFacts) =>
  (path: string): string =>
    paths[normal(path)]?.real ?? normal(path)

const CALLERS_DIRECTORY = "the caller's directory"

const PLAIN = {
  create: false,
  optional: false,
  sockets: false,
  expects: 'any',
  meansDirectory: false,
  isHome: false,
} as const

function sshAgent(policy: Policy, { sshAgentSocket }: Request): readonly Wanted[] {
  if (!policy.sshAgent || sshAgentSocket === undefined) return []
  return [
    {
      ...PLAIN,
      name: 'ssh-agent',
      mode: 'rw',
      source: normal(sshAgentSocket),
      target: SSH_AGENT_TARGET,
      expects: 'socket',
      sockets: true,
      from: 'ssh agent',
      at: 'SSH_AUTH_SOCK',
    },
  ]
}

/** Read-only whatever the mode of the checkout: it lies elsewhere, and no option names it. */
function repository(policy: Policy, request: Request, paths: PathFacts): readonly Wanted[] {
  const { worktree, home } = request
  if (worktree === undefined) return []
  const { root, common } = worktree
  const shown = zonesInside(policy, request, paths)
  const isChecked = shown.some(({ source }) => source !== undefined && isWithin(root, realIn(paths)(source)))
  const isNear = (path: string): boolean => isWithin(path, common) || isWithin(common, path)
  const isTaken = shown.some(
    ({ source, target }) => isNear(target) || (source !== undefined && isNear(realIn(paths)(source))),
  )
  const isClosed =
    closedTarget(common) !== undefined || closedSource(common) !== undefined || holdsCredentials(common, home)
  if (!isChecked || isTaken || isClosed) return []
  return [
    {
      ...PLAIN,
      name: 'git',
      mode: 'ro',
      source: common,
      target: common,
      optional: true,
      from: 'git worktree',
      at: '.git',
    },
  ]
}

/** If the home is a directory of the host, its caches are kept there. */
function caches(policy: Policy, request: Request, paths: PathFacts): readonly Wanted[] {
  const shown = zonesInside(policy, request, paths).filter(({ source }) => source !== undefined)
  const isKept = (target: string): boolean =>
    isWithin(target, SANDBOX_HOME) && shown.some((one) => isWithin(target, one.target))
  return plannedCaches(policy, request)
    .filter(({ target }) => !isKept(target))
    .map(({ name, source, target, root }) => ({
      ...PLAIN,
      name: `cache ${name}`,
      target,
      ...(source === undefined
        ? { mode: 'tmpfs', size: policy.resources.home }
        : { mode: 'rw', source, create: true, privateRoot: root }),
      from: `cache ${name}`,
      at: `caches: ${name}`,
    }))
}

/** `flag --rw`, or `profiles/ci.yaml: zones.input`. */
export function originText(origin: Origin): { readonly from: string; readonly at: string } {
  const from = origin.layer === 'flag' ? `flag ${origin.source}` : `${origin.source}: ${origin.key}`
  return { from, at: origin.layer === 'flag' ? origin.source : from }
}

function implicitWorkspace(policy: Shown, { cwd, home }: Caller, paths: PathFacts): readonly Wanted[] {
  const { workspace, samePath } = policy
  // `none` is said twice for the compiler: what is shown has a mode.
  const isShown = workspace !== 'none' && showsWorkspace(policy, cwd, realIn(paths))
  if (!isShown || withheldWorkspace(cwd, home) !== undefined) return []
  return [
    {
      ...PLAIN,
      name: 'workspace',
      mode: workspace,
      source: cwd,
      target: workspaceTarget(samePath, cwd),
      from: CALLERS_DIRECTORY,
      at: 'workspace',
    },
  ]
}

function wantedZone(zone: Zone, policy: Shown, caller: Caller): Wanted {
  return {
    ...PLAIN,
    name: zone.name,
    mode: zone.mode,
    ...(zone.hostPath === undefined ? {} : { source: normal(zone.hostPath) }),
    target: normal(zone.target ?? defaultTarget(zone, policy, caller)),
    ...(zone.size === undefined ? {} : { size: zone.size }),
    create: zone.create,
    optional: zone.optional,
    sockets: zone.sockets,
    expects: zone.kind ?? 'any',
    meansDirectory: zone.meansDirectory ?? false,
    isHome: zone.isHome ?? false,
    ...originText(zone.origin),
    ...flagOf(zone),
  }
}

/** Flags whose value is `SRC[:TARGET]`. */
const OF_ONE_MODE = HOST_MODES.map((mode) => `--${mode}`)

function flagOf({ origin, hostPath, target }: Zone): Pick<Wanted, 'flag'> {
  if (origin.layer !== 'flag' || !OF_ONE_MODE.includes(origin.source) || hostPath === undefined) return {}
  return { flag: target === undefined ? normal(hostPath) : `${normal(hostPath)}:${target}` }
}

/** The same path, or its place in the workspace for a source inside it; a tmpfs appears under its name. */
function defaultTarget({ name, hostPath }: Zone, { samePath }: Shown, { cwd }: Caller): string {
  if (hostPath === undefined) return posix.join('/', name)
  const source = normal(hostPath)
  if (samePath || !isWithin(source, cwd) || cwd === '/') return source
  return posix.join(WORKSPACE, posix.relative(cwd, source))
}

/** Checks and orders all mounts. */
export function resolveMounts(inputs: MountInputs): Mounts {
  const all = wantedMounts(inputs).filter((one) => !isLeftOut(one, inputs.paths))
  const wanted = all.filter((one) => holderOf(one, all, inputs.paths) === undefined)
  const problems = [
    ...protectProblems(inputs.policy),
    ...all.flatMap((one) =>
      [...sourceProblems(one, inputs), ...targetProblems(one)].map((problem) => `${one.at}: ${problem}${wayOut(one)}`),
    ),
    ...conflicts(wanted.filter(isWellFormed), inputs.paths),
    ...wanted.filter(isWellFormed).flatMap((one) => tooManyHomes(one, inputs)),
    ...wanted.filter(isWellFormed).flatMap((one) => linkedDecisions(one, inputs)),
    ...all.filter(isWellFormed).flatMap((one) => linkedSource(one, all, inputs)),
  ]
  if (problems.length > 0) return { zones: [], scratch: [], problems, warnings: [] }
  const held = (outer: Wanted) => all.filter((one) => one.mode === 'ro' && holderOf(one, all, inputs.paths) === outer)
  const zones = wanted.filter(({ mode }) => mode !== 'tmpfs').map((one) => plannedZone(one, held(one), inputs))
  return {
    zones: zones.sort((a, b) => byText(a.target, b.target)),
    scratch: scratchOf(wanted, inputs),
    problems,
    warnings: workspaceWarnings(inputs),
  }
}

/** Nobody asked for the caller's directory in so many words. */
const wayOut = ({ from }: Wanted): string => (from === CALLERS_DIRECTORY ? '; to run without it: --no-workspace' : '')

/**
 * The writable zone that shows a wanted one already, at the very place where it is wanted: nothing is mounted there a second time,
 * where the command could swap the mount point. What is wanted read-only is one more protected path of that zone.
 */
function holderOf(inner: Wanted, all: readonly Wanted[], paths: PathFacts): Wanted | undefined {
  if (inner.source === undefined || inner.sockets || !isWellFormed(inner)) return undefined
  const { real, kind } = pathFact(paths, inner.source)
  if (kind !== 'directory' && kind !== 'file') return undefined
  const holds = ({ source, mode, target }: Wanted): boolean =>
    source !== undefined &&
    isWritable(mode) &&
    (inner.mode === 'ro' || inner.mode === mode) &&
    isBelow(inner.target, target) &&
    real === posix.join(pathFact(paths, source).real, posix.relative(target, inner.target))
  return all.filter(isWellFormed).find(holds)
}

function isLeftOut({ optional, source }: Wanted, paths: PathFacts): boolean {
  return optional && source !== undefined && pathFact(paths, source).kind === 'missing'
}

function protectProblems({ protect, origins }: Policy): readonly string[] {
  const origin = origins['protect']?.at(-1)
  const at = origin === undefined ? 'protect' : originText(origin).at
  return protect.flatMap((path) => {
    const problem = protectProblem(path)
    return problem === undefined ? [] : [`${at}: ${shown(path)}: ${problem}`]
  })
}

/** A file that decides the next run is reached through a link in a writable zone, which the command could replace. */
function linkedDecisions({ mode, source, at }: Wanted, { policy, paths }: MountInputs): readonly string[] {
  if (!isWritable(mode) || source === undefined) return []
  const { real } = pathFact(paths, source)
  return linksInZone(policy.protectFiles, real, paths).map((problem) => `${at}: ${problem}`)
}

/** Each home is some two hundred protected paths. A policy that shows more of them than this is a mistake. */
const MOST_HOMES = 12

function tooManyHomes({ mode, source, at }: Wanted, { request, paths }: MountInputs): readonly string[] {
  if (!isWritable(mode) || source === undefined) return []
  const homes = homesIn(pathFact(paths, source).real, request.homes)
  if (homes.length <= MOST_HOMES) return []
  return [
    `${at}: ${shown(source)} holds ${homes.length} home directories, and ${MOST_HOMES} can be protected; show the one that is needed`,
  ]
}

/**
 * A link in the caller's directory or in a writable zone may be the work of an earlier command: a source does not lead out of there
 * by one. root follows no link of another user, except to what is that user's own (fs.protected_symlinks has the same aim).
 */
function linkedSource({ source, at }: Wanted, all: readonly Wanted[], inputs: MountInputs): readonly string[] {
  const { request, paths, uid, platform = 'linux' } = inputs
  if (source === undefined) return []
  const writable = all.flatMap((one) => (isWritable(one.mode) && one.source !== undefined ? [one.source] : []))
  const bases = [request.cwd, ...writable.map((one) => pathFact(paths, one).real)].filter((base) => base !== '/')
  const { steps, end, unresolved } = walkName(source, paths)
  const { real, kind, link: last } = pathFact(paths, source)
  // Each inspection happens at another moment: a step may have been a directory for one and a link for the next. On other systems than
  // Linux the canonical path may be written differently.
  const isThere = ['directory', 'file', 'socket'].includes(kind) || (kind === 'missing' && last === undefined)
  if (platform === 'linux' && isThere && (unresolved !== undefined || end !== real))
    return [`${at}: ${shown(source)} was changed while it was looked at: ${shown(end)}, then ${shown(real)}`]
  for (const { path, fact } of steps) {
    if (fact.link === undefined) continue
    const link = `${at}: ${shown(path)} is a symbolic link to ${shown(fact.link)}`
    const base = bases.find((one) => isBelow(path, one) && !isWithin(real, one))
    if (base !== undefined)
      return [
        `${link}, which leads out of ${shown(base)}, where a command may have put it; if it is meant, name ${shown(real)} itself`,
      ]
    if (uid === 0 && isForeign(path, fact, paths))
      return [
        `${link} that belongs to another user, and root does not follow it; if it is meant, name ${shown(real)} itself`,
      ]
  }
  return []
}

const STICKY_FOR_ALL = 0o1002

function isForeign(link: string, fact: PathFact, paths: PathFacts): boolean {
  // A link whose owner could not be seen counts as another user's.
  const owner = Number(fact.identity?.split(':')[3] ?? -1)
  const mode = paths[posix.dirname(link)]?.mode ?? 0
  // The target is inspected on its own, too: the link may have led elsewhere when its text was read.
  const led = paths[walkName(posix.resolve(posix.dirname(link), fact.link ?? ''), paths).end]
  const isOwn = owner === fact.uid && owner === led?.uid
  return owner !== 0 && (!isOwn || (mode & STICKY_FOR_ALL) === STICKY_FOR_ALL)
}

const WRONG_KIND: Readonly<Partial<Record<PathFact['kind'], string>>> = {
  loop: 'its symbolic links go round in a circle',
  denied: 'it cannot be looked at: permission denied',
  fifo: 'it is a FIFO, which leads out of the sandbox',
  device: 'it is a device; zones hold files and directories',
}

function sourceProblems(wanted: Wanted, inputs: MountInputs): readonly string[] {
  const { source, mode } = wanted
  if (mode === 'tmpfs') return source === undefined ? [] : [`a tmpfs has no source, got hostPath ${shown(source)}`]
  if (source === undefined) return [`${called(wanted)} names no host path, and nothing grants one`]
  if (source.includes('\0') || !posix.isAbsolute(source))
    return [`expected an absolute host path, got ${shown(source)}`]
  const problem = sourceProblem({ wanted, fact: pathFact(inputs.paths, source), inputs })
  return problem === undefined ? [] : [`${shown(source)}: ${problem}`]
}

interface SourceCheck {
  readonly wanted: Wanted
  readonly fact: PathFact
  readonly inputs: MountInputs
}

function sourceProblem({ wanted, fact, inputs }: SourceCheck): string | undefined {
  const closed = closedSource(fact.real)
  if (closed !== undefined) return `it ${closed} and cannot be a zone`
  if (wanted.privateRoot !== undefined)
    return privateProblem(privateSteps(wanted.privateRoot, wanted.source ?? ''), inputs.paths, inputs.uid ?? -1)
  const secret = secretIn(fact, inputs)
  if (secret !== undefined) return `${secret}, and cannot be a zone, read-only or not; show single paths next to it`
  if (fact.kind === 'missing') return missingProblem(wanted, fact, inputs)
  const wrong = WRONG_KIND[fact.kind]
  if (wrong !== undefined) return wrong
  if ((wanted.create || wanted.meansDirectory || wanted.mode === 'cow') && fact.kind !== 'directory')
    return `expected a directory, got a ${fact.kind}`
  if (wanted.expects !== 'any' && fact.kind !== wanted.expects)
    return `expected a ${wanted.expects}, got a ${fact.kind}`
  if (fact.kind === 'socket' && !wanted.sockets)
    return `it is a socket, which leads out of the sandbox; if that is meant: --socket ${shown(shellWord(wanted.source ?? ''))}, or sockets: true on the zone`
  if (wanted.isHome) return undefined
  return isWritable(wanted.mode) && decidesThePolicy(fact, inputs)
    ? `${PART_OF_OWN_STATE}, and cannot be writable`
    : undefined
}

const PART_OF_OWN_STATE = 'it is, or is part of, what decides the policy of the next run'

/** The secret makes what lies on disk believable: no command may see it. */
function secretIn({ real }: PathFact, { request: { secretDirectories }, paths }: MountInputs): string | undefined {
  const directories = secretDirectories.map((directory) => pathFact(paths, directory).real)
  if (directories.some((directory) => isWithin(real, directory)))
    return "it is, or is part of, the runner's own directory"
  const held = directories.find((directory) => isWithin(directory, real))
  return held === undefined ? undefined : `it holds the runner's own directory ${shown(held)}`
}

/** How a zone says that it may be missing, in the words of the layer that has it. */
function switchedOn({ at, flag }: Wanted): string {
  if (flag === undefined && at.startsWith('--')) return `end ${at} with :create or :optional (after a mode: :rw,create)`
  if (flag === undefined) return 'set create or optional on the zone'
  const [made, leftOut] = ['create', 'optional'].map((word) => `${at} ${shown(shellWord(`${flag}:${word}`))}`)
  return `have it made: ${made}, or leave it out: ${leftOut}`
}

/** `SRC:craete`, `SRC:target`: what is neither a word of a zone nor an absolute path was read as a part of the source. */
function strayWord(source: string): string {
  const at = source.lastIndexOf(':')
  const word = shown(source.slice(at + 1))
  return at < 0 ? '' : `, and "${word}" is neither an absolute target nor ${listWords(ZONE_WORDS)}`
}

function missingProblem(wanted: Wanted, fact: PathFact, inputs: MountInputs): string | undefined {
  const { create, expects, isHome, source = '' } = wanted
  const { paths } = inputs
  if (fact.link !== undefined) return `it is a symbolic link to ${shown(fact.link)}, which does not exist`
  if (expects === 'socket') return 'it does not exist; start its server first, or set optional on the zone'
  if (!create)
    return `it does not exist${strayWord(source)}; make it (mkdir -p ${shown(shellWord(source))}), or ${switchedOn(wanted)}`
  // Whatever the mode: nothing is made there before the plan is made again.
  if (!isHome && decidesThePolicy(fact, inputs)) return `${PART_OF_OWN_STATE}, and nothing is made there`
  const blocker = ancestorsOf(source).find((path) => !['directory', 'missing'].includes(pathFact(paths, path).kind))
  return blocker === undefined ? undefined : `it cannot be made: ${shown(blocker)} is no directory`
}

function decidesThePolicy({ real, dev, ino, kind }: PathFact, { policy, paths }: MountInputs): boolean {
  const isTwin = kind === 'file' && linkedFiles(policy, paths).some((file) => file.dev === dev && file.ino === ino)
  return isTwin || endsOf(policy.protectFiles, paths).some((end) => isWithin(real, end))
}

/** Bounds of Linux: PATH_MAX and NAME_MAX of linux/limits.h, in bytes. */
const LONGEST_PATH = 4095
const LONGEST_NAME = 255

function targetProblems({ target }: Wanted): readonly string[] {
  const problem = targetProblem(target)
  return problem === undefined ? [] : [`target ${shown(target)} ${problem}`]
}

function targetProblem(target: string): string | undefined {
  if (target.includes('\0') || !posix.isAbsolute(target)) return 'is not an absolute path'
  if (Buffer.byteLength(target) > LONGEST_PATH) return `is longer than ${LONGEST_PATH} bytes`
  if (target.split('/').some((word) => Buffer.byteLength(word) > LONGEST_NAME))
    return `has a name longer than ${LONGEST_NAME} bytes`
  return closedTarget(target)
}

/** A malformed path takes no part in comparisons; another check refuses it. */
function isWellFormed({ source = '/', target }: Wanted): boolean {
  return [source, target].every((path) => posix.isAbsolute(path) && !path.includes('\0'))
}

/** Problems between mounts: the same target twice, or one below another where its mount point cannot be. */
function conflicts(wanted: readonly Wanted[], paths: PathFacts): readonly string[] {
  const ordered = [...wanted].sort((a, b) => byText(a.target, b.target))
  return ordered.flatMap((inner, index) => {
    const twin = ordered.slice(0, index).find((outer) => outer.target === inner.target)
    if (twin !== undefined)
      return [`${inner.at}: target ${shown(inner.target)} is taken by ${called(twin)} (${twin.from})`]
    // A writable one anywhere above forbids it; else the innermost one is whose tree must hold the mount point.
    const above = ordered.slice(0, index).filter((one) => isBelow(inner.target, one.target))
    const outer = above.find(({ mode }) => isWritable(mode)) ?? above.at(-1)
    const problem = outer === undefined ? undefined : nestingProblem({ inner, outer, paths })
    return problem === undefined ? [] : [`${inner.at}: target ${shown(inner.target)} ${problem}`]
  })
}

/** Name for people. A caller that gave no name must not read the generated one. */
function called({ name, source, target }: Wanted): string {
  return `zone ${name.includes('#') ? shown(source ?? target) : name}`
}

function nestingProblem({
  inner,
  outer,
  paths,
}: {
  inner: Wanted
  outer: Wanted
  paths: PathFacts
}): string | undefined {
  if (outer.mode === 'tmpfs') return undefined
  if (isWritable(outer.mode)) {
    return `is below the writable ${called(outer)} (${shown(outer.target)}): the command could swap the mount point; choose a target outside it`
  }
  const mountPoint = mountPointOf(inner, outer)
  // It is made on the host before anything is mounted, or its own message says that it is missing.
  if (mountPoint !== undefined && mountPoint === inner.source)
    if (inner.create || pathFact(paths, mountPoint).kind === 'missing') return undefined
  const fact = mountPoint === undefined ? undefined : pathFact(paths, mountPoint)
  const wants = kindOf(inner, paths)
  // Anything but a directory can be mounted on anything but a directory: a socket on itself.
  if (fact === undefined || (wants === 'directory' ? ['directory'] : ['file', 'socket']).includes(fact.kind))
    return linkProblem(fact, outer, paths)
  return `has no mount point: ${shown(mountPoint ?? '')} in the read-only ${called(outer)} is ${fact.kind}, expected a ${wants}`
}

/** A link on the way would put the mount somewhere else than the policy says. */
function linkProblem(fact: PathFact | undefined, outer: Wanted, paths: PathFacts): string | undefined {
  if (fact === undefined || outer.source === undefined) return undefined
  const straight = posix.join(pathFact(paths, outer.source).real, posix.relative(outer.source, fact.path))
  return fact.real === straight ? undefined : `has no mount point: a symbolic link is in the way of ${shown(fact.path)}`
}

function kindOf({ mode, source, create }: Wanted, paths: PathFacts): 'directory' | 'file' {
  if (mode === 'tmpfs' || source === undefined || create) return 'directory'
  return pathFact(paths, source).kind === 'directory' ? 'directory' : 'file'
}

/** Where on the host the mount point of a mount inside a read-only zone must be. */
export function mountPointOf(
  inner: { readonly target: string },
  outer: { readonly target: string; readonly source?: string },
): string | undefined {
  return outer.source === undefined ? undefined : posix.join(outer.source, posix.relative(outer.target, inner.target))
}

const NO_WORDS = { zone: [], home: [] }

function plannedZone(wanted: Wanted, held: readonly Wanted[], { policy, request, paths }: MountInputs): PlannedZone {
  const fact = pathFact(paths, wanted.source ?? '')
  const { name, target, sockets, from } = wanted
  const mode = wanted.mode === 'tmpfs' ? 'ro' : wanted.mode
  const readOnly = held.flatMap(({ source }) => (source === undefined ? [] : [pathFact(paths, source).real]))
  const files = [...endsOf(policy.protectFiles, paths), ...readOnly, ...programDirectories({ policy, request, paths })]
  const words = protectedWords(policy)
  const isTree = isWritable(mode) && fact.kind !== 'file' && fact.kind !== 'socket'
  // Programs of the host obey no name in a directory that is kept for commands. What decides the next run may lie there.
  const isProtected = isTree && wanted.privateRoot === undefined && !wanted.isHome
  const linked = linkedFiles(policy, paths)
  return {
    name,
    mode,
    source: fact.real,
    target,
    kind: fact.kind === 'file' || fact.kind === 'socket' ? fact.kind : 'directory',
    dev: fact.dev,
    ino: fact.ino,
    uid: fact.uid,
    gid: fact.gid,
    create: fact.kind === 'missing',
    sockets,
    protect: isTree
      ? protectedIn({ source: fact.real, words: isProtected ? words : NO_WORDS, homes: request.homes, files })
      : [],
    ...(isProtected && words.git !== undefined ? { git: words.git } : {}),
    ...(isProtected && words.home.length > 0 && request.home !== ''
      ? { home: { path: request.home, open: openInHomes(policy) } }
      : {}),
    ...(isTree && linked.length > 0 ? { linked } : {}),
    ...(policy.hide.length > 0 && wanted.privateRoot === undefined && wanted.expects === 'any'
      ? { hide: policy.hide }
      : {}),
    from,
  }
}

/** Programs are found in the directories of the caller's PATH, whatever set it. */
function programDirectories({ policy: { protectNot }, request, paths }: MountInputs): readonly string[] {
  if (protectNot.includes(PATH) || protectNot.includes(EVERYTHING)) return []
  return searchPath(request.path).map((entry) => pathFact(paths, entry).real)
}

/** A name in a zone is as good as the file's own: a protection of paths does not see it. */
function linkedFiles({ protectFiles }: Policy, paths: PathFacts): readonly LinkedFile[] {
  const facts = [...new Set(endsOf(protectFiles, paths))].flatMap((end) => paths[end] ?? [])
  return facts.flatMap(({ real, dev, ino, names = 1 }) => (names > 1 ? [{ path: real, dev, ino }] : []))
}

/** Files of a zone that stay read-only because they decide the next run, relative to the zone's root. */
export function ownStateIn(
  { source }: PlannedZone,
  { policy, paths }: Omit<MountInputs, 'request'>,
): readonly string[] {
  const files = endsOf(policy.protectFiles, paths)
  return protectedIn({ source, words: NO_WORDS, homes: [], files })
}

/** One inode for every page of the size, so that empty files run out when full ones would; at least what small programs need. */
export function inodesFor(bytes: number): number {
  return Math.min(Math.max(Math.floor(bytes / 4096), 1024), 1_048_576)
}

function scratchOf(wanted: readonly Wanted[], inputs: MountInputs): readonly Scratch[] {
  const { tmp, run, shm, home } = inputs.policy.resources
  const standard = [
    scratchAt('/dev/shm', shm, 0o1777),
    scratchAt(SANDBOX_HOME, home, 0o700),
    scratchAt('/run', run, 0o755),
    scratchAt('/tmp', tmp, 0o1777),
    ...(needsEmptyWorkspace(wanted, inputs) ? [scratchAt(WORKSPACE, tmp, 0o755)] : []),
  ].filter(({ target }) => !wanted.some((one) => one.target === target))
  const requested = wanted
    .filter(({ mode }) => mode === 'tmpfs')
    .map((one) => scratchAt(one.target, one.size ?? tmp, one.target === '/tmp' ? 0o1777 : 0o755))
  return [...standard, ...requested].sort((a, b) => byText(a.target, b.target))
}

/** No zone was named: an empty workspace to work in. With zones, writing there would lose the results without a word. */
function needsEmptyWorkspace(wanted: readonly Wanted[], { policy }: MountInputs): boolean {
  const shows = policy.zones.some(showsFiles)
  return (
    !shows &&
    !wanted.some(({ target }) => isWithin(target, WORKSPACE)) &&
    !wanted.some(({ name }) => name === 'workspace')
  )
}

export function scratchAt(target: string, size: number, mode: number): Scratch {
  return { target, size, inodes: inodesFor(size), mode }
}

/** Whoever names what he wants to see knows that such a directory is not among it. */
export function workspaceWarnings({
  policy,
  request: { cwd, home },
}: Pick<MountInputs, 'policy' | 'request'>): readonly string[] {
  const isWanted = policy.workspace !== 'none' && !policy.zones.some(showsFiles)
  const why = isWanted ? withheldWorkspace(cwd, home) : undefined
  const flag = closedSource(cwd) === undefined ? '--ro .' : '--ro DIRECTORY'
  return why === undefined
    ? []
    : [`${shown(cwd)} ${why} and is not shown; ${WORKSPACE} is empty. To show files: ${flag}`]
}
