/**
 * Looks at paths of the host, once and before anything is decided.
 * Edge: file system (lstat, stat, realpath); changes nothing.
 *
 * Every look is made at once: it takes the kernel two microseconds, and handing it to a thread takes ten times that.
 */
import { type BigIntStats, lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { orElse } from '../os/look.ts'
import type { DeviceFact, PathFact, PathKind } from './facts.ts'

/** Meaning of an errno for a path. Any errno that is not listed (EIO, ESTALE, ...) hides the path from us: `denied`. */
const KIND_BY_ERRNO: Readonly<Record<string, PathKind>> = {
  ENOENT: 'missing',
  ENOTDIR: 'missing',
  ENAMETOOLONG: 'missing',
  ERR_INVALID_ARG_VALUE: 'missing',
  ELOOP: 'loop',
}

/**
 * Answers "what is at this path?" for every path.
 * A path that cannot be looked at is an answer too (`missing`, `loop`, `denied`): this never throws for one.
 * @param paths absolute, normalised
 */
export function observePaths(paths: readonly string[]): Record<string, PathFact> {
  const parents: Parents = new Map()
  return Object.fromEntries([...new Set(paths)].map((path) => [path, observePath(path, parents)]))
}

/** Path -> what an unchanged file keeps; undefined where it cannot be known. */
export function identitiesOf(paths: readonly string[]): Readonly<Record<string, string | undefined>> {
  const facts = observePaths(paths)
  return Object.fromEntries(paths.map((path) => [path, facts[path]?.identity]))
}

/** Rounds that a chain of links can take before it is cut: one for each link that the kernel follows, and some to spare. */
const MOST_ROUNDS = 48

/**
 * Looks in rounds: answers may raise new questions (a symbolic link leads elsewhere), until there are none.
 * @param next the questions that the answers so far raise; what is already answered is not asked again
 */
export function observeRounds(
  first: readonly string[],
  next: (seen: Readonly<Record<string, PathFact>>) => readonly string[],
): Record<string, PathFact> {
  const rounds = (seen: Record<string, PathFact>, left: number): Record<string, PathFact> => {
    const open = left === 0 ? [] : next(seen).filter((path) => seen[path] === undefined)
    return open.length === 0 ? seen : rounds({ ...seen, ...observePaths(open) }, left - 1)
  }
  return rounds(observePaths(first), MOST_ROUNDS)
}

/** Directory -> canonical directory. */
type Parents = Map<string, string>

function observePath(path: string, parents: Parents): PathFact {
  const seen = statBy(lstatSync, path)
  const real = canonical(path, parents)
  if (typeof seen === 'string') return { ...nothingAt({ path, kind: seen, real }), ...identity(seen) }
  if (seen.isSymbolicLink()) return observeLink({ path, own: real, seen })
  return { ...factOf({ path, real, seen }), identity: numbersOf(seen) }
}

/** An exception costs five times as much as the look, and most places that are looked at are empty. */
const QUIETLY = { bigint: true, throwIfNoEntry: false } as const

function statBy(stat: typeof lstatSync | typeof statSync, path: string): BigIntStats | PathKind {
  try {
    return stat(path, QUIETLY) ?? 'missing'
  } catch (error) {
    return kindOfFailure(error)
  }
}

function canonicalOr(path: string, otherwise: () => string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return otherwise()
  }
}

/** The same words as native/lib/launch-cache.c writes. */
function numbersOf({ dev, ino, mode, uid, gid }: BigIntStats): string {
  return [dev, ino, mode, uid, gid].join(':')
}

function identity(kind: PathKind): { readonly identity?: string } {
  return kind === 'missing' || kind === 'denied' ? { identity: kind } : {}
}

interface ObservedLink {
  readonly path: string
  /** Canonical place of the link itself, for one that leads nowhere. */
  readonly own: string
  readonly seen: BigIntStats
}

/** Each look may fail on its own: the link can vanish between them, and is then a link that leads nowhere. */
function observeLink({ path, own, seen: itself }: ObservedLink): PathFact {
  const seen = statBy(statSync, path)
  const real = canonicalOr(path, () => own)
  return {
    ...(typeof seen === 'string' ? nothingAt({ path, kind: seen, real: own }) : factOf({ path, real, seen })),
    ...linkIdentity(itself, seen),
    link: linkText(path),
  }
}

/** Empty where it cannot be read. */
export const linkText = (path: string): string => orElse('', () => readlinkSync(path))

function linkIdentity(link: BigIntStats, target: BigIntStats | PathKind): { readonly identity?: string } {
  const end = typeof target === 'string' ? identity(target).identity : numbersOf(target)
  return end === undefined ? {} : { identity: `${numbersOf(link)}>${end}` }
}

/** The canonical parent plus the last word: right for anything that is not itself a symbolic link. */
function canonical(path: string, parents: Parents): string {
  if (path === '/') return '/'
  return posix.join(canonicalDirectory(posix.dirname(path), parents), posix.basename(path))
}

function canonicalDirectory(directory: string, parents: Parents): string {
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
    ino: seen.ino <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(seen.ino) : seen.ino.toString(),
    uid: Number(seen.uid),
    gid: Number(seen.gid),
    mode: Number(seen.mode) & 0o7777,
    ...(kindOf(seen) === 'device' ? { device: deviceOf(seen) } : {}),
    ...(seen.isFile() && seen.nlink > 1n ? { names: Number(seen.nlink) } : {}),
  }
}

/** As gnu_dev_major(3) and gnu_dev_minor(3) divide a number. */
function deviceOf(seen: BigIntStats): DeviceFact {
  const major = Number(((seen.rdev >> 8n) & 0xfffn) | ((seen.rdev >> 32n) & 0xfffff000n))
  const minor = Number((seen.rdev & 0xffn) | ((seen.rdev >> 12n) & 0xffffff00n))
  const type = seen.isCharacterDevice() ? 'char' : 'block'
  return { type, number: Number(seen.rdev), major, minor, driver: type === 'char' ? driverOf(major) : '' }
}

/** Empty where the list cannot be read, as for a number without a driver. */
function driverOf(major: number): string {
  try {
    const [characters = ''] = readFileSync('/proc/devices', 'utf8').split('Block devices:')
    return new RegExp(`^ *${major} (.+)$`, 'm').exec(characters)?.[1] ?? ''
  } catch {
    return ''
  }
}

function nothingAt({ path, kind, real }: { path: string; kind: PathKind; real: string }): PathFact {
  return { path, kind, real, dev: 0, ino: 0, uid: 0, gid: 0, mode: 0 }
}
