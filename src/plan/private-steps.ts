/** Directories that only this user may enter: what the runner keeps for commands lies in them. Pure. */
import type { HostFacts, PathFact } from '../host/facts.ts'
import { ancestorsOf, isWithin, shown } from './well-known-paths.ts'

/** From `root` to `directory`, both among them; outermost first. */
export const privateSteps = (root: string, directory: string): readonly string[] =>
  [...ancestorsOf(directory), directory].filter((step) => isWithin(step, root))

/** Why a directory is not believed to hold what was left there; undefined where it can be, or is still to be made. */
export function privateProblem(steps: readonly string[], paths: HostFacts['paths'], uid: number): string | undefined {
  const wrong = steps.map((step) => paths[step]).find((fact) => fact !== undefined && !isPrivate(fact, uid))
  if (wrong === undefined) return undefined
  return `${shown(wrong.path)} must be a directory of yours that is closed to all others, and is not; remove it, or: chmod 700`
}

const isPrivate = ({ kind, link, uid: owner, mode }: PathFact, uid: number): boolean =>
  link === undefined && (kind === 'missing' || (kind === 'directory' && owner === uid && (mode & 0o077) === 0))
