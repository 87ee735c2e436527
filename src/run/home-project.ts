/**
 * The directory by which a home is kept: the root of the repository, for all its directories and linked worktrees, so an agent has one login in
 * a repository. Nothing is shown by it.
 * Edge: looks at paths.
 */
import { lstatSync } from 'node:fs'
import { posix } from 'node:path'
import type { WorktreeLook } from '../host/linked-worktree.ts'
import { ancestorsOf, isBelow, withheldWorkspace } from '../plan/well-known-paths.ts'

export interface ProjectCaller {
  readonly uid: number
  readonly home: string
}

/**
 * A repository of another user, one around the caller's home, and the project around a submodule do not count: their homes belong to another
 * project.
 * @param directory canonical
 */
export function projectOf(
  directory: string,
  { worktree, repository, read }: WorktreeLook,
  caller: ProjectCaller,
): string {
  if (worktree !== undefined)
    return posix.basename(worktree.common) === '.git' ? posix.dirname(worktree.common) : worktree.common
  const isPlain = repository !== undefined && read.length === 0
  return isPlain && isRootOf(repository, caller) ? repository : directory
}

const isRootOf = (repository: string, { uid, home }: ProjectCaller): boolean =>
  lstatSync(posix.join(repository, '.git'), { throwIfNoEntry: false })?.uid === uid &&
  withheldWorkspace(repository, home) === undefined

/** Names that would begin a nearer repository, which has another home. */
export const nearerRepositories = (directory: string, project: string): readonly string[] =>
  [...ancestorsOf(directory), directory]
    .filter((path) => isBelow(path, project))
    .map((path) => posix.join(path, '.git'))
