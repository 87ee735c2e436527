/**
 * The layers of copy-on-write runs on disk, by the native helper that reads and applies them (native/tools/layers.c).
 * Edge: the file system, processes.
 */
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SandboxError } from '../error.ts'
import { checkNativeProgram, hostCall } from '../os/native-programs.ts'
import { isOwnDirectory, readPrivateFile, writePrivateFile } from '../os/private-files.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import { meantBy } from '../text/shortened-id.ts'
import {
  type Change,
  isChange,
  isRepository,
  type LayerZone,
  parseChanges,
  type RawChange,
  shownChange,
  textOf,
  withRemoved,
} from './change.ts'
import { type Choice, choiceBytes, choose } from './choice.ts'
import { protectionOf } from './protected.ts'
import { type LayerRecord, parseRecord } from './record.ts'
import { layerDirectories, placesForStages } from './state-directory.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Where a layer is. */
export interface LayerPlace {
  readonly directory: string
  readonly id: string
  /** Of the caller, which says where else layers are; default: that of this process. */
  readonly env?: Environment
}

export interface Layer extends LayerPlace {
  readonly record: LayerRecord
}

/* ---- finding ---- */

const ID = /^[a-z0-9]{1,64}$/
const own = () => process.getuid?.() ?? -1

/** @param id of the run, or the first characters of one */
export function findLayer(id: string, env: Environment): Layer {
  return readLayer(findPlace(id, env))
}

export function findPlace(id: string, env: Environment): LayerPlace {
  const [place, other] = meantBy(
    id,
    placesOf(env).filter((one) => one.id === id || hasBegun(one)),
  )
  if (place === undefined || other !== undefined) {
    throw new SandboxError(
      'LAYER_NOT_FOUND',
      `${other === undefined ? 'no' : 'more than one'} run ${JSON.stringify(id)} has changes that wait`,
      {
        hint: 'llm-do ps --cow',
      },
    )
  }
  return place
}

/** A layer that was made for a command which has not come, or never will, has no record. */
const hasBegun = ({ directory, id }: LayerPlace): boolean => existsSync(join(directory, id, 'record'))

/** What killed runners have made for commands that never came. @param before made before this time, ms since 1970 */
export function unusedPlaces(env: Environment, before: number): readonly LayerPlace[] {
  return placesOf(env).filter((place) => !hasBegun(place) && madeAt(place) < before)
}

const madeAt = ({ directory, id }: LayerPlace): number =>
  lstatSync(join(directory, id), { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY

/** For verbs that got no ID: the newest one of a directory that holds the present one or lies in it. */
export function lastLayer(env: Environment, { isApplied = false } = {}): Layer {
  const here = process.cwd()
  const isHere = ({ source }: LayerZone) => isWithin(here, source) || isWithin(source, here)
  const found = listLayers(env).find((layer) => layer.record.zones.some(isHere) && (!isApplied || hasApplied(layer)))
  if (found !== undefined) return found
  const what = isApplied ? 'no apply in this directory can be taken back' : 'no changes wait in this directory'
  throw new SandboxError('LAYER_NOT_FOUND', what, { hint: 'llm-do ps --cow' })
}

/** Or has begun to. */
const hasApplied = ({ directory, id }: LayerPlace): boolean =>
  readdirSync(join(directory, id)).some((name) => name.startsWith('apply.'))

/** Newest first; those that cannot be read are left out. */
export function listLayers(env: Environment): readonly Layer[] {
  return placesOf(env)
    .flatMap((place) => {
      const record = recordAt(place)
      return record === undefined ? [] : [{ ...place, record }]
    })
    .sort((a, b) => b.record.sinceMs - a.record.sinceMs)
}

/** Below /tmp another user may have taken the name: then nothing of ours is in there. */
function placesOf(env: Environment): readonly LayerPlace[] {
  return layerDirectories(env, own())
    .filter((directory) => [dirname(directory), directory].every((place) => isOwnDirectory(place, own())))
    .flatMap((directory) => readdirSync(directory).flatMap((id) => (ID.test(id) ? [{ directory, id, env }] : [])))
}

function readLayer(place: LayerPlace): Layer {
  const record = recordAt(place)
  if (record !== undefined) return { ...place, record }
  throw new SandboxError('LAYER_FAILED', `the record of ${place.id} in ${place.directory} is missing or damaged`, {
    hint: `llm-do discard --force ${place.id}`,
  })
}

function recordAt({ directory, id }: LayerPlace): LayerRecord | undefined {
  try {
    return parseRecord(readFileSync(join(directory, id, 'record')))
  } catch {
    return undefined // Gone meanwhile, or never written.
  }
}

const sourcesOf = (place: LayerPlace): readonly string[] => recordAt(place)?.zones.map(({ source }) => source) ?? []

/* ---- the helper ---- */

interface Answer {
  readonly stdout: Uint8Array
  readonly status: number
}

/** Exit statuses of native/tools/layers.c. */
const CONFLICT = 3
const BUSY = 4
const GONE = 5
const REPLACED = 6
const NOT_APPLIED = 7
const ELSEWHERE = 8
const KEPT = 9
const UNSEALED = 10
const UNFINISHED = 11
const DAMAGED = 12

interface Asked extends LayerPlace {
  readonly verb: 'changes' | 'apply' | 'undo' | 'discard' | 'settle' | 'view'
  readonly words?: readonly string[]
  readonly input?: Uint8Array
}

/** The longest list, in bytes: a hundred thousand changes have some 20 MB, and one string cannot have 512. */
const MOST_OUTPUT = 2 ** 28

async function ask({ verb, directory, id, env = process.env, words = [], input }: Asked): Promise<Answer> {
  const { execa } = await import('execa')
  const stages = placesForStages({ env, uid: own(), sources: sourcesOf({ directory, id }) })
  const { file, argv } = hostCall('layers', [verb, directory, id, ...words, ...stages])
  checkNativeProgram(file, process.arch)
  const { exitCode, stdout, stderr, failed, isMaxBuffer } = await execa(file, argv, {
    env: { XDG_RUNTIME_DIR: env['XDG_RUNTIME_DIR'] }, // where the secret is that seals records and journals
    extendEnv: false,
    reject: false,
    encoding: 'buffer',
    stripFinalNewline: false,
    maxBuffer: MOST_OUTPUT,
    input: input ?? new Uint8Array(),
  })
  if (isMaxBuffer) throw tooMany(id)
  if (exitCode === 0 || exitCode === CONFLICT) return { stdout, status: exitCode }
  const why = Buffer.from(stderr).toString('utf8').trim() || (failed ? `${file} ended by itself` : '')
  throw refusalOf(id, exitCode, why)
}

/** An apply was killed. */
class Unfinished extends SandboxError {}

const tooMany = (id: string): SandboxError =>
  new SandboxError('LAYER_FAILED', `${id}: there are too many changes: their list has more than ${MOST_OUTPUT} bytes`, {
    hint: `llm-do discard ${id}`,
  })

function refusalOf(id: string, status: number | undefined, why: string): SandboxError {
  if (status === BUSY)
    return new SandboxError('LAYER_BUSY', `${id} is in use: its run is not over, or another command works on it`, {
      hint: 'llm-do ps',
    })
  if (status === GONE) return new SandboxError('LAYER_NOT_FOUND', `${id}: ${why}`, { hint: 'llm-do ps --cow' })
  if (status === REPLACED)
    return new SandboxError(
      'LAYER_FAILED',
      `${id}: the directory it belongs to was moved, removed or replaced: ${why}`,
      {
        hint: `put it back, or: llm-do discard ${id}`,
      },
    )
  if (status === ELSEWHERE)
    return new SandboxError(
      'LAYER_FAILED',
      `${id}: nothing was applied: ${why} is on another mount than its changes, and nothing of yours on that mount is closed to sandboxes`,
      {
        hint: `llm-do diff ${id} | git apply; for the next run set XDG_STATE_HOME to a directory on that mount, outside of the project`,
      },
    )
  if (status === KEPT)
    return new SandboxError('LAYER_FAILED', `${id}: an apply was taken back: ${why}`, {
      hint: 'look at what is kept, then do it again',
    })
  if (status === UNSEALED)
    return new SandboxError(
      'LAYER_FAILED',
      `${id}: nothing proves what it changes on the host (${why}): its record is of an earlier boot, or was changed, or there was no XDG_RUNTIME_DIR`,
      {
        hint: `look at it first: llm-do diff ${id}; then the same command with --force`,
      },
    )
  if (status === UNFINISHED)
    return new Unfinished('LAYER_FAILED', `${id}: an apply to ${why} was cut off, and is half done`, {
      hint: `llm-do undo ${id} takes it back, llm-do apply ${id} takes it back and applies again`,
    })
  if (status === DAMAGED)
    return new SandboxError('LAYER_FAILED', `${id}: its record is false: ${why} holds the layer itself`, {
      hint: `llm-do discard --force ${id}`,
    })
  if (status === NOT_APPLIED)
    return new SandboxError('LAYER_FAILED', `${id}: no apply can be taken back`, { hint: `llm-do changes ${id}` })
  return new SandboxError('LAYER_FAILED', `${id}: ${why}`, {
    hint: 'nothing is half applied; mend what is named and try again',
  })
}

/* ---- verbs ---- */

export interface LayerChanges {
  readonly raw: readonly RawChange[]
  readonly isProtected: (change: RawChange) => boolean
}

export async function rawChanges(layer: Layer): Promise<LayerChanges> {
  const raw = withRemoved(
    parseChanges((await ask({ ...layer, verb: 'changes', words: ['--closed'] })).stdout),
    seenAtEnd(layer),
  )
  return { raw, isProtected: protectionOf(raw, layer.record.zones) }
}

/**
 * For a verb that writes: half an apply is taken back first, which needs its seal or `force`, and ends here where somebody has written to
 * it since.
 */
async function settledChanges(layer: Layer, force: boolean): Promise<LayerChanges> {
  try {
    return await rawChanges(layer)
  } catch (error) {
    if (!(error instanceof Unfinished)) throw error
    await ask({ ...layer, verb: 'settle', words: force ? ['--force'] : [] })
    return await rawChanges(layer)
  }
}

/** Written at the end of the run: what the host removed later left no trace that a time could be read from. */
const SEEN = 'seen'

/** The first list of changes, when the run has just ended. */
export async function firstChanges(layer: Layer): Promise<readonly Change[]> {
  const { stdout } = await ask({ ...layer, verb: 'changes' })
  const seen = Buffer.concat([readSeen(layer), stdout])
  if (seen.length > MOST_OUTPUT) throw tooMany(layer.id)
  const directory = join(layer.directory, layer.id)
  if (!writePrivateFile({ directory, name: SEEN, uid: own() }, seen)) throw seenFailure(layer, 'cannot be written')
  return shownOf(layer, await rawChanges(layer))
}

const seenAtEnd = (place: LayerPlace): readonly RawChange[] => parseChanges(readSeen(place))

/** Empty where the run was killed before it was written. */
function readSeen(place: LayerPlace): Buffer {
  const file = join(place.directory, place.id, SEEN)
  const bytes = readPrivateFile(file, { uid: own(), most: MOST_OUTPUT })
  if (bytes !== undefined) return bytes
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return Buffer.alloc(0)
  throw seenFailure(place, 'cannot be read')
}

/** Without it a conflict could not be told from a change. */
const seenFailure = ({ directory, id }: LayerPlace, what: string): SandboxError =>
  new SandboxError('LAYER_FAILED', `${id}: ${join(directory, id, SEEN)} ${what}`, {
    hint: `ls -l ${join(directory, id)}; df ${directory}`,
  })

/** Everything that waits to be applied. */
export async function changesOf(layer: Layer): Promise<readonly Change[]> {
  return shownOf(layer, await rawChanges(layer))
}

function shownOf(layer: Layer, { raw, isProtected }: LayerChanges): readonly Change[] {
  const inputs = { zones: layer.record.zones, isProtected }
  return raw.filter(isChange).map((change) => shownChange(change, inputs))
}

export interface ApplyOptions {
  readonly paths?: readonly string[]
  /** Also over what the host has changed since. */
  readonly force?: boolean
  /** Modes as they are in the layer, also where they let others do more than before. */
  readonly modes?: boolean
  /** What programs of the host run or obey is left out although it was named. */
  readonly withoutProtected?: boolean
}

export interface Applied {
  /** Paths of what stands in the way; then nothing was applied. */
  readonly conflicts: readonly string[]
  readonly applied: number
  /** Modes that let others do more in the layer than what was applied (`modes` applies them). */
  readonly narrowed: number
  /** Left out: what programs of the host run or obey, unless it was named. */
  readonly protected: readonly string[]
  /** Left out: devices, FIFOs, sockets. */
  readonly special: readonly string[]
}

const paths = (changes: readonly RawChange[]): readonly string[] => changes.map(({ path }) => textOf(path))

const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

/** All of it or nothing. @throws SandboxError for a layer that cannot be used, and for paths that name no change */
export async function applyLayer(
  layer: Layer,
  { paths: wanted = [], force = false, modes = false, withoutProtected = false }: ApplyOptions = {},
): Promise<Applied> {
  if (!force && layer.record.boot !== bootId())
    throw new SandboxError(
      'LAYER_FAILED',
      `${layer.id} was made before the machine was started: after a power cut it may be incomplete`,
      {
        hint: `look at it, then apply it all the same: llm-do diff ${layer.id}; llm-do apply --force ${layer.id}`,
      },
    )
  const { raw, isProtected } = await settledChanges(layer, force)
  const choice = choose({
    changes: raw,
    zones: layer.record.zones,
    paths: wanted,
    isProtected,
    force,
    withoutProtected,
  })
  if (choice.unknown.length > 0)
    throw new SandboxError('USAGE', `no change of ${layer.id} is at ${choice.unknown.join(', ')}`, {
      hint: `llm-do changes ${layer.id}`,
    })
  if (choice.conflicts.length > 0) return refused(choice, paths(choice.conflicts))
  if (choice.chosen.length === 0) return { ...refused(choice, []), applied: 0 }
  const words = [...(modes ? ['--modes'] : []), ...(force ? ['--force'] : [])]
  // native/tools/layers.c makes no other repository: another run may prepare one after this look.
  const judged = [...choice.chosen, ...raw.filter(isRepository)]
  const { stdout, status } = await ask({ ...layer, verb: 'apply', words, input: choiceBytes(judged, force) })
  if (status === CONFLICT) return refused(choice, conflictsIn(stdout))
  // Another command may have applied some of them since they were listed.
  const [applied, narrowed] = Buffer.from(stdout).toString('latin1').split('\0').map(Number)
  return { ...refused(choice, []), applied: applied ?? 0, narrowed: narrowed ?? 0 }
}

function refused({ protectedOnes, special }: Choice, conflicts: readonly string[]): Applied {
  return { conflicts, applied: 0, narrowed: 0, protected: paths(protectedOnes), special: paths(special) }
}

/** Pairs of zone and path. */
function conflictsIn(stdout: Uint8Array): readonly string[] {
  const words = Buffer.from(stdout).toString('utf8').split('\0')
  return words.filter((_, index) => index % 2 === 1)
}

/** Takes back an apply that was killed. */
export async function settleLayer(layer: Layer): Promise<void> {
  await ask({ ...layer, verb: 'settle' })
}

/** Takes the last apply back, or one that was killed. @returns the first path that has changed since; then nothing was undone */
export async function undoLayer(layer: Layer, force = false): Promise<string | undefined> {
  const { stdout, status } = await ask({ ...layer, verb: 'undo', words: force ? ['--force'] : [] })
  return status === CONFLICT ? (Buffer.from(stdout).toString('utf8').split('\0')[0] ?? '') : undefined
}

export async function discardLayer(place: LayerPlace, force = false): Promise<void> {
  await ask({ ...place, verb: 'discard', words: force ? ['--force'] : [] })
}

/**
 * A directory with `a` and `b`, which hold what is chosen, some change, as the zone and as the layer have it. It is gone when `use` has
 * ended.
 */
export async function withView<T>(
  layer: Layer,
  chosen: readonly RawChange[],
  use: (directory: string) => Promise<T>,
): Promise<T> {
  const view = join(layer.directory, layer.id, 'view')
  try {
    await ask({ ...layer, verb: 'view', input: choiceBytes(chosen, false) })
    return await use(view)
  } finally {
    // Six thousand files take node a second. Another command may have the layer.
    await ask({ ...layer, verb: 'view' }).catch(() => rm(view, { recursive: true, force: true }))
  }
}

/** A layer of a run that has just ended. */
export function layerAt(place: LayerPlace): Layer {
  return readLayer(place)
}
