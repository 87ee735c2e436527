/**
 * Looks at paths of the host, once and before anything is decided.
 * Edge: file system (lstat, stat, realpath); changes nothing.
 */
import { type BigIntStats, lstat, realpath, stat } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { posix } from 'node:path'
import type { Inode, PathFact, PathKind } from './facts.ts'

/** What an errno says about a path. Whatever is not listed (EIO, ESTALE, ...) hides the path from us: `denied`. */
const KIND_BY_ERRNO: Readonly<Record<string, PathKind>> = {
  ENOENT: 'missing',
  ENOTDIR: 'missing',
  ENAMETOOLONG: 'missing',
  ERR_INVALID_ARG_VALUE: 'missing',
  ELOOP: 'loop',
}

/**
 * Answers "what is at this path?" for every path, all at the same time.
 * A path that cannot be looked at is an answer too (`missing`, `loop`, `denied`): this never throws for one.
 * @param paths absolute, normalised
 */
export async function observePaths(paths: readonly string[]): Promise<Record<string, PathFact>> {
  const parents = new Map<string, Promise<string>>()
  const unique = [...new Set(paths)]
  const facts = await Promise.all(unique.map((path) => observePath(path, parents)))
  return Object.fromEntries(facts.map((fact) => [fact.path, fact]))
}

/** Rounds that a chain of links can take before it is cut: name, interpreter, its toolchain, and one to spare. */
const MOST_ROUNDS = 4

/**
 * Looks in rounds: answers may raise new questions (a symbolic link leads elsewhere), until there are none.
 * @param next the questions that the answers so far raise; what is already answered is not asked again
 */
export async function observeRounds(
  first: readonly string[],
  next: (seen: Readonly<Record<string, PathFact>>) => readonly string[],
): Promise<Record<string, PathFact>> {
  const rounds = async (seen: Record<string, PathFact>, left: number): Promise<Record<string, PathFact>> => {
    const open = left === 0 ? [] : next(seen).filter((path) => seen[path] === undefined)
    return open.length === 0 ? seen : rounds({ ...seen, ...(await observePaths(open)) }, left - 1)
  }
  return rounds(await observePaths(first), MOST_ROUNDS)
}

type Parents = Map<string, Promise<string>>

async function observePath(path: string, parents: Parents): Promise<PathFact> {
  const seen = await lookBy(lstat, path)
  const real = await canonical(path, parents)
  if (typeof seen === 'string') return { ...nothingAt({ path, kind: seen, real }), ...identity(seen) }
  if (seen.isSymbolicLink()) return observeLink({ path, own: real, seen })
  return { ...factOf({ path, real, seen }), identity: numbersOf(seen) }
}

/** By callbacks: the promises of node's own take three times as long, and there are hundreds of paths. */
function lookBy(look: typeof lstat | typeof stat, path: string): Promise<BigIntStats | PathKind> {
  const seen = new Promise<BigIntStats>((resolve, reject) => {
    look(path, { bigint: true }, (error, found) => (error === null ? resolve(found) : reject(error)))
  })
  return seen.catch(kindOfFailure)
}

function canonicalOr(path: string, otherwise: () => string | Promise<string>): Promise<string> {
  const real = new Promise<string>((resolve, reject) => {
    realpath.native(path, (error, found) => (error === null ? resolve(found) : reject(error)))
  })
  return real.catch(otherwise)
}

/** The same words as native/cached.c writes. */
function numbersOf({ dev, ino, mode, uid, gid }: BigIntStats): string {
  return [dev, ino, mode, uid, gid].join(':')
}

function identity(kind: PathKind): { readonly identity?: string } {
  return kind === 'missing' || kind === 'denied' ? { identity: kind } : {}
}

interface SeenLink {
  readonly path: string
  /** Canonical place of the link itself, for one that leads nowhere. */
  readonly own: string
  readonly seen: BigIntStats
}

async function observeLink({ path, own, seen: itself }: SeenLink): Promise<PathFact> {
  // Each may fail on its own: the link can vanish between the calls, and is then a link that leads nowhere.
  const [link, seen, real] = await Promise.all([
    readlink(path).catch(() => ''),
    lookBy(stat, path),
    canonicalOr(path, () => own),
  ])
  return {
    ...(typeof seen === 'string' ? nothingAt({ path, kind: seen, real: own }) : factOf({ path, real, seen })),
    ...linkIdentity(itself, seen),
    link,
  }
}

function linkIdentity(link: BigIntStats, target: BigIntStats | PathKind): { readonly identity?: string } {
  const end = typeof target === 'string' ? identity(target).identity : numbersOf(target)
  return end === undefined ? {} : { identity: `${numbersOf(link)}>${end}` }
}

/** The canonical parent plus the last word: right for anything that is not itself a symbolic link. */
async function canonical(path: string, parents: Parents): Promise<string> {
  if (path === '/') return '/'
  return posix.join(await canonicalDirectory(posix.dirname(path), parents), posix.basename(path))
}

function canonicalDirectory(directory: string, parents: Parents): Promise<string> {
  const known = parents.get(directory)
  if (known !== undefined) return known
  // A directory that is not there has a parent that may be: walk up until something exists. `/` always does.
  const found = canonicalOr(directory, () => (directory === '/' ? '/' : canonical(directory, parents)))
  parents.set(directory, found)
  return found
}

function kindOf(seen: BigIntStats): PathKind {
  if (seen.isFile()) return 'file'
  if (seen.isDirectory()) return 'directory'
  if (seen.isSocket()) return 'socket'
  return seen.isFIFO() ? 'fifo' : 'device'
}

function kindOfFailure(error: unknown): PathKind {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  return KIND_BY_ERRNO[code] ?? 'denied'
}

function factOf({ path, real, seen }: { path: string; real: string; seen: BigIntStats }): PathFact {
  return {
    path,
    kind: kindOf(seen),
    real,
    dev: Number(seen.dev),
    ino: exactInode(seen.ino),
    uid: Number(seen.uid),
    gid: Number(seen.gid),
    mode: Number(seen.mode) & 0o7777,
  }
}

function exactInode(ino: bigint): Inode {
  return ino <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(ino) : ino.toString()
}

function nothingAt({ path, kind, real }: { path: string; kind: PathKind; real: string }): PathFact {
  return { path, kind, real, dev: 0, ino: 0, uid: 0, gid: 0, mode: 0 }
}
