/**
 * Leaves the launch file of a plan where native/front.c finds it. A convenience: what cannot be stored is planned again.
 * Edge: the cache directory, identities of files, the clock, randomness (temporary names).
 */
import { randomUUID } from 'node:crypto'
import { lstat, readdir, readFile, readlink, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeDirectory } from '../host/cache.ts'
import { observePaths } from '../host/paths.ts'
import { type CachedInputs, poolName, writeCachedFile } from './file.ts'
import { type Invocation, type KeyInputs, keyName, keyWords } from './key.ts'

/** Files kept; the oldest go. One a directory and set of options. */
const MOST_FILES = 512
/** native/launchfile.h */
const LARGEST_FILE = 4 * 1024 ** 2
/**
 * A file that was changed this short a time before planning began may have been changed while it was read, within one tick
 * of the file system's clock; milliseconds.
 */
const SETTLED_MS = 50

/** `launch` below the cache directory; front computes the same. */
export const launchCacheDirectory = (cache: string): string => join(cache, 'launch')

/** Makes the directory before anybody looks: a plan that saw it missing would be stale as soon as it is stored. */
export async function makeLaunchCache(directory: string): Promise<void> {
  const cache = dirname(directory)
  try {
    for (const place of [dirname(cache), cache, directory]) await makeDirectory(place)
  } catch {
    // A read-only home: nothing will be stored there, and storing says so.
  }
}

export interface StoreInputs extends Omit<CachedInputs, 'key' | 'contents' | 'places'> {
  readonly invocation: Invocation
  readonly caller: Pick<KeyInputs, 'version' | 'root' | 'cwd' | 'env'>
  /** Path -> identity as planning saw it; undefined = it could not be told, and nothing is stored. */
  readonly places: Readonly<Record<string, string | undefined>>
  /** Files whose content planning read. */
  readonly read: readonly string[]
  /** Places that were only looked at for being empty. */
  readonly absent: readonly string[]
  /** When planning began, milliseconds since 1970. */
  readonly begunMs: number
}

/** A launch file with everything that guards it. */
export interface GuardedLaunch {
  readonly name: string
  readonly bytes: Uint8Array
  /** Of the pool that may serve it. */
  readonly pool: string
}

/** @returns undefined when something that the plan depends on cannot be guarded */
export async function guardLaunch(inputs: StoreInputs): Promise<GuardedLaunch | undefined> {
  const places = known({ ...(await identitiesOf(inputs.absent)), ...inputs.places })
  const contents = await contentsOf(inputs)
  if (places === undefined || contents === undefined || hasOddNames(inputs)) return undefined
  const key = keyWords({ ...inputs.caller, ...(await observeProcess()), invocation: inputs.invocation })
  const { variables, isPoolable, answer, records } = inputs
  const bytes = writeCachedFile({ key, places, contents, variables, isPoolable, answer, records })
  return bytes.length > LARGEST_FILE ? undefined : { name: keyName(key), bytes, pool: poolName({ key, records }) }
}

/** @returns whether it was stored */
export async function storeLaunch(directory: string, { name, bytes }: GuardedLaunch): Promise<boolean> {
  return write({ directory, name, bytes })
}

/** What is there now is what front will compare with: nothing, or a place that this user may not look into. */
async function identitiesOf(paths: readonly string[]): Promise<StoreInputs['places']> {
  const facts = await observePaths(paths)
  return Object.fromEntries(paths.map((path) => [path, facts[path]?.identity]))
}

function known(places: StoreInputs['places']): Readonly<Record<string, string>> | undefined {
  return Object.values(places).includes(undefined) ? undefined : (places as Readonly<Record<string, string>>)
}

/** Node shows bytes that are not UTF-8 as U+FFFD; front compares bytes. */
function hasOddNames({ caller, invocation }: StoreInputs): boolean {
  return JSON.stringify([caller, invocation]).includes('\ufffd')
}

async function contentsOf({ read, begunMs }: StoreInputs): Promise<Readonly<Record<string, string>> | undefined> {
  const seen = await Promise.all(read.map(async (path) => [path, await contentIdentity(path, begunMs)] as const))
  return seen.some(([, identity]) => identity === undefined)
    ? undefined
    : (Object.fromEntries(seen) as Readonly<Record<string, string>>)
}

/** The same words as identity_of_content in native/cached.c. */
async function contentIdentity(path: string, begunMs: number): Promise<string | undefined> {
  const seen = await stat(path, { bigint: true }).catch(() => undefined)
  if (seen === undefined || Number(seen.ctimeMs) > begunMs - SETTLED_MS) return undefined
  const { dev, ino, mode, uid, size, mtimeNs, ctimeNs } = seen
  return [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(':')
}

type ProcessFacts = Pick<
  KeyInputs,
  'uid' | 'gid' | 'bootId' | 'cgroup' | 'capabilities' | 'userNamespace' | 'mountNamespace'
>

async function observeProcess(): Promise<ProcessFacts> {
  const [bootId, cgroup, capabilities, userNamespace, mountNamespace] = await Promise.all([
    lineOf('/proc/sys/kernel/random/boot_id', ''),
    lineOf('/proc/self/cgroup', '0::'),
    lineOf('/proc/self/status', 'CapEff:'),
    readlink('/proc/self/ns/user').catch(() => ''),
    readlink('/proc/self/ns/mnt').catch(() => ''),
  ])
  return {
    uid: process.geteuid?.() ?? -1,
    gid: process.getegid?.() ?? -1,
    bootId,
    cgroup,
    capabilities,
    userNamespace,
    mountNamespace,
  }
}

async function lineOf(file: string, start: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').find((line) => line.startsWith(start)) ?? ''
}

interface NewFile {
  readonly directory: string
  readonly name: string
  readonly bytes: Uint8Array
}

async function write({ directory, name, bytes }: NewFile): Promise<boolean> {
  const temporary = join(directory, `.${randomUUID()}`)
  try {
    if (!(await isPrivate(directory))) return false
    await writeFile(temporary, bytes, { flag: 'wx', mode: 0o600 })
    await rename(temporary, join(directory, name))
    await dropOldest(directory)
    return true
  } catch {
    // A read-only home or a full disk: the next run plans again. What was begun must not stay.
    await rm(temporary, { force: true }).catch(() => undefined)
    return false
  }
}

async function isPrivate(directory: string): Promise<boolean> {
  const seen = await lstat(directory)
  return seen.isDirectory() && seen.uid === process.geteuid?.() && (seen.mode & 0o077) === 0
}

async function dropOldest(directory: string): Promise<void> {
  const names = await readdir(directory)
  if (names.length <= MOST_FILES) return
  const dated = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(directory, name))).mtimeMs })),
  )
  const old = dated.sort((a, b) => b.at - a.at).slice(MOST_FILES)
  await Promise.all(old.map(({ name }) => rm(join(directory, name), { force: true })))
}

/** `llm-do cache clear`. @returns how many files there were */
export async function clearLaunches(directory: string): Promise<number> {
  const names = await readdir(directory).catch(() => [])
  await Promise.all(names.map((name) => rm(join(directory, name), { force: true })))
  return names.length
}
