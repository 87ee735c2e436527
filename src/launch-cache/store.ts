/**
 * Leaves the launch file of a plan where native/client/main.c finds it. A convenience: what cannot be stored is planned again.
 * Edge: the cache directory, identities of files.
 */
import { rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { KEY_ANY_DIRECTORY } from '../contract.ts'
import { identitiesOf } from '../host/paths.ts'
import { namesIn, orElse } from '../os/look.ts'
import { dropOldest, isOwnDirectory, makePrivateDirectory, writePrivateFile } from '../os/private-files.ts'
import { nameIn, type Places } from '../plan/hash.ts'
import type { Words } from './any-directory.ts'
import { type Invocation, type KeyInputs, keyName, keyWords } from './cache-key.ts'
import { type CachedInputs, poolDigest, writeCachedFile } from './cached-launch.ts'
import { observeLasting, observeProcess } from './guards.ts'
import { type CacheOwner, launchPlaces } from './places.ts'
import { namedPlaces, slotted } from './slots.ts'

/** Files kept; the oldest go. One a directory and set of options. */
const MOST_FILES = 512
/** native/lib/launch-file.h */
const LARGEST_FILE = 4 * 1024 ** 2
/**
 * A file that was changed this short a time before planning began may have been changed while it was read, within one tick
 * of the file system's clock; milliseconds.
 */
const SETTLED_MS = 50

/** Makes the directory before planning observes it: a plan that saw it missing would be stale as soon as it is stored. */
export function makeLaunchCache({ env, uid }: CacheOwner): void {
  launchPlaces({ env, uid }).find((place) => isMade(place, uid))
}

/** @returns false below a home that is not there, is read-only or belongs to another user */
function isMade(directory: string, uid: number): boolean {
  const cache = dirname(directory)
  try {
    for (const made of [dirname(cache), cache, directory]) makePrivateDirectory(made)
  } catch {
    return false
  }
  return isOwnDirectory(directory, uid)
}

export interface StoreInputs extends Omit<CachedInputs, 'key' | 'contents' | 'paths' | 'pool' | 'conditions' | 'seal'> {
  readonly invocation: Invocation
  readonly caller: Pick<KeyInputs, 'version' | 'root' | 'cwd' | 'isAtTerminal' | 'hasTerminal' | 'env'>
  /** Path -> identity as planning saw it; undefined = it could not be read, and nothing is stored. */
  readonly paths: Readonly<Record<string, string | undefined>>
  /** Files whose content planning read. */
  readonly read: readonly string[]
  /** Paths that were only inspected for being absent. */
  readonly absent: readonly string[]
  readonly places: Places
  readonly planHash: string
}

/** A launch file with everything that guards it. */
export interface GuardedLaunch {
  readonly name: string
  readonly bytes: Uint8Array
  /** Its seal; empty without one. */
  readonly check: string
  /** Of the pool that may serve it. */
  readonly pool: string
}

/** @returns undefined when something that the plan depends on cannot be guarded */
export function wordsOf(inputs: StoreInputs): Words | undefined {
  // The current file, with which the client will compare: nothing, or a path that this user may not inspect.
  const paths = known({ ...identitiesOf(inputs.absent), ...inputs.paths })
  // Node shows bytes that are not UTF-8 as U+FFFD; the client compares bytes.
  if (paths === undefined || JSON.stringify([inputs.caller, inputs.invocation]).includes('\ufffd')) return undefined
  const { variables, unset, isPoolable, endsWithParent, judgement, ending, records, places, planHash } = inputs
  const seen = { ...inputs.caller, ...observeLasting(), ...observeProcess() }
  const key = keyWords({ ...seen, invocation: inputs.invocation })
  const { options } = namedPlaces(inputs.invocation.options)
  const keyForAny = keyWords({ ...seen, cwd: KEY_ANY_DIRECTORY, invocation: { ...inputs.invocation, options } })
  const pool = nameIn(places, poolDigest({ key, records: slotted(records, { places, hash: planHash }) }))
  return {
    key,
    keyForAny,
    paths,
    contents: inputs.read,
    variables,
    unset,
    isPoolable,
    pool,
    endsWithParent,
    judgement,
    ending,
    records,
  }
}

export interface Sealing {
  /** When planning began, milliseconds since 1970. */
  readonly begunMs: number
  readonly seal?: ((bytes: Uint8Array) => string) | undefined
}

/** @returns undefined when a file was changed while it was read, or there are too many words */
export function guardLaunch({ contents, ...words }: Words, { begunMs, seal }: Sealing): GuardedLaunch | undefined {
  const identities = contentsOf(contents, begunMs)
  if (identities === undefined) return undefined
  const { bytes, check } = writeCachedFile({ ...words, contents: identities, seal })
  return bytes.length > LARGEST_FILE ? undefined : { name: keyName(words.key), bytes, check, pool: words.pool }
}

/** @returns whether it was stored */
export function storeLaunch({ env, uid }: CacheOwner, { name, bytes }: GuardedLaunch): boolean {
  const directory = launchPlaces({ env, uid }).find((place) => isOwnDirectory(place, uid))
  const isStored = directory !== undefined && writePrivateFile({ directory, name, uid }, bytes)
  if (isStored) dropOldest(directory, MOST_FILES)
  return isStored
}

function known(paths: StoreInputs['paths']): Readonly<Record<string, string>> | undefined {
  return Object.values(paths).includes(undefined) ? undefined : (paths as Readonly<Record<string, string>>)
}

function contentsOf(read: readonly string[], begunMs: number): Readonly<Record<string, string>> | undefined {
  const seen = read.map((path) => [path, contentIdentity(path, begunMs)] as const)
  return seen.some(([, identity]) => identity === undefined)
    ? undefined
    : (Object.fromEntries(seen) as Readonly<Record<string, string>>)
}

/** The same words as identity_of_content in native/lib/launch-cache.c. */
function contentIdentity(path: string, begunMs: number): string | undefined {
  const seen = orElse(undefined, () => statSync(path, { bigint: true }))
  if (seen === undefined || Number(seen.ctimeMs) > begunMs - SETTLED_MS) return undefined
  const { dev, ino, mode, uid, size, mtimeNs, ctimeNs } = seen
  return [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(':')
}

/** `llm-do cache clear`. @returns how many files there were */
export function clearLaunches({ env, uid }: CacheOwner): number {
  const files = launchPlaces({ env, uid }).flatMap((place) => namesIn(place).map((name) => join(place, name)))
  for (const file of files) rmSync(file, { force: true })
  return files.length
}
