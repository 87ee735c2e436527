/**
 * The questions of a run and who answers them: profiles, the caller, the machine, the paths.
 * Edge: process.env, files, randomness, processes (by the rooms it asks).
 */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import { type Enter, enterByShell } from './cgroup/enter.ts'
import type { Sights } from './cgroup/fact.ts'
import { removeDeadTrials } from './cgroup/group.ts'
import { observeCgroup } from './cgroup/ladder.ts'
import { SandboxError } from './error.ts'
import { ACCOUNTS, homesOfAccounts } from './host/accounts.ts'
import { cacheDirectory, recallOrFind } from './host/cache.ts'
import type { CgroupFact, HostFacts, PathFact, Probe } from './host/facts.ts'
import { secretDirectory } from './host/own-directory.ts'
import { observePaths, observeRounds } from './host/paths.ts'
import { type MachineFacts, observeHost } from './host/probe.ts'
import { findDoors } from './host/sockets.ts'
import { makeDirectories } from './os/make-directories.ts'
import { checkHelpers, helpersDirectory, packageRoot, packageVersion } from './os/native-helpers.ts'
import { randomHex } from './os/random-id.ts'
import { runProgram } from './os/run-program.ts'
import { isWithin } from './plan/places.ts'
import type { Plan, PlannedZone } from './plan/plan.ts'
import { followUpPaths, pathsNamedBy } from './plan/questions.ts'
import type { Request } from './plan/request.ts'
import { type ProfileDirectories, profileDirectoryOf } from './policy/load.ts'
import type { Policy } from './policy/policy.ts'
import { filterFor, keptSets, SHIPPED_WAYS } from './seccomp/filter.ts'
import type { MountWay } from './seccomp/ways.ts'
import { probeEngine } from './supervisor/probe-engine.ts'
import { processQuestions } from './supervisor/process-questions.ts'
import { ownDirectory } from './supervisor/runs-directory.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/* ---- the caller ---- */

export interface Caller {
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Environment
  readonly captured: boolean
}

/** Everything about the caller that planning may depend on; values of the environment only where they are no secret. */
export function describeCaller({ command, cwd, env, captured }: Caller): Request {
  const { LANG, TERM, TZ, SSH_AUTH_SOCK } = env
  const secret = secretDirectory(env, process.getuid?.() ?? -1)
  const locale = Object.entries({ LANG, TERM, TZ }).filter(([, value]) => value !== undefined && value !== '')
  return {
    command,
    cwd: canonicalDirectory(cwd),
    ...homesOf(env),
    path: (env['PATH'] ?? '').split(':'),
    environmentNames: Object.keys(env).filter((name) => env[name] !== undefined),
    locale: Object.fromEntries(locale) as Record<string, string>,
    ...(SSH_AUTH_SOCK ? { sshAgentSocket: SSH_AUTH_SOCK } : {}),
    captured,
    ...(secret === undefined ? {} : { secretDirectory: secret }),
  }
}

function canonicalDirectory(directory: string): string {
  try {
    return realpathSync.native(directory)
  } catch (cause) {
    const why = whyOf(cause)
    throw new SandboxError('ZONE_INVALID', `the directory ${directory} cannot be used: ${why}`, {
      hint: 'cd to a directory that exists',
      cause,
    })
  }
}

function whyOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException
  return code ?? message
}

/** HOME may be wrong or missing; the account's own home directory holds the credentials all the same. */
function homesOf(env: Environment): Pick<Request, 'home' | 'homes'> {
  if (env['HOME'] && !isAbsolute(env['HOME'])) throw relativeHome(env['HOME'])
  const own = accountHome()
  const home = homeOf(env, own)
  const homes = [own, ...homesOfAccounts(readAccounts())].map(realOr)
  return { home, homes: [...new Set([home, ...homes])].filter(isAbsolute) }
}

/** It would mean another directory in each one, and profiles would be read from a project. */
function relativeHome(home: string): SandboxError {
  return new SandboxError('POLICY_INVALID', `HOME: expected an absolute path, got "${home}"`, {
    hint: 'export HOME=/the/home/directory, or leave it unset',
  })
}

export function homeOf(env: Environment, own = accountHome()): string {
  return realOr(env['HOME'] || own)
}

function realOr(directory: string): string {
  try {
    return realpathSync.native(directory)
  } catch {
    return directory
  }
}

/** Accounts of a directory service are not in the file; the caller's own home is known all the same. */
function readAccounts(): string {
  try {
    return readFileSync(ACCOUNTS, 'utf8')
  } catch {
    return ''
  }
}

function accountHome(): string {
  try {
    return userInfo().homedir
  } catch {
    return '' // An id without an account, as in containers: only HOME can tell.
  }
}

export function profileDirectories(env: Environment, home: string): ProfileDirectories {
  return { configDirectory: profileDirectoryOf(env, home), shippedDirectory: join(packageRoot(), 'profiles') }
}

/**
 * What decides about the next run beside the files of its policy, under the names by which it is reached: a command that can write
 * there could widen what it is given then.
 */
export function decidingPlaces(env: Environment, { cwd }: Pick<Request, 'cwd'>): readonly string[] {
  const own = ownDirectory(env, process.getuid?.() ?? -1)
  // As the variables say it, links included; the canonical home is not where the next run begins to look.
  const config = profileDirectoryOf(env, env['HOME'] || accountHome())
  const places = [config, cacheDirectory(env) ?? '', own, packageRoot(), process.execPath, ...namesOfNode(env, cwd)]
  return places.filter((place) => isAbsolute(place))
}

/** Where the command finds node: on PATH, but never in the caller's directory; with the places that it looks at before. */
function namesOfNode(env: Environment, cwd: string): readonly string[] {
  const entries = (env['PATH'] ?? '').split(delimiter).filter((entry) => isAbsolute(entry) && !isWithin(entry, cwd))
  const places = entries.map((entry) => join(entry, 'node'))
  const found = places.findIndex((place) => existsSync(place))
  return found === -1 ? [] : places.slice(0, found + 1)
}

/* ---- the machine ---- */

export interface MachineQuestion {
  readonly want: readonly ('namespace' | 'docker' | 'wasm')[]
  readonly policy: Pick<Policy, 'cgroupParent'> & { readonly engine: Policy['engine'] | 'all' }
  /** See host/probe.ts. */
  readonly believe?: boolean
  readonly env: Environment
  readonly notBelow: readonly string[]
}

/** What this machine can do, from memory where that is the same boot, user and set of programs. */
export async function observeMachine({
  want,
  policy,
  env,
  notBelow,
  believe = false,
}: MachineQuestion): Promise<MachineFacts> {
  const helpers = helpersDirectory()
  const seen = lookAtHelpers(helpers)
  const questions = processQuestions(helpers)
  const uid = process.getuid?.() ?? -1
  // Remembered for this boot, and believed: it must lie where no zone can be.
  const cache = secretDirectory(env, uid)
  // What cannot be trusted is not started, not even to answer a question.
  const enter = seen.probe.ok ? questions.enter : enterByShell
  return observeHost({
    want,
    engine: policy.engine,
    env,
    notBelow,
    believe,
    version: packageVersion(),
    cache,
    helpers: () => seen,
    probeEngine: (engine, bwrap) =>
      probeEngine({ engine, bwrap, helpers, uid, arch: machineArch(), runId: newRunId() }),
    landlockAbi: questions.landlockAbi,
    cgroup: () =>
      lookAtCgroup({ uid, enter, cache, cgroupParent: policy.cgroupParent, isLinux: want.includes('namespace') }),
  })
}

function machineArch(): 'x64' | 'arm64' {
  return process.arch === 'arm64' ? 'arm64' : 'x64'
}

function lookAtHelpers(directory: string): { readonly probe: Probe; readonly stamp: string } {
  try {
    checkHelpers(directory, process.arch)
    const seen = ['launch', 'init'].map((name) => statSync(join(directory, name)))
    return {
      probe: { ok: true, detail: join(directory, 'launch') },
      stamp: seen.map(({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`).join(' '),
    }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    return { probe: { ok: false, step: 'helpers', errno: '', message: `${error.message}; ${error.hint}` }, stamp: '' }
  }
}

/** Removes the cgroups of processes that were killed while they probed the place where runs have theirs. */
export async function pruneTrials(env: Environment): Promise<void> {
  const uid = process.getuid?.() ?? -1
  const question = {
    uid,
    enter: enterByShell,
    cache: secretDirectory(env, uid),
    cgroupParent: undefined,
    isLinux: true,
  }
  const { parent } = await lookAtCgroup(question)
  if (parent !== undefined) removeDeadTrials(parent)
}

interface CgroupQuestion {
  readonly uid: number
  readonly enter: Enter
  readonly cache: string | undefined
  readonly cgroupParent: string | undefined
  readonly isLinux: boolean
}

const NO_CGROUP: CgroupFact = { rung: 'none', controllers: [], lacking: 'this is not Linux', fix: '' }

/**
 * The ladder takes tens of milliseconds to climb, so its answer is remembered for the boot, user and group, but only one that
 * lacks nothing: what was missing may come, or was missing by chance. A parent that was named is looked at every time.
 */
async function lookAtCgroup({ uid, enter, cache, cgroupParent, isLinux }: CgroupQuestion): Promise<CgroupFact> {
  if (process.platform !== 'linux' || !isLinux) return NO_CGROUP
  if (cgroupParent !== undefined) return observeCgroup({ uid, enter, look: identitiesOf, cgroupParent })
  const place = cache === undefined ? undefined : { directory: cache, uid, key: cgroupKey() }
  return recallOrFind<CgroupFact>(place, {
    find: () => observeCgroup({ uid, enter, look: identitiesOf }),
    isLasting: ({ lacking }) => lacking === '',
    holds: ({ parent }) => isThere(parent),
  })
}

function identitiesOf(paths: readonly string[]): Sights {
  const facts = observePaths(paths)
  return Object.fromEntries(paths.map((path) => [path, facts[path]?.identity]))
}

function cgroupKey(): string {
  const [boot, own] = ['/proc/sys/kernel/random/boot_id', '/proc/self/cgroup'].map(textOf)
  return ['cgroup', packageVersion(), boot, own].join('\n')
}

/** Empty where the kernel or a container hides it. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function isThere(directory: string | undefined): boolean {
  return directory === undefined || existsSync(directory)
}

/** Every path that the policy names, with what the answers lead to. */
export function observePolicyPaths(policy: Policy, request: Request): Record<string, PathFact> {
  return observeRounds(pathsNamedBy(policy, request), (seen) => followUpPaths(policy, request, seen))
}

/** Zone source -> sockets and FIFOs in it. */
export function doorsIn(zones: readonly { readonly source: string }[]): Record<string, readonly string[]> {
  return Object.fromEntries(zones.map(({ source }) => [source, findDoors(source)]))
}

/* ---- the filter ---- */

const LARGEST_FILTER_FILE = 1024 ** 2

/** The compiled system call filter of a policy, as a function of the machine. */
export async function filterOf(
  { seccomp }: Policy,
  { uid, arch }: Pick<HostFacts, 'uid' | 'arch'>,
): Promise<(arch: HostFacts['arch']) => string> {
  const profile = typeof seccomp === 'string' ? seccomp : await readFilterFile(seccomp.file)
  return filterFor({ profile, arch, always: keptSets({ isRoot: uid === 0 }) })
}

/** Shipped filters are known by test; the simulator is loaded for a user's own. */
export async function mountWaysOf(
  { seccomp }: Policy,
  filter: string,
  { arch }: Pick<HostFacts, 'arch'>,
): Promise<readonly MountWay[]> {
  if (typeof seccomp === 'string') return SHIPPED_WAYS[seccomp]
  const { mountWays } = await import('./seccomp/ways.ts')
  return mountWays(filter, arch)
}

async function readFilterFile(file: string) {
  const text = filterTextOf(file)
  const { parseSeccompFile } = await import('./seccomp/file.ts')
  return parseSeccompFile({ text, source: file })
}

function filterTextOf(file: string): string {
  try {
    const status = statSync(file)
    if (!status.isFile()) throw unreadableFilter(file, 'expected a regular file')
    if (status.size > LARGEST_FILTER_FILE)
      throw unreadableFilter(file, `expected at most 1MiB, got ${status.size} bytes`)
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw cause instanceof SandboxError ? cause : unreadableFilter(file, whyOf(cause), cause)
  }
}

function unreadableFilter(file: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError('PROFILE_UNREADABLE', `seccomp: ${file}: ${why}`, {
    hint: '--seccomp takes default, strict, nested, off or a file; see docs/seccomp.md',
    cause,
  })
}

/* ---- just before the start ---- */

/**
 * Plans, makes the directories of zones with `create`, and plans again, since the first plan is of paths that are now others.
 * @throws SandboxError ZONE_INVALID where one cannot be made, or is not the one that was made when it is looked at again
 */
export async function prepareZones<T extends { readonly plan: Plan }>(prepare: () => Promise<T>): Promise<T> {
  const first = await prepare()
  const wanted = first.plan.zones.filter(({ create }) => create)
  if (wanted.length === 0) return first
  const made = new Map<string, string>()
  for (const { target, source } of wanted) made.set(target, await makeZoneDirectory(source))
  const prepared = await prepare()
  for (const zone of prepared.plan.zones) checkMade(zone, made.get(zone.target))
  return prepared
}

function checkMade({ source, dev, ino }: PlannedZone, made: string | undefined): void {
  if (made === undefined || made === UNKNOWN || made === `${dev} ${ino}`) return
  throw new SandboxError('ZONE_INVALID', `zone source ${source} was replaced by something else while it was made`, {
    hint: 'see what else is at work there, and try again',
  })
}

const UNKNOWN = ''
/** Milliseconds; a directory on a slow network share. */
const MAKING_MS = 30_000

/**
 * By the native helper, which follows no link that was put in the way since the path was looked at: root may be asked to make a
 * directory in somebody else's. Elsewhere than on Linux there is no helper.
 * @returns device and inode of the directory
 */
async function makeZoneDirectory(source: string): Promise<string> {
  if (process.platform !== 'linux') return makeByPath(source)
  const helpers = helpersDirectory()
  checkHelpers(helpers, process.arch)
  const { ok, why, stdout } = await runProgram({
    file: join(helpers, 'runs'),
    argv: ['make', source],
    patienceMs: MAKING_MS,
  })
  if (!ok || !/^\d+ \d+\n$/.test(stdout)) throw notMade(source, why || 'no answer')
  return stdout.trim()
}

function makeByPath(source: string): string {
  try {
    makeDirectories(source)
    return UNKNOWN
  } catch (cause) {
    throw notMade(source, whyOf(cause), cause)
  }
}

function notMade(source: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError('ZONE_INVALID', `zone source ${source} cannot be made: ${why}`, {
    hint: `mkdir -p ${source}`,
    cause,
  })
}

/**
 * The directory of records, made before anybody looks: a plan that saw it missing would be stale as soon as a run has made it.
 * launch makes it, too, and is the one that checks whose it is.
 */
export function makeOwnDirectory(env: Environment): void {
  try {
    makeDirectories(ownDirectory(env, process.getuid?.() ?? -1), 0o700)
  } catch {
    // It is there, or launch will say why it cannot be.
  }
}

/** Absolute paths that exist here; for hints only. */
export function existing(paths: readonly string[]): readonly string[] {
  const facts = observePaths(paths)
  return paths.filter((path) => facts[path]?.kind !== 'missing')
}

/** 80 random bits, lower case: unique without asking anybody. */
export function newRunId(): string {
  return randomHex(10)
}

/** Milliseconds since 1970, to compare with times of files. */
export function now(): number {
  return Date.now()
}
