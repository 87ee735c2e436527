/**
 * Python's virtual environments name their own place: in `activate`, and in the first line of each program. Where the caller's directory has
 * one, its path on the host leads to it inside as well. Pure.
 */
import { posix } from 'node:path'
import { type PathFacts, pathFact } from './mounts.ts'
import type { PlannedZone } from './plan.ts'
import type { Request } from './request.ts'
import { insideOf } from './toolchain.ts'
import { isWithin } from './well-known-paths.ts'

const NAMES = ['.venv', 'venv', 'env'] as const

export const environmentFiles = (cwd: string): readonly string[] =>
  NAMES.map((name) => posix.join(cwd, name, 'pyvenv.cfg'))

/** The launcher fills these. */
const OF_LAUNCHER = ['/proc', '/dev', '/sys']

const hasPlace = (cwd: string): boolean => cwd !== '/' && !OF_LAUNCHER.some((directory) => isWithin(cwd, directory))

/** @returns path of the caller's directory -> where it is inside; empty without an environment */
export function environmentLinks(
  { cwd }: Request,
  paths: PathFacts,
  zones: readonly PlannedZone[],
): Readonly<Record<string, string>> {
  const inside = insideOf(cwd, zones)
  if (inside === undefined || inside === cwd || !hasPlace(cwd)) return {}
  const isNeeded = environmentFiles(cwd).some((path) => pathFact(paths, path).kind === 'file')
  return isNeeded ? { [cwd]: inside } : {}
}
