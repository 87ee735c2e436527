/**
 * Finds programs on PATH and asks them for their version.
 * Edge: file system (stat, access), processes (PROGRAM --version).
 */
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, sep } from 'node:path'
import { ask } from '../ask.ts'
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
  /** Canonical directories in which nothing counts as a program of the host: whoever writes there could plant one. */
  readonly notBelow: readonly string[]
  readonly uid: number
}

/** The first program of this name on PATH that only the system or the caller can have put there. */
export function findProgram({ name, path, notBelow, uid }: SearchInputs): FoundProgram | undefined {
  const directories = isAbsolute(name) ? [''] : path.filter((entry) => isAbsolute(entry))
  const files = process.platform === 'win32' ? [`${name}.exe`, name] : [name]
  for (const place of directories.flatMap((directory) => files.map((file) => join(directory, file)))) {
    const found = programAt(place, uid)
    if (found !== undefined && !notBelow.some((untrusted) => isBelow(found.path, untrusted))) return found
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
    // Not ours to run: the search goes on, as a shell's does.
    return undefined
  }
}

function isBelow(path: string, place: string): boolean {
  return path.startsWith(place.endsWith(sep) ? place : `${place}${sep}`)
}

/** Asks a program for its version; the first dotted number of the answer counts, empty when there is none. */
export async function askVersion({ path, setuid }: FoundProgram): Promise<ProgramFact> {
  const answer = await ask({ file: path, argv: ['--version'], env: {}, cwd: '/', patienceMs: VERSION_TIMEOUT_MS })
  return { path, version: /\d+(?:\.\d+)+/.exec(`${answer.stdout}\n${answer.stderr}`)?.[0] ?? '', setuid }
}
