/**
 * Profiles from files: by name from the user's directory, then from the shipped one, or by path; with all they extend. The first may be
 * a text instead of a name: what a program has as an object needs no file.
 * Also answers which files decided it, read or looked for, so that a cached plan can tell when it is stale.
 * Edge: reads profile files and directories.
 */
import { fstatSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { SandboxError } from '../error.ts'
import { namesIn, readUpTo, withOpenFile } from '../os/look.ts'
import { isForeign } from '../os/native-programs.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import type { PolicyLayer } from './layer.ts'
import { PRECOMPILED } from './precompiled.ts'
import { isWrittenProfile, type ParsedProfile, profileLayer, WRITTEN_PROFILE } from './profile-layer.ts'

export interface ProfileDirectories {
  /** `$XDG_CONFIG_HOME/llm-do/profiles`, absolute; searched first. */
  readonly configDirectory: string
  /** The profiles that come with the program, absolute. */
  readonly shippedDirectory: string
}

export interface ProfileRequest extends ProfileDirectories {
  /** A name, a path (it has a slash, or ends in .yaml or .yml), or the text of a profile, which begins with a brace. */
  readonly name: string
  /** Absolute; what a relative path is relative to, also one in such a text. */
  readonly cwd: string
}

export interface LoadedProfile {
  /** Base first. */
  readonly layers: readonly PolicyLayer[]
  /** Canonical paths of the files that were read, in the order of the layers. */
  readonly read: readonly string[]
  /** The paths through which those were found; another one than canonical may come to lead elsewhere. */
  readonly found: readonly string[]
  /** Files that would have been used had they been there. */
  readonly missing: readonly string[]
}

/** Largest profile that is read, in bytes. */
const LARGEST_PROFILE = 1024 ** 2
/** More than any real chain, so that a generated one cannot keep us busy. */
const LONGEST_CHAIN = 32
const EXTENSIONS = ['.yaml', '.yml'] as const

/** Where a user's own profiles are, by the XDG base directory rules; empty when there is neither variable nor home. */
export function profileDirectoryOf(env: Readonly<Record<string, string | undefined>>, home: string): string {
  const configured = env.XDG_CONFIG_HOME ?? ''
  if (path.isAbsolute(configured)) return path.join(configured, 'llm-do', 'profiles')
  return home === '' ? '' : path.join(home, '.config', 'llm-do', 'profiles')
}

/**
 * Reads a profile and everything it extends.
 * @throws SandboxError PROFILE_NOT_FOUND, PROFILE_UNREADABLE or PROFILE_CYCLE
 */
export async function loadProfile(request: ProfileRequest): Promise<LoadedProfile> {
  return await loadChain({ request, chain: [], missing: [] })
}

interface Link {
  readonly name: string
  /** The path through which the file was found. */
  readonly candidate: string
  readonly file: string
  readonly profile: ParsedProfile
}

interface Chain {
  readonly request: ProfileRequest
  /** From the profile that was asked for to its bases. */
  readonly chain: readonly Link[]
  readonly missing: readonly string[]
}

async function loadChain({ request, chain, missing }: Chain): Promise<LoadedProfile> {
  const isWritten = chain.length === 0 && isWrittenProfile(request.name)
  const found = isWritten ? writtenProfile(request) : findProfile(request, chain.at(-1)?.candidate)
  const seen = chain.findIndex(({ file }) => file === found.file)
  if (seen >= 0) throw cycle([...chain.slice(seen), { name: request.name, file: found.file }])
  if (chain.length >= LONGEST_CHAIN) throw cycle([...chain, { name: request.name, file: found.file }])
  const profile = await readProfile(found)
  const longer = [...chain, { name: request.name, candidate: found.candidate, file: found.file, profile }]
  const tried = [...missing, ...found.missing]
  const base = profile.extends
  if (base !== undefined)
    return await loadChain({
      request: { ...request, name: base, cwd: found.directory ?? path.dirname(found.file) },
      chain: longer,
      missing: tried,
    })
  const links = longer.toReversed()
  const files = links.filter(({ file }) => file !== WRITTEN_PROFILE)
  return {
    layers: links.map((link) => link.profile.layer),
    read: files.map(({ file }) => file),
    found: files.map(({ candidate }) => candidate),
    missing: tried,
  }
}

/** The parser is loaded for profiles that do not come with the program. */
async function readProfile(found: Pick<FoundProfile, 'file' | 'bytes' | 'directory'>): Promise<ParsedProfile> {
  const known = shippedWith(found.bytes)
  if (known !== undefined) return profileLayer({ ...known, file: found.file })
  const { parseProfile } = await import('./parse.ts')
  return parseProfile(found)
}

const shippedWith = (bytes: Uint8Array) => PRECOMPILED.profiles.find(({ text }) => Buffer.from(text).equals(bytes))
/** Whoever owns it, it says what the program itself says. */
const isShipped = (bytes: Uint8Array): boolean => shippedWith(bytes) !== undefined

interface FoundProfile {
  readonly candidate: string
  /** Canonical. */
  readonly file: string
  /** Its relative paths start here; the directory of the file if absent. */
  readonly directory?: string
  readonly bytes: Uint8Array
  readonly missing: readonly string[]
}

function writtenProfile({ name, cwd }: ProfileRequest): FoundProfile {
  return { candidate: WRITTEN_PROFILE, file: WRITTEN_PROFILE, directory: cwd, bytes: Buffer.from(name), missing: [] }
}

function findProfile(request: ProfileRequest, extendedBy: string | undefined): FoundProfile {
  const candidates = candidatesOf(request, extendedBy)
  const missing: string[] = []
  for (const candidate of candidates) {
    const found = readIfThere(candidate)
    if (found !== undefined) return { ...found, candidate, missing }
    missing.push(candidate)
  }
  throw notFound(request, extendedBy)
}

/**
 * The files a name or path can mean, best first. A profile that extends its own name means the one that it hides:
 * the user's `default` can add to the shipped `default`.
 */
function candidatesOf(request: ProfileRequest, extendedBy: string | undefined): readonly string[] {
  if (isPath(request.name)) return [path.resolve(request.cwd, request.name)]
  const directories = directoriesOf(request)
  const all = directories.flatMap((directory) =>
    EXTENSIONS.map((extension) => path.join(directory, request.name + extension)),
  )
  const hides =
    extendedBy !== undefined && all.includes(extendedBy) ? directories.indexOf(path.dirname(extendedBy)) : -1
  const hidden = all.slice((hides + 1) * EXTENSIONS.length)
  // Nothing is hidden by the last directory: the profile extends itself, and the circle is reported as one.
  return hidden.length === 0 ? all : hidden
}

function directoriesOf({ configDirectory, shippedDirectory }: ProfileDirectories): readonly string[] {
  return [configDirectory, shippedDirectory].filter((directory) => directory !== '')
}

function isPath(name: string): boolean {
  return name.includes('/') || EXTENSIONS.some((extension) => name.endsWith(extension))
}

function readIfThere(candidate: string): { readonly file: string; readonly bytes: Uint8Array } | undefined {
  try {
    const bytes = withOpenFile(candidate, (fd) => readProfileFrom(fd, candidate))
    return { bytes, file: realpathSync.native(candidate) }
  } catch (error) {
    if (error instanceof SandboxError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw unreadable(candidate, REASONS[code ?? ''] ?? `it cannot be read (${code ?? 'unknown error'})`, error)
  }
}

function readProfileFrom(fd: number, candidate: string): Uint8Array {
  const facts = fstatSync(fd)
  if (!facts.isFile())
    throw unreadable(candidate, facts.isDirectory() ? 'it is a directory' : 'it is not a regular file')
  if (facts.size > LARGEST_PROFILE)
    throw unreadable(candidate, `it has ${facts.size} bytes, expected at most ${LARGEST_PROFILE}`)
  const bytes = readUpTo(fd, LARGEST_PROFILE + 1)
  if (bytes.length > LARGEST_PROFILE) throw unreadable(candidate, `it has more than ${LARGEST_PROFILE} bytes`)
  if (isForeign(facts.uid) && !isShipped(bytes)) throw foreign(candidate, facts.uid)
  return bytes
}

/** `sudo` may keep a HOME whose owner would decide what root's command may do. */
function foreign(file: string, owner: number): SandboxError {
  return new SandboxError('PROFILE_UNREADABLE', `${file}: it belongs to user ${owner}, expected root or yourself.`, {
    hint: 'run llm-do as that user; or with a HOME and XDG_CONFIG_HOME of your own; or chown the file',
  })
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied (EACCES)',
  ELOOP: 'its symbolic links go in a circle (ELOOP)',
  ENAMETOOLONG: 'its name is too long (ENAMETOOLONG)',
  ERR_INVALID_ARG_VALUE: 'its name holds a NUL',
}

function unreadable(file: string, reason: string, cause?: unknown): SandboxError {
  return new SandboxError('PROFILE_UNREADABLE', `${file}: ${reason}.`, { hint: `ls -ld ${file}`, cause })
}

function cycle(chain: readonly { readonly name: string; readonly file: string }[]): SandboxError {
  const names = chain.map(({ name }) => name).join(' -> ')
  return new SandboxError('PROFILE_CYCLE', `profiles extend each other in a circle or without end: ${names}.`, {
    hint: `take "extends" out of one of: ${[...new Set(chain.map(({ file }) => file))].join(', ')}`,
  })
}

function notFound(request: ProfileRequest, extendedBy: string | undefined): SandboxError {
  const by = extendedBy === undefined ? '' : `${extendedBy}: extends: `
  if (isPath(request.name)) {
    return new SandboxError('PROFILE_NOT_FOUND', `${by}no profile file ${path.resolve(request.cwd, request.name)}.`, {
      hint: 'llm-do profiles',
    })
  }
  const names = listProfiles(request).map(({ name }) => name)
  const where = directoriesOf(request).join(' or ')
  return new SandboxError(
    'PROFILE_NOT_FOUND',
    `${by}no profile "${request.name}" in ${where}.${didYouMean(request.name, names)}`,
    { hint: 'llm-do profiles' },
  )
}

export interface ListedProfile {
  readonly name: string
  readonly file: string
  readonly from: 'user' | 'shipped'
}

/** Every profile that has a name, sorted by it; a user's own hides a shipped one of the same name. */
export function listProfiles(directories: ProfileDirectories): readonly ListedProfile[] {
  const user = profilesIn(directories.configDirectory, 'user')
  const shipped = profilesIn(directories.shippedDirectory, 'shipped')
  const visible = shipped.filter(({ name }) => !user.some((own) => own.name === name))
  return [...user, ...visible].sort((a, b) => (a.name < b.name ? -1 : 1))
}

export interface DescribedProfile extends ListedProfile {
  /** Its own description; absent where it has none. */
  readonly description?: string
  readonly extends?: string
  /** Why it cannot be read. */
  readonly problem?: string
}

/** The same with what their files say about themselves. One that cannot be read does not hide the others. */
export async function describeProfiles(directories: ProfileDirectories): Promise<readonly DescribedProfile[]> {
  return await Promise.all(listProfiles(directories).map(describe))
}

async function describe(listed: ListedProfile): Promise<DescribedProfile> {
  try {
    const found = readIfThere(listed.file)
    if (found === undefined) return { ...listed, problem: 'it has just gone' }
    const { layer, extends: base } = await readProfile(found)
    const description: unknown = layer.values.description
    return {
      ...listed,
      ...(typeof description === 'string' ? { description } : {}),
      ...(base === undefined ? {} : { extends: base }),
    }
  } catch (error) {
    if (error instanceof SandboxError) return { ...listed, problem: error.message }
    throw error
  }
}

function profilesIn(directory: string, from: ListedProfile['from']): readonly ListedProfile[] {
  return (directory === '' ? [] : namesIn(directory)).flatMap((file) => {
    const extension = EXTENSIONS.find((candidate) => file.endsWith(candidate) && file.length > candidate.length)
    return extension === undefined
      ? []
      : [{ name: file.slice(0, -extension.length), file: path.join(directory, file), from }]
  })
}
