/**
 * The docker backend, podman included: plan -> the client's argv. Pure.
 *
 * Theory of operation. A run is four short conversations with the daemon, held by backends/docker/run.ts:
 *   create (this launch)  ->  inspect: does the daemon really hold what was asked?  ->  start --attach  ->  inspect, rm
 * `docker run` would do the first three in one, but then the daemon's complaints and the command's stderr are one stream, its
 * exit codes 125 to 127 and the command's are one number, and a limit that is ignored is noticed when it is too late.
 */
import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import {
  isWithin,
  type Launch,
  type LaunchDescriptor,
  NET_ADDRESS,
  type NetworkMode,
  type NetworkPolicy,
  type Plan,
  type PlannedLimit,
  type PlannedLimits,
  type PlannedZone,
  planAddresses,
  rulesOf,
  SandboxError,
  WORKSPACE,
} from '../run-kit.ts'
import {
  type DividedEnvironment,
  type DockerInputs,
  type DockerRunInputs,
  divideEnvironment,
  PROXY_NAMES,
} from './command-environment.ts'
import { imageFor, RUNTIMES } from './images.ts'
import { type BindMount, bindWords, type Cover, coversOf, heldWords, tmpfsWords, zoneMounts } from './mounts.ts'
import { seccompWords } from './seccomp-options.ts'

/** Label of our containers; its value is the kind of container. */
export const LABEL = 'llm-do'
/** Label: which process runs it. */
export const RUNNER_LABEL = 'llm-do.runner'
/** Label of a session container: the plan it was made from. */
export const SESSION_LABEL = 'llm-do.plan'

/** Descriptors of the client; 0 to 2 belong to the command. */
export const ENV_FILE_FD = 3
export const SECCOMP_FD = 4

export function containerName(runId: string): string {
  return `llm-do-${runId}`
}

/** Where a container shows our init and the socket on which it tells the runner how the command ended. */
const INIT_TARGET = '/.llm-do-init'
const REPORT_TARGET = '/.llm-do-report'
/** And the one on which it hands over the sockets of a restricted network. */
const NETWORK_TARGET = '/.llm-do-net'

export interface Reporter {
  /** Host path of our init. */
  readonly init: string
  /** Host path of the runner's socket. */
  readonly socket: string
}

/** In the same directory as the other socket. */
export const networkSocketOf = ({ socket }: Pick<Reporter, 'socket'>): string => `${socket}n`

/** sockaddr_un of unix(7), less the final NUL. */
const LONGEST_SOCKET_PATH = 107

/** @returns undefined where docker's own init has to do, which tells less */
export function reporterOf(run: DockerRunInputs): Reporter | undefined {
  return reporterIn(posix.join(posix.dirname(run.runsDirectory), 'containers'), run)
}

/** The same for a session: its container mounts one directory of the host, and each run has a socket there. */
export function sessionReporterOf(plan: Plan, run: DockerRunInputs): Reporter | undefined {
  return reporterIn(sessionDirectory(run.runsDirectory, sessionName(plan, run)), run)
}

/** Where the sockets of a session's runs are; its name is too long for the path of one. */
export function sessionDirectory(runsDirectory: string, name: string): string {
  const short = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return posix.join(posix.dirname(runsDirectory), 'containers', short)
}

function reporterIn(directory: string, run: DockerRunInputs): Reporter | undefined {
  const { init } = run.docker
  const socket = posix.join(directory, run.runId)
  if (init === undefined || run.runsDirectory === '') return undefined
  return Buffer.byteLength(networkSocketOf({ socket })) > LONGEST_SOCKET_PATH ? undefined : { init, socket }
}

/** @param shown the socket, or the directory that it is in */
function reporterMounts(reporter: Reporter | undefined, shown: (socket: string) => string): readonly BindMount[] {
  if (reporter === undefined) return []
  return [
    { source: reporter.init, target: INIT_TARGET, readonly: true },
    { source: shown(reporter.socket), target: REPORT_TARGET, readonly: true },
  ]
}

/** @throws SandboxError NO_BACKEND where no process on the host could receive the sockets of a restricted network */
function networkMounts({ network }: Plan, reporter: Reporter | undefined): readonly BindMount[] {
  if (network.mode !== 'restricted') return []
  if (reporter === undefined) throw noRestrictedNetwork('the daemon cannot show container-init in a container')
  return [{ source: networkSocketOf(reporter), target: NETWORK_TARGET, readonly: true }]
}

export function noRestrictedNetwork(why: string): SandboxError {
  return new SandboxError('NO_BACKEND', `docker lacks net-restricted: ${why}`, {
    hint: '--backend namespace, or --net none',
  })
}

/** Our init begins as root, makes the network, and becomes the command's user. */
function networkInit(plan: Plan, docker: DockerInputs): readonly string[] {
  if (plan.network.mode !== 'restricted') return []
  const { uid, gid } = identityOf(plan, docker)
  return ['--network', NETWORK_TARGET, String(uid), String(gid)]
}

/** Whether a container, by its record, shows our init. */
export function showsInit(destinations: readonly string[]): boolean {
  return destinations.includes(INIT_TARGET)
}

/** `docker create`: everything about the container, nothing started. */
export function buildCreate(plan: Plan, run: DockerRunInputs): Launch {
  const docker = run.docker
  const name = containerName(run.runId)
  const environment = environmentOf(run.commandEnv, docker)
  const reporter = reporterOf(run)
  const create = [
    'create',
    ...['--name', name],
    ...containerWords(plan, {
      docker,
      labels: labelsOf({ docker, kind: 'run' }),
      init: reporter === undefined ? undefined : INIT_TARGET,
      mounts: [...reporterMounts(reporter, (socket) => socket), ...networkMounts(plan, reporter)],
    }),
    ...environmentWords(environment, docker),
    ...(plan.tty ? ['--tty'] : []),
    imageOf(plan, run.command),
    ...(reporter === undefined
      ? []
      : [...umaskInit(docker), ...mountChecks(plan, docker), ...networkInit(plan, docker), REPORT_TARGET]),
    ...run.command,
  ]
  return launchOf({ docker, argv: create, environment, plan, name })
}

/** Maximum lifetime of a session container in seconds, used or not: none stays for good. */
export const SESSION_SECONDS = 3600

/** The container of a session: the same walls, a command that only sleeps, no environment of any run. */
export function buildSession(plan: Plan, run: DockerRunInputs): Launch {
  const docker = run.docker
  const name = sessionName(plan, run)
  const labels = [...labelsOf({ docker, kind: 'session' }), `${SESSION_LABEL}=${plan.hash}`]
  const environment = environmentOf({}, docker)
  const create = [
    'create',
    ...['--name', name],
    ...containerWords(plan, {
      docker,
      labels,
      mounts: reporterMounts(sessionReporterOf(plan, run), posix.dirname),
    }),
    ...environmentWords(environment, docker),
    imageOf(plan, run.command),
    ...['sleep', String(SESSION_SECONDS)],
  ]
  return launchOf({ docker, argv: create, environment, plan, name })
}

/** One per plan, image and user; the image counts because a plan may leave it to the command. */
export function sessionName(plan: Plan, run: DockerRunInputs): string {
  const image = imageOf(plan, run.command).replaceAll(/[^a-zA-Z0-9]+/g, '-')
  return `${sessionPrefix(run.docker.caller.uid)}${plan.hash}-${image}`
}

/** Beginning of the names of one user's session containers. */
export function sessionPrefix(uid: number): string {
  return `llm-do-session-${uid}-`
}

/** `docker exec` into the container of a session. */
export function buildSessionExec(plan: Plan, run: DockerRunInputs): Launch {
  const docker = run.docker
  const name = sessionName(plan, run)
  const environment = environmentOf(run.commandEnv, docker)
  const reporter = sessionReporterOf(plan, run)
  const argv = [
    'exec',
    '--interactive',
    ...environmentWords(environment, docker),
    ...(plan.tty ? ['--tty'] : []),
    ...['--workdir', plan.workdir],
    name,
    ...(reporter === undefined
      ? []
      : [INIT_TARGET, ...umaskInit(docker), '--inside', posix.join(REPORT_TARGET, posix.basename(reporter.socket))]),
    ...run.command,
  ]
  return launchOf({ docker, argv, environment, plan, name })
}

/** Asks the container of a session whether its mounts are those that this run would have; undefined when there are none to look at. */
export function buildSessionCheck(plan: Plan, run: DockerRunInputs): readonly string[] | undefined {
  const { covers = [] } = run.docker
  if (plan.zones.length === 0) return undefined
  return ['exec', sessionName(plan, run), INIT_TARGET, '--held', ...heldWords({ ...plan, covers })]
}

const umaskInit = ({ umask }: DockerInputs): readonly string[] => ['--umask', umask.toString(8)]

/** For our init: it looks at these mounts before it starts the command. */
function mountChecks(plan: Plan, { covers }: DockerInputs): readonly string[] {
  if (covers === undefined || plan.zones.length === 0) return []
  return ['--mounts', ...heldWords({ ...plan, covers })]
}

/** The paths that were seen; for `--plan --argv`, which inspects no path, all that a zone could have. */
function coversFor(plan: Plan, { covers }: DockerInputs): readonly Cover[] {
  return covers ?? plan.zones.flatMap(coversOf)
}

interface LaunchParts {
  readonly docker: DockerInputs
  readonly argv: readonly string[]
  readonly environment: DividedEnvironment
  readonly plan: Plan
  readonly name: string
}

function launchOf({ docker, argv, environment, plan, name }: LaunchParts): Launch {
  return {
    file: docker.path,
    argv,
    env: { ...docker.environment, ...environment.byName },
    cwd: docker.platform === 'win32' ? 'C:\\' : '/',
    descriptors: [...envFile(environment), ...(argv[0] === 'create' ? seccompFile(plan, docker) : [])],
    stop: { file: docker.path, argv: ['rm', '--force', '--volumes', name] },
  }
}

function envFile({ lines }: DividedEnvironment): readonly LaunchDescriptor[] {
  if (lines.length === 0) return []
  const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(''))
  return [{ fd: ENV_FILE_FD, carries: 'bytes', bytes, what: 'environment of the command' }]
}

function seccompFd({ platform }: DockerInputs): number | null {
  return platform === 'win32' ? null : SECCOMP_FD
}

function seccompFile(plan: Plan, docker: DockerInputs): readonly LaunchDescriptor[] {
  const { profile } = seccompWords(plan, seccompFd(docker))
  return profile === undefined ? [] : [{ fd: SECCOMP_FD, carries: 'bytes', bytes: profile, what: 'seccomp profile' }]
}

/** @throws SandboxError POLICY_INVALID for a runtime that is not in the table */
export function imageOf(plan: Plan, command: readonly string[]): string {
  const image = imageFor({ image: plan.image, runtime: plan.runtime, program: command[0] ?? '' })
  if (image !== undefined) return image
  throw new SandboxError(
    'POLICY_INVALID',
    `runtime: expected ${RUNTIMES.map(({ name }) => name).join(', ')}, got "${plan.runtime}"`,
    {
      hint: '--image IMAGE names one that is not in the table',
    },
  )
}

function environmentOf(
  commandEnv: DockerRunInputs['commandEnv'],
  { program, platform }: DockerInputs,
): DividedEnvironment {
  const divided = divideEnvironment(commandEnv, { program, hasFile: platform !== 'win32' })
  if (divided.impossible.length === 0) return divided
  throw new SandboxError(
    'POLICY_INVALID',
    `env: ${divided.impossible.join(', ')}: ${program} reads this variable itself, and its value does not fit a line of an env file`,
    { hint: 'pass the value by a file in a zone' },
  )
}

function environmentWords({ lines, byName }: DividedEnvironment, { program }: DockerInputs): readonly string[] {
  const unset = program === 'docker' ? PROXY_NAMES.filter((name) => !(name in byName)) : []
  return [
    ...(lines.length === 0 ? [] : ['--env-file', `/dev/fd/${ENV_FILE_FD}`]),
    // A name without a value is removed, also when the image or the client's configuration sets it.
    ...[...Object.keys(byName), ...unset].flatMap((name) => ['--env', name]),
  ]
}

interface ContainerInputs {
  readonly docker: DockerInputs
  readonly labels: readonly string[]
  /** Path inside of what is PID 1; undefined = docker's own. */
  readonly init?: string | undefined
  /** In addition to those of the zones. */
  readonly mounts: readonly BindMount[]
}

/** The options that make the walls; their order has no meaning to the daemon. */
function containerWords(plan: Plan, { docker, labels, init, mounts }: ContainerInputs): readonly string[] {
  return [
    ...labels.flatMap((label) => ['--label', label]),
    ...['--pull', 'never'],
    // The image's own start program and health check are not what the caller wants to run.
    ...['--entrypoint', init ?? '', '--no-healthcheck'],
    ...(init === undefined ? ['--init'] : []),
    '--interactive',
    ...['--hostname', plan.hostname],
    ...networkWords(plan),
    ...['--ipc', 'none', '--cgroupns', 'private'],
    ...identityWords(plan, docker),
    ...['--cap-drop', 'ALL', ...setupCapabilities(plan), '--security-opt', 'no-new-privileges'],
    ...seccompWords(plan, seccompFd(docker)).words,
    ...['--read-only', ...(docker.program === 'podman' ? PODMAN_WORDS : [])],
    ...limitWords(plan, docker),
    ...[...plan.zones.flatMap((zone) => zoneMounts(zone, coversFor(plan, docker))), ...mounts].flatMap(bindWords),
    ...plan.scratch.flatMap((scratch) =>
      tmpfsWords(scratch, { program: docker.program, owner: identityOf(plan, docker) }),
    ),
    ...workdirWords(plan, docker),
    // Output goes to the attached client only; a log would grow on the daemon's disk without a bound.
    ...['--log-driver', 'none', '--stop-timeout', '0'],
  ]
}

/** Where no zone shows the workspace it is an empty directory. docker makes one in the image, podman wants one that is there. */
function workdirWords({ workdir, zones, scratch }: Plan, { program }: DockerInputs): readonly string[] {
  const isThere = [...zones, ...scratch].some(({ target }) => isWithin(workdir, target))
  const empty = program === 'podman' && workdir === WORKSPACE && !isThere ? EMPTY_WORKSPACE : []
  return [...empty, '--workdir', workdir]
}

const EMPTY_WORKSPACE = [
  '--mount',
  `type=tmpfs,target=${WORKSPACE},tmpfs-size=4096,tmpfs-mode=0555,ro=true,notmpcopyup`,
] as const

/** podman mounts a tmpfs over /tmp and /run, makes volumes writable and passes the host's proxies on. */
const PODMAN_WORDS = ['--read-only-tmpfs=false', '--image-volume', 'tmpfs', '--http-proxy=false'] as const

function networkWords({ network }: Plan): readonly string[] {
  if (network.mode !== 'restricted' && Object.keys(network.hosts ?? {}).length > 0)
    throw new SandboxError(
      'NO_BACKEND',
      `docker holds network.hosts only of a restricted network, got ${network.mode}`,
      {
        hint: '--backend namespace, or leave network.hosts out',
      },
    )
  const restricted = network.mode === 'restricted' ? [...NAME_SERVER, ...(hasV6(network) ? IPV6 : [])] : []
  return ['--network', dockerNetwork(network.mode), ...restricted]
}

/** Docker disables it in a container without a network namespace; only listed addresses need it. */
const IPV6 = ['all', 'lo'].flatMap((name) => ['--sysctl', `net.ipv6.conf.${name}.disable_ipv6=0`])
const hasV6 = (network: NetworkPolicy): boolean =>
  planAddresses(rulesOf(network)).diversions.some(({ addresses }) => addresses.includes(':'))

/** A restricted network has no interface to the outside either: its sockets are made by our init. */
export const dockerNetwork = (mode: NetworkMode): 'none' | 'host' => (mode === 'host' ? 'host' : 'none')

/** As in a namespace: src/plan/system-tree.ts. `.` = no search list. */
const NAME_SERVER = ['--dns', NET_ADDRESS, '--dns-search', '.'].concat(
  ['edns0', 'timeout:2', 'attempts:2'].flatMap((option) => ['--dns-option', option]),
)

/** For our init alone, which gives them up before the command exists: the network, its own streams, another user, and the giving up. */
function setupCapabilities({ network }: Plan): readonly string[] {
  if (network.mode !== 'restricted') return []
  return ['NET_ADMIN', 'NET_BIND_SERVICE', 'CHOWN', 'SETUID', 'SETGID', 'SETPCAP'].flatMap((name) => [
    '--cap-add',
    name,
  ])
}

export interface Identity {
  readonly uid: number
  readonly gid: number
}

/**
 * The command's user on the host. In a rootless daemon root is the caller. Elsewhere the caller keeps its ids, and root
 * becomes the owner of the writable zones: ids cannot be mapped per mount here.
 * @throws SandboxError ZONE_INVALID when a zone could only be written by root, or by two different owners
 */
export function identityOf(
  plan: Plan,
  { program, rootless, caller }: Pick<DockerInputs, 'program' | 'rootless' | 'caller'>,
): Identity {
  if (rootless && program === 'docker') return { uid: 0, gid: 0 }
  if (caller.uid !== 0) return caller
  const writable = plan.zones.filter(({ mode }) => mode === 'rw')
  const owner = writable[0]
  if (owner === undefined) return OVERFLOW_ID
  const odd = writable.find(({ uid, gid }) => uid === 0 || uid !== owner.uid || gid !== owner.gid)
  if (odd !== undefined) throw notWritable(odd, owner)
  // Group 0 is root's: what it may read, and programs that are set to it, are no part of the zone.
  return { uid: owner.uid, gid: owner.gid === 0 ? OVERFLOW_ID.gid : owner.gid }
}

/** The kernel's overflow id. */
const OVERFLOW_ID: Identity = { uid: 65_534, gid: 65_534 }

function notWritable(zone: PlannedZone, first: PlannedZone): SandboxError {
  const why =
    zone.uid === 0
      ? 'it belongs to root, and a sandbox started by root must not be root'
      : `it belongs to ${zone.uid}:${zone.gid}, zone ${first.name} to ${first.uid}:${first.gid}, and a container has one user`
  return new SandboxError('ZONE_INVALID', `zone ${zone.name} (${zone.source}) cannot be rw in a container: ${why}`, {
    hint: `chown it to an ordinary user, run as that user, or use --backend namespace (which maps owners)`,
  })
}

function identityWords(plan: Plan, docker: DockerInputs): readonly string[] {
  const { uid, gid } = identityOf(plan, docker)
  if (plan.network.mode === 'restricted') return ['--user', '0:0']
  const keep = docker.program === 'podman' && docker.rootless ? ['--userns', 'keep-id'] : []
  return [...keep, '--user', `${uid}:${gid}`]
}

/** kernel.core_pattern pipe handlers are started for any limit but 1: fs/coredump.c. */
const CORE_LIMIT = 1
const DEFAULT_FILES = 1024
/** Generous: the pids limit is what holds. */
const DEFAULT_PROCESSES = 4096

function limitWords({ limits }: Plan, docker: DockerInputs): readonly string[] {
  const { memory, cpus, pids } = heldByDocker(limits)
  const { cpuTimeMs } = limits
  return [
    ...(memory === undefined
      ? []
      : ['--memory', String(memory.max), '--memory-swap', String(withSwap(memory, limits))]),
    ...(cpus === undefined ? [] : ['--cpus', String(cpus.max)]),
    ...['--pids-limit', String(pids?.max ?? -1)],
    ...ulimit('core', CORE_LIMIT),
    ...(cpuTimeMs === undefined ? [] : ulimit('cpu', Math.ceil(cpuTimeMs / 1000))),
    // Without this podman raises its own limits, which only a privileged process may.
    ...(docker.program === 'podman' ? ulimit('nofile', Math.min(DEFAULT_FILES, docker.hardLimits.files)) : []),
    ...(docker.program === 'podman' ? ulimit('nproc', Math.min(DEFAULT_PROCESSES, docker.hardLimits.processes)) : []),
  ]
}

/** Limits that the plan says the daemon holds; with --best-effort the plan may also name limits that nothing holds. */
export function heldByDocker({ memory, cpus, pids }: PlannedLimits): Pick<PlannedLimits, 'memory' | 'cpus' | 'pids'> {
  return {
    ...(memory?.by === 'docker' && { memory }),
    ...(cpus?.by === 'docker' && { cpus }),
    ...(pids?.by === 'docker' && { pids }),
  }
}

/** The value of --memory-swap: memory and swap together. */
export function withSwap(memory: PlannedLimit, { swap }: PlannedLimits): number {
  return memory.max + (swap?.max ?? 0)
}

function ulimit(name: string, value: number): readonly string[] {
  return ['--ulimit', `${name}=${value}:${value}`]
}

interface LabelInputs {
  readonly docker: DockerInputs
  readonly kind: 'run' | 'session'
}

function labelsOf({ docker, kind }: LabelInputs): readonly string[] {
  return [`${LABEL}=${kind}`, `${RUNNER_LABEL}=${docker.runner}`]
}
