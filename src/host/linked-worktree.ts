/**
 * The repository of a checkout that `git worktree add` has made: its `.git` is a file, and what git needs lies in the repository.
 * Edge: file system (lstat, open, realpath); changes nothing.
 *
 * The file is part of the checkout, and who wrote the checkout can name any directory in it. So the other side has to know of it: the
 * repository's own record, `worktrees/NAME/gitdir`, leads back to this very file. All of it belongs to one user, no link is on the
 * way, and the place has the form of a git directory. A directory above the checkout is none: it would show what lies around it.
 */
import { constants, fstatSync, lstatSync, readFileSync, type Stats } from 'node:fs'
import { posix } from 'node:path'
import { orElse, realOf, withOpenFile } from '../os/look.ts'

export interface LinkedWorktree {
  /** Of the checkout. */
  readonly root: string
  /** The git directory that all worktrees of the repository share. */
  readonly common: string
}

export interface WorktreeLook {
  readonly worktree?: LinkedWorktree
  /** The directory that holds all of the repository around a directory below its root, or around a submodule. Nothing is shown by it. */
  readonly repository?: string
  /** Files that the answer was read from, and one that would change it if it were there. */
  readonly read: readonly string[]
  readonly missing: readonly string[]
}

/** @param directory canonical */
export function lookForWorktree(directory: string, uid: number): WorktreeLook {
  const link = nearest(directory)
  if (link === undefined) return { read: [], missing: [posix.join(directory, '.git')] }
  const { path, status } = link
  const root = posix.dirname(path)
  const above = root === directory ? {} : { repository: root }
  if (!status.isFile()) return { ...above, read: [], missing: [] }
  const own = uid === 0 || status.uid === uid ? namedBy(path, status.uid) : undefined
  if (own === undefined) return { ...above, read: [path], missing: [] }
  const records = RECORDS.map((name) => posix.join(own, name))
  const common = posix.dirname(posix.dirname(own))
  return {
    ...above,
    ...superproject(own, root),
    ...(isRegistered({ link: path, own, owner: status.uid }) && !holds(common, root)
      ? { worktree: { root, common } }
      : {}),
    read: [path, ...records.filter((record) => statusOf(record) !== undefined)],
    missing: records.filter((record) => statusOf(record) === undefined),
  }
}

/** For a submodule: the file can name any directory, but the project above it does lie above it. */
function superproject(own: string, root: string): Pick<WorktreeLook, 'repository'> {
  const [, repository = ''] = /^(.+)\/\.git\/modules\//.exec(own) ?? []
  return repository !== '' && holds(repository, root) ? { repository } : {}
}

/** The repository's record of a worktree: the way back, and the way to the common directory. */
const RECORDS = ['gitdir', 'commondir'] as const

/** The first `.git` that git would come to. */
function nearest(directory: string): { readonly path: string; readonly status: Stats } | undefined {
  const path = posix.join(directory, '.git')
  const status = statusOf(path)
  if (status !== undefined) return { path, status }
  return directory === '/' ? undefined : nearest(posix.dirname(directory))
}

function namedBy(link: string, owner: number): string | undefined {
  const named = /^gitdir: ([^\n\0]+)\n?$/.exec(textOf(link, owner) ?? '')?.[1]
  return named === undefined ? undefined : posix.resolve(posix.dirname(link), named)
}

interface Claim {
  readonly link: string
  /** The directory that the link names. */
  readonly own: string
  readonly owner: number
}

function isRegistered({ link, own, owner }: Claim): boolean {
  const worktrees = posix.dirname(own)
  const common = posix.dirname(worktrees)
  const [back, shared] = RECORDS.map((name) => posix.resolve(own, lineOf(posix.join(own, name), owner)))
  return (
    posix.basename(worktrees) === 'worktrees' &&
    realOf(back ?? '') === link &&
    shared === common &&
    realOf(own) === own &&
    [own, worktrees, common].every((path) => isOwnDirectory(path, owner)) &&
    isGitDirectory(common, owner)
  )
}

const holds = (directory: string, path: string): boolean =>
  `${path}/`.startsWith(directory === '/' ? '/' : `${directory}/`)

const isGitDirectory = (path: string, owner: number): boolean =>
  ['objects', 'refs'].every((name) => isOwnDirectory(posix.join(path, name), owner)) &&
  textOf(posix.join(path, 'HEAD'), owner) !== undefined

function isOwnDirectory(path: string, owner: number): boolean {
  const status = statusOf(path)
  return status?.isDirectory() === true && status.uid === owner
}

/** Longer than a path can be, and all that is ever in one of these files. */
const MOST_BYTES = 8192

/** Content of an ordinary file of this owner. One that is not there, or closed to us, says nothing. */
const textOf = (path: string, owner: number): string | undefined =>
  orElse(undefined, () => withOpenFile(path, (fd) => ordinaryText(fd, owner), constants.O_NOFOLLOW))

function ordinaryText(fd: number, owner: number): string | undefined {
  const status = fstatSync(fd)
  const isOrdinary = status.isFile() && status.uid === owner && status.size <= MOST_BYTES
  return isOrdinary ? readFileSync(fd, 'utf8') : undefined
}

/** NUL, which no path holds, if the line is missing. */
const lineOf = (path: string, owner: number): string => /^([^\n\0]+)\n?$/.exec(textOf(path, owner) ?? '')?.[1] ?? '\0'

function statusOf(path: string): Stats | undefined {
  // Closed to us: as good as not there.
  return orElse(undefined, () => lstatSync(path, { throwIfNoEntry: false }))
}
