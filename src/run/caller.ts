/**
 * The caller of a run: its directory, home, environment and profiles, and the paths that decide what its next run may do.
 * Edge: process.env, the account, files.
 */
import { existsSync, realpathSync } from 'node:fs'
import { userInfo } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import { layerDirectories } from '../cow/state-directory.ts'
import { SandboxError } from '../error.ts'
import { ACCOUNTS, homesOfAccounts, lastingHome, NAME_SERVICES } from '../host/accounts.ts'
import { cacheDirectory } from '../host/boot-cache.ts'
import { homesDirectory, ownDirectories, ownDirectory, secretDirectories } from '../host/own-directory.ts'
import { orElse, realOf, textOf } from '../os/look.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { packagePlaces, packageRoot } from '../os/native-programs.ts'
import type { Request } from '../plan/request.ts'
import { toolchainAt } from '../plan/toolchain.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import { type ProfileDirectories, profileDirectoryOf } from '../policy/load.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Caller {
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Environment
  readonly captured: boolean
}

/** Everything about the caller that planning may depend on; values of the environment only where they are no secret. */
export function describeCaller({ command, cwd, env, captured }: Caller): Request {
  const { LANG, TERM, TZ, SSH_AUTH_SOCK } = env
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
    secretDirectories: secretDirectories(env, process.getuid?.() ?? -1),
  }
}

function canonicalDirectory(directory: string): string {
  try {
    return realpathSync.native(directory)
  } catch (cause) {
    const { code: why = (cause as Error).message } = cause as NodeJS.ErrnoException
    throw new SandboxError('ZONE_INVALID', `the directory ${directory} cannot be used: ${why}`, {
      hint: 'cd to a directory that exists',
      cause,
    })
  }
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

const realOr = (directory: string): string => realOf(directory) ?? directory

/** Accounts of a directory service are not in the file; the caller's own home is known all the same. */
const readAccounts = (): string => textOf(ACCOUNTS)

/** Files that tell when the home of this caller is another one; undefined where it could be without that. */
export function filesTellingHome(env: Environment, uid: number): readonly string[] | undefined {
  if (env['HOME']) return []
  const home = lastingHome(readAccounts(), textOf(NAME_SERVICES), uid)
  return home !== undefined && home === accountHome() ? [ACCOUNTS, NAME_SERVICES] : undefined
}

/** An id without an account, as in containers: only HOME can tell. */
const accountHome = (): string => orElse('', () => userInfo().homedir)

export function profileDirectories(env: Environment, home: string): ProfileDirectories {
  return { configDirectory: profileDirectoryOf(env, home), shippedDirectory: join(packageRoot(), 'profiles') }
}

/**
 * Names that decide about the next run, in addition to the files of its policy: a command that can write
 * there could widen its next policy. So could one that changes the pending changes of another run. An editor, cron or sudo may start
 * the next run without the variables of this one, so the standard places count as well.
 */
export function decidingPaths(env: Environment, { cwd }: Pick<Request, 'cwd'>): readonly string[] {
  const kept = [env, ...[env['HOME'], accountHome()].map((HOME) => ({ HOME }))].flatMap(keptPlaces)
  const paths = [...kept, ...packagePlaces(), process.execPath, ...namesOfNode(env, cwd)]
  return [...new Set(paths)].filter((path) => isAbsolute(path))
}

function keptPlaces(env: Environment): readonly string[] {
  const uid = process.getuid?.() ?? -1
  // As the variables say it, links included; the canonical home is not where the next run begins to look.
  const config = profileDirectoryOf(env, env['HOME'] || accountHome())
  const places = [...ownDirectories(env, uid), ...layerDirectories(env, uid)]
  return [config, cacheDirectory(env) ?? '', ...places, homesDirectory(env, uid) ?? '']
}

/** The parts of our own command: its packages, and node where it is installed separately. */
export const ownPrograms = (): readonly string[] => [
  ...packagePlaces(),
  ...(toolchainAt(process.execPath)?.shows ?? []),
]

/** Where the command finds node: on PATH, but never in the caller's directory; with the paths that it tries before. */
function namesOfNode(env: Environment, cwd: string): readonly string[] {
  const entries = (env['PATH'] ?? '').split(delimiter).filter((entry) => isAbsolute(entry) && !isWithin(entry, cwd))
  const paths = entries.map((entry) => join(entry, 'node'))
  const found = paths.findIndex((path) => existsSync(path))
  return found === -1 ? [] : paths.slice(0, found + 1)
}

/**
 * The directory of records, made before any look: a plan that saw it missing would be stale as soon as a run has made it.
 * launch makes it, too, and is the one that checks whose it is.
 */
export function makeOwnDirectory(env: Environment): void {
  // It is there, or launch will say why it cannot be.
  orElse(undefined, () => makeDirectories(ownDirectory(env, process.getuid?.() ?? -1), 0o700))
}
