/**
 * Finds programs on PATH and asks them for their version.
 * Edge: file system (stat, access), processes (PROGRAM --version).
 */
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, isAbsolute, join, normalize, resolve, sep } from 'node:path'
import { BASH } from '../contract.ts'
import { may, realOf } from '../os/look.ts'
import { runProgram } from '../os/run-program.ts'
import type { ProgramFact } from './facts.ts'

/** Longest wait for an answer to `--version`, milliseconds. A program that hangs is as good as absent. */
const VERSION_TIMEOUT_MS = 2_000

export interface FoundProgram {
  /** Canonical. */
  readonly path: string
  readonly setuid: boolean
  /** Changes when the file is another one: device, inode, size, mtime, ctime. */
  readonly stamp: string
}

export interface SearchInputs {
  readonly name: string
  /** PATH, split. */
  readonly path: readonly string[]
  /** Directories in which nothing counts as a program of the host: a command that can write there could plant one. */
  readonly notBelow: readonly string[]
  readonly uid: number
}

/** The caller's directory as one of `notBelow`. Who stands in the system's own tree does not work there. */
export function untrustedFrom(directory: string): readonly string[] {
  const isSystem = SYSTEM_TREES.some((tree) => directory === tree || isBelow(directory, tree))
  return directory === '/' || isSystem ? [] : [directory]
}

const SYSTEM_TREES = ['/usr', '/bin', '/sbin', '/lib', '/lib64'] as const

/**
 * The entries of PATH in which a program of the host may be: absolute, and by name and by where they lead neither at nor below a
 * directory that a command can write to.
 */
export function trustedEntries({ path, notBelow }: Pick<SearchInputs, 'path' | 'notBelow'>): readonly string[] {
  const excluded = notBelow.flatMap((directory) => [directory, realOr(directory)])
  const isPlanted = (entry: string): boolean =>
    excluded.some((directory) => entry === directory || isBelow(entry, directory))
  return path.filter((entry) => isAbsolute(entry) && !isPlanted(normalize(entry)) && !isPlanted(realOr(entry)))
}

/** Programs that are started by name, by us or by one of these. */
const STARTED = ['bwrap', 'docker', 'podman', 'wasmtime', 'llm-do', 'ssh', 'git', 'node'] as const

/**
 * The same environment with nothing else on PATH, for programs that start others by their names. An entry is left out as a whole
 * where one of the names is a link to what a command can write to.
 */
export function withTrustedPath<Env extends Readonly<Record<string, string | undefined>>>(
  env: Env,
  notBelow: readonly string[],
): Env {
  const { PATH } = env
  if (PATH === undefined) return env
  const excluded = notBelow.map(realOr)
  const leadsAway = (file: string): boolean => excluded.some((directory) => isBelow(realOr(file), directory))
  const entries = trustedEntries({ path: PATH.split(delimiter), notBelow })
  const kept = entries.filter((entry) => !STARTED.some((name) => leadsAway(join(entry, name))))
  return { ...env, PATH: kept.join(delimiter) }
}

/** A path that cannot be inspected stays as it is written. */
const realOr = (path: string): string => realOf(path) ?? resolve(path)

/** The first program of this name on PATH that only the system or the caller can have put there. */
export function findProgram({ name, path, notBelow, uid }: SearchInputs): FoundProgram | undefined {
  const directories = isAbsolute(name) ? [''] : trustedEntries({ path, notBelow })
  const excluded = notBelow.map(realOr)
  const files = process.platform === 'win32' ? [`${name}.exe`, name] : [name]
  for (const file of directories.flatMap((directory) => files.map((one) => join(directory, one)))) {
    const found = programAt(file, uid)
    if (found !== undefined && !excluded.some((directory) => isBelow(found.path, directory))) return found
  }
  return undefined
}

function programAt(path: string, uid: number): FoundProgram | undefined {
  try {
    const seen = statSync(path, { throwIfNoEntry: false })
    if (seen === undefined) return undefined
    accessSync(path, constants.X_OK)
    const trusted = [0, uid].includes(seen.uid) && (seen.mode & 0o002) === 0
    if (!seen.isFile() || !trusted) return undefined
    const stamp = [seen.dev, seen.ino, seen.size, seen.mtimeMs, seen.ctimeMs].join(':')
    return { path: realpathSync.native(path), setuid: (seen.mode & 0o6000) !== 0, stamp }
  } catch {
    // We may not run it: the search continues, as a shell's does.
    return undefined
  }
}

/** Whether a shell's words can be given to bash. native/client/call.c asks the same way. */
export const hasBash = (): boolean => may(BASH)

function isBelow(path: string, directory: string): boolean {
  return path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`)
}

/** Asks a program for its version; the first dotted number of the answer counts, empty when there is none. */
export async function readVersion({ path, setuid }: FoundProgram): Promise<ProgramFact> {
  const end = await runProgram({ file: path, argv: ['--version'], env: {}, patienceMs: VERSION_TIMEOUT_MS })
  return { path, version: /\d+(?:\.\d+)+/.exec(`${end.stdout}\n${end.stderr}`)?.[0] ?? '', setuid }
}

/** A setuid program is not even started: it would run with rights that no user here is meant to have. */
export async function versionOf(found: FoundProgram | undefined): Promise<ProgramFact | undefined> {
  if (found === undefined) return undefined
  return found.setuid ? { path: found.path, version: '', setuid: true } : readVersion(found)
}
