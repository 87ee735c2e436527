/**
 * Where the layers of copy-on-write runs are kept until somebody decides about them.
 * Edge: file system (lstat, mkdir).
 *
 * Best on the file system of the zone, because apply then renames instead of copying. /var/lib and the state directory outlive a boot,
 * /tmp may not. No zone of the run may show the place: overlay refuses a layer inside its own lower directory, and no command is to see
 * what another one left.
 */
import { lstatSync, statfsSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { SandboxError } from '../error.ts'
import { stateDirectory } from '../host/own-directory.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { isOwnDirectory, makePrivateDirectory } from '../os/private-files.ts'
import type { Plan } from '../plan/plan.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import { UPPERS, type Upper } from '../policy/values.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The last two directories of each are made by us, 0700. */
export function layerDirectories(env: Environment, uid: number): readonly string[] {
  return [...new Set(UPPERS.flatMap((upper) => directoriesFor(upper, env, uid)))]
}

function directoriesFor(upper: Upper, env: Environment, uid: number): readonly string[] {
  const own =
    upper === 'memory'
      ? [...runtimeDirectories(env, uid), `/dev/shm/llm-do-${uid}`]
      : [...[stateDirectory(env, uid) ?? []].flat(), `/var/tmp/llm-do-${uid}`, `/tmp/llm-do-${uid}`]
  return own.map((directory) => posix.join(directory, 'cow'))
}

function runtimeDirectories({ XDG_RUNTIME_DIR: runtime = '' }: Environment, uid: number): readonly string[] {
  if (uid === 0) return ['/run/llm-do']
  return posix.isAbsolute(runtime) ? [posix.join(runtime, 'llm-do')] : []
}

export interface LayerPlace {
  readonly env: Environment
  readonly uid: number
  readonly plan: Pick<Plan, 'zones' | 'layer'>
}

/**
 * The directory for the layer of a run, which is made.
 * @returns undefined for a plan without copy-on-write zones
 * @throws SandboxError ZONE_INVALID where every place is shown by a zone or cannot be had
 */
export function layersDirectoryFor({ env, uid, plan: { zones, layer } }: LayerPlace): string | undefined {
  const layered = zones.find(({ mode }) => mode === 'cow')
  if (layered === undefined || layer === undefined) return undefined
  const apart = directoriesFor(layer.upper, env, uid).filter(
    (place) => zones.every(({ source }) => !isWithin(place, source)) && (layer.upper !== 'memory' || isInMemory(place)),
  )
  const sorted = [...apart].sort((a, b) => Number(isOn(b, layered.dev)) - Number(isOn(a, layered.dev)))
  const found = sorted.find((place) => isMade(place, uid))
  if (found !== undefined) return found
  throw new SandboxError(
    'ZONE_INVALID',
    `there is no place for the changes to ${layered.source}: a zone shows it, it is not yours, or it is not in memory`,
    {
      hint: `ls -ld ${directoriesFor(layer.upper, env, uid).map(posix.dirname).join(' ')}`,
    },
  )
}

/**
 * Makes it before a plan is kept: one that saw it missing would be stale at once.
 * @returns whether it was not there
 * @throws SandboxError as layersDirectoryFor
 */
export function isLayersDirectoryNew(place: LayerPlace): boolean {
  if (place.plan.layer === undefined) return false
  const before = layerDirectories(place.env, place.uid).filter(isThere)
  const found = layersDirectoryFor(place)
  return found !== undefined && !before.includes(found)
}

/**
 * Where an apply may prepare what goes into directories on other mounts than their layer (native/tools/layer-stage.h): all that lies on a
 * device of theirs, or would when it is made.
 */
export function placesForStages({
  env,
  uid,
  sources,
}: {
  readonly env: Environment
  readonly uid: number
  readonly sources: readonly string[]
}): readonly string[] {
  const devices = sources.flatMap((source) => (isThere(source) ? [statSync(source).dev] : []))
  return layerDirectories(env, uid).filter((place) => devices.some((device) => isOn(place, device)))
}

/** Whether a directory lies, or would lie, on this device. */
const isOn = (directory: string, device: number): boolean => statSync(lastMade(directory)).dev === device

/** TMPFS_MAGIC of linux/magic.h. */
const TMPFS = 0x01021994
const isInMemory = (directory: string): boolean => statfsSync(lastMade(directory)).type === TMPFS

/** The directory, or the nearest one above it that is there. */
function lastMade(directory: string): string {
  return isThere(directory) || directory === '/' ? directory : lastMade(posix.dirname(directory))
}

/** False also for what cannot be looked at: another user's private directory may have the name, or a link that leads nowhere. */
function isThere(directory: string): boolean {
  try {
    return statSync(directory, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

function isMade(directory: string, uid: number): boolean {
  const own = posix.dirname(directory)
  try {
    if (lstatSync(posix.dirname(own), { throwIfNoEntry: false }) === undefined)
      makeDirectories(posix.dirname(own), 0o700)
    makePrivateDirectory(own)
    makePrivateDirectory(directory)
    return isOwnDirectory(own, uid) && isOwnDirectory(directory, uid)
  } catch {
    return false // Read-only, full, or in the way of a file: the next place is tried.
  }
}
