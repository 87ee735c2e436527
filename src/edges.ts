/**
 * The questions of a run and who answers them: profiles, the caller, the machine, the paths.
 * Edge: process.env, files, randomness, processes (by the rooms it asks).
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, realpath, stat } from 'node:fs/promises'
import { homedir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { Sights } from './cgroup/fact.ts'
import { observeCgroup } from './cgroup/ladder.ts'
import { SandboxError } from './error.ts'
import { cacheDirectory, recallOrFind } from './host/cache.ts'
import { makeDirectories } from './host/directory.ts'
import type { CgroupFact, HostFacts, PathFact, Probe } from './host/facts.ts'
import { observePaths, observeRounds } from './host/paths.ts'
import { type MachineFacts, observeHost } from './host/probe.ts'
import { findDoors } from './host/sockets.ts'
import { checkHelpers, helpersDirectory, packageRoot, packageVersion } from './native.ts'
import type { Plan } from './plan/plan.ts'
import { followUpPaths, pathsNamedBy } from './plan/questions.ts'
import type { Request } from './plan/request.ts'
import { type ProfileDirectories, profileDirectoryOf } from './policy/load.ts'
import { didYouMean } from './policy/nearest.ts'
import type { Policy } from './policy/policy.ts'
import { compileProfile, toHex } from './seccomp/compile.ts'
import { askLandlockAbi, probeEngine } from './supervisor/probe-engine.ts'
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
export async function describeCaller({ command, cwd, env, captured }: Caller): Promise<Request> {
  const { LANG, TERM, TZ, SSH_AUTH_SOCK } = env
  const locale = Object.entries({ LANG, TERM, TZ }).filter(([, value]) => value !== undefined && value !== '')
  return {
    command,
    cwd: await canonicalDirectory(cwd),
    home: await homeOf(env),
    path: (env['PATH'] ?? '').split(':'),
    environmentNames: Object.keys(env).filter((name) => env[name] !== undefined),
    locale: Object.fromEntries(locale) as Record<string, string>,
    ...(SSH_AUTH_SOCK ? { sshAgentSocket: SSH_AUTH_SOCK } : {}),
    captured,
  }
}

async function canonicalDirectory(directory: string): Promise<string> {
  return realpath(directory).catch((cause: NodeJS.ErrnoException) => {
    throw new SandboxError(
      'ZONE_INVALID',
      `the directory ${directory} cannot be used: ${cause.code ?? cause.message}`,
      {
        hint: 'cd to a directory that exists',
        cause,
      },
    )
  })
}

/** HOME may be wrong or missing; the account's own home directory holds the credentials all the same. */
async function homeOf(env: Environment): Promise<string> {
  const home = env['HOME'] || accountHome()
  return realpath(home).catch(() => home)
}

function accountHome(): string {
  try {
    return userInfo().homedir
  } catch {
    return homedir() // An id without an account, as in containers.
  }
}

export function profileDirectories(env: Environment, home: string): ProfileDirectories {
  return { configDirectory: profileDirectoryOf(env, home), shippedDirectory: join(packageRoot(), 'profiles') }
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
  const uid = process.getuid?.() ?? -1
  const cache = cacheDirectory(env)
  return observeHost({
    want,
    engine: policy.engine,
    env,
    notBelow,
    believe,
    version: packageVersion(),
    cache,
    helpers: () => lookAtHelpers(helpers),
    probeEngine: (engine, bwrap) =>
      probeEngine({ engine, bwrap, helpers, uid, arch: machineArch(), runId: newRunId() }),
    landlockAbi: () => askLandlockAbi(helpers),
    cgroup: () => lookAtCgroup({ uid, cache, cgroupParent: policy.cgroupParent, isLinux: want.includes('namespace') }),
  })
}

function machineArch(): 'x64' | 'arm64' {
  return process.arch === 'arm64' ? 'arm64' : 'x64'
}

async function lookAtHelpers(directory: string): Promise<{ readonly probe: Probe; readonly stamp: string }> {
  try {
    await checkHelpers(directory, process.arch)
    const seen = await Promise.all(['launch', 'init'].map((name) => stat(join(directory, name))))
    return {
      probe: { ok: true, detail: join(directory, 'launch') },
      stamp: seen.map(({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`).join(' '),
    }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    return { probe: { ok: false, step: 'helpers', errno: '', message: `${error.message}; ${error.hint}` }, stamp: '' }
  }
}

interface CgroupQuestion {
  readonly uid: number
  readonly cache: string | undefined
  readonly cgroupParent: string | undefined
  readonly isLinux: boolean
}

const NO_CGROUP: CgroupFact = { rung: 'none', controllers: [], lacking: 'this is not Linux', fix: '' }

/**
 * The ladder takes tens of milliseconds to climb, so its answer is remembered for the boot, user and group, but only one that
 * lacks nothing: what was missing may come, or was missing by chance. A parent that was named is looked at every time.
 */
async function lookAtCgroup({ uid, cache, cgroupParent, isLinux }: CgroupQuestion): Promise<CgroupFact> {
  if (process.platform !== 'linux' || !isLinux) return NO_CGROUP
  if (cgroupParent !== undefined) return observeCgroup({ uid, cgroupParent, look: identitiesOf })
  const place = cache === undefined ? undefined : { directory: cache, uid, key: await cgroupKey() }
  return recallOrFind<CgroupFact>(place, {
    find: () => observeCgroup({ uid, look: identitiesOf }),
    isLasting: ({ lacking }) => lacking === '',
    holds: ({ parent }) => isThere(parent),
  })
}

async function identitiesOf(paths: readonly string[]): Promise<Sights> {
  const facts = await observePaths(paths)
  return Object.fromEntries(paths.map((path) => [path, facts[path]?.identity]))
}

async function cgroupKey(): Promise<string> {
  const [boot, own] = await Promise.all(
    ['/proc/sys/kernel/random/boot_id', '/proc/self/cgroup'].map((file) => readFile(file, 'utf8').catch(() => '')),
  )
  return ['cgroup', packageVersion(), boot, own].join('\n')
}

async function isThere(directory: string | undefined): Promise<boolean> {
  return directory === undefined || (await stat(directory).catch(() => undefined)) !== undefined
}

/** Every path that the policy names, with what the answers lead to. */
export async function observePolicyPaths(policy: Policy, request: Request): Promise<Record<string, PathFact>> {
  return observeRounds(pathsNamedBy(policy, request), (seen) => followUpPaths(policy, request, seen))
}

/** Zone source -> sockets and FIFOs in it. */
export async function doorsIn(
  zones: readonly { readonly source: string }[],
): Promise<Record<string, readonly string[]>> {
  return Object.fromEntries(
    await Promise.all(zones.map(async ({ source }) => [source, await findDoors(source)] as const)),
  )
}

/* ---- the filter ---- */

const LARGEST_FILTER_FILE = 1024 ** 2

/**
 * The compiled system call filter of a policy, as a function of the machine.
 * Root's own files are never a place to plant setuid programs: for root that set is kept whatever filter was asked for.
 */
export async function filterOf({ seccomp }: Policy, uid: number): Promise<(arch: HostFacts['arch']) => string> {
  const profile = typeof seccomp === 'string' ? seccomp : await readFilterFile(seccomp.file)
  const always = uid === 0 ? (['setuid-bits'] as const) : []
  return (arch) => toHex(compileProfile({ profile, arch, always }).filter)
}

async function readFilterFile(file: string) {
  const status = await stat(file).catch((cause: NodeJS.ErrnoException) => {
    throw unreadableFilter(file, cause.code ?? cause.message, cause)
  })
  if (!status.isFile()) throw unreadableFilter(file, 'expected a regular file')
  if (status.size > LARGEST_FILTER_FILE) throw unreadableFilter(file, `expected at most 1MiB, got ${status.size} bytes`)
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw unreadableFilter(file, cause.code ?? cause.message, cause)
  })
  const { parseSeccompFile } = await import('./seccomp/file.ts')
  return parseSeccompFile({ text, source: file, didYouMean })
}

function unreadableFilter(file: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError('PROFILE_UNREADABLE', `seccomp: ${file}: ${why}`, {
    hint: '--seccomp takes default, strict, nested, off or a file; see docs/seccomp.md',
    cause,
  })
}

/* ---- just before the start ---- */

/** Makes the directories of zones with `create`. Returns whether there were any: then the plan was made of paths that are now others. */
export async function makeZoneDirectories({ zones }: Plan): Promise<boolean> {
  const wanted = zones.filter(({ create }) => create)
  for (const { source } of wanted) {
    await makeDirectories(source).catch((cause: NodeJS.ErrnoException) => {
      throw new SandboxError('ZONE_INVALID', `zone source ${source} cannot be made: ${cause.code ?? cause.message}`, {
        hint: `mkdir -p ${source}`,
        cause,
      })
    })
  }
  return wanted.length > 0
}

/**
 * The directory of records, made before anybody looks: a plan that saw it missing would be stale as soon as a run has made it.
 * launch makes it, too, and is the one that checks whose it is.
 */
export async function makeOwnDirectory(env: Environment): Promise<void> {
  const directory = ownDirectory(env, process.getuid?.() ?? -1)
  await mkdir(directory, { mode: 0o700 }).catch(() => undefined)
}

/** Absolute paths that exist here; for hints only. */
export async function existing(paths: readonly string[]): Promise<readonly string[]> {
  const facts = await observePaths(paths)
  return paths.filter((path) => facts[path]?.kind !== 'missing')
}

/** 80 random bits, lower case: unique without asking anybody. */
export function newRunId(): string {
  return randomBytes(10).toString('hex')
}

/** Milliseconds since 1970, to compare with times of files. */
export function now(): number {
  return Date.now()
}
