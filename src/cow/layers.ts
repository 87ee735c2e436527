/**
 * The layers of copy-on-write runs on disk, by the native helper that reads and applies them (native/tools/layers.c).
 * Edge: the file system, processes.
 */
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ErrorCode, SandboxError } from '../error.ts'
import { exactCwd } from '../os/exact-cwd.ts'
import { checkNativeProgram, hostCall } from '../os/native-programs.ts'
import { isOwnDirectory } from '../os/private-files.ts'
import { bootId } from '../os/process-identity.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import { meantBy } from '../text/shortened-id.ts'
import { type Change, type LayerZone, parseChanges, type RawChange, shownChange } from './change.ts'
import { type LayerRecord, parseRecord } from './record.ts'
import { layerDirectories, placesForStages } from './state-directory.ts'

type Environment = Readonly<Record<string, string | undefined>>

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
  return layerAt(findPlace(id, env))
}

const placesBy = (id: string, env: Environment): readonly LayerPlace[] =>
  meantBy(
    id,
    placesOf(env).filter((one) => one.id === id || hasBegun(one)),
  )

export const namesLayer = (id: string, env: Environment): boolean => placesBy(id, env).length > 0

export function findPlace(id: string, env: Environment): LayerPlace {
  const [place, other] = placesBy(id, env)
  if (place === undefined || other !== undefined) {
    throw new SandboxError(
      'LAYER_NOT_FOUND',
      `${other === undefined ? 'no' : 'more than one'} run ${JSON.stringify(id)} has left changes`,
      {
        hint: 'llm-do ps --cow',
      },
    )
  }
  return place
}

/** A layer that was made for a command which has not come, or never will, has no record. */
const hasBegun = ({ directory, id }: LayerPlace): boolean => existsSync(join(directory, id, 'record'))

/** Layers that killed runners have made for commands that never came. @param before made before this time, ms since 1970 */
export function unusedPlaces(env: Environment, before: number): readonly LayerPlace[] {
  return placesOf(env).filter((place) => !hasBegun(place) && madeAt(place) < before)
}

const madeAt = ({ directory, id }: LayerPlace): number =>
  lstatSync(join(directory, id), { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY

/** The newest one of a directory that holds the present one or lies in it. */
export function newestHere(env: Environment, { isApplied = false } = {}): Layer | undefined {
  const here = exactCwd()
  const isHere = ({ source }: LayerZone) => isWithin(here, source) || isWithin(source, here)
  return listLayers(env).find((layer) => layer.record.zones.some(isHere) && (!isApplied || hasApplied(layer)))
}

/** For verbs that got no ID. */
export function lastLayer(env: Environment, { isApplied = false } = {}): Layer {
  const found = newestHere(env, { isApplied })
  if (found !== undefined) return found
  const what = isApplied ? 'no apply in this directory can be taken back' : 'no changes wait in this directory'
  throw new SandboxError('LAYER_NOT_FOUND', what, { hint: 'llm-do ps --cow' })
}

/** Or has begun to. */
export const hasApplied = ({ directory, id }: LayerPlace): boolean =>
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

/** Below /tmp another user may have taken the name: then none of our layers is in there. */
function placesOf(env: Environment): readonly LayerPlace[] {
  return layerDirectories(env, own())
    .filter((directory) => [dirname(directory), directory].every((place) => isOwnDirectory(place, own())))
    .flatMap((directory) => readdirSync(directory).flatMap((id) => (ID.test(id) ? [{ directory, id, env }] : [])))
}

export function layerAt(place: LayerPlace): Layer {
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

/** Exit status of native/tools/layers.c: nothing was done, because the host has changed meanwhile. */
const CONFLICT = 3

type Refusal = readonly [code: ErrorCode, message: string, hint: string]

/** Its other exit statuses; `why` is what it prints. */
const REFUSALS: Readonly<Record<number, (id: string, why: string) => Refusal>> = {
  4: (id) => ['LAYER_BUSY', `${id} is in use: its run is not over, or another command works on it`, 'llm-do ps'],
  5: (id, why) => ['LAYER_NOT_FOUND', `${id}: ${why}`, 'llm-do ps --cow'],
  6: (id, why) => [
    'LAYER_FAILED',
    `${id}: the directory it belongs to was moved, removed or replaced: ${why}`,
    `put it back, or: llm-do discard ${id}`,
  ],
  7: (id) => ['LAYER_FAILED', `${id}: no apply can be taken back`, `llm-do changes ${id}`],
  8: (id, why) => [
    'LAYER_FAILED',
    `${id}: nothing was applied: ${why} is on another mount than its changes, and you have no directory on that mount that sandboxes cannot write`,
    `llm-do diff ${id} | git apply; for the next run set XDG_STATE_HOME to a directory on that mount, outside of the project`,
  ],
  9: (id, why) => ['LAYER_FAILED', `${id}: an apply was taken back: ${why}`, 'look at what is kept, then do it again'],
  10: (id, why) => [
    'LAYER_FAILED',
    `${id}: nothing proves what it changes on the host (${why}): its record is of an earlier boot, or was changed, or there was no XDG_RUNTIME_DIR`,
    `look at it first: llm-do diff ${id}; then the same command with --force`,
  ],
  11: (id, why) => [
    'LAYER_FAILED',
    `${id}: an apply to ${why} was cut off, and is half done`,
    `llm-do undo ${id} takes it back, llm-do apply ${id} takes it back and applies again`,
  ],
  12: (id, why) => [
    'LAYER_FAILED',
    `${id}: its record is false: ${why} holds the layer itself`,
    `llm-do discard --force ${id}`,
  ],
  13: (id, why) => ['USAGE', `no change of ${id} is at ${why}`, `llm-do changes ${id}`],
}

const otherwise = (id: string, why: string): Refusal => [
  'LAYER_FAILED',
  `${id}: ${why}`,
  'nothing is half applied; mend what is named and try again',
]

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

const tooMany = (id: string): SandboxError =>
  new SandboxError('LAYER_FAILED', `${id}: there are too many changes: their list has more than ${MOST_OUTPUT} bytes`, {
    hint: `llm-do discard ${id}`,
  })

function refusalOf(id: string, status: number | undefined, why: string): SandboxError {
  const [code, message, hint] = (REFUSALS[status ?? 0] ?? otherwise)(id, why)
  return new SandboxError(code, message, { hint })
}

/** All of them, and of the record what they belong to. */
async function rawChanges(layer: Layer, words: readonly string[] = []): Promise<readonly RawChange[]> {
  return parseChanges((await ask({ ...layer, verb: 'changes', words })).stdout)
}

/**
 * The changes at these paths, protected or not, with the new directories around them, and the paths that are never applied.
 * @throws SandboxError USAGE for a path that names no change
 */
export async function changesAt(layer: Layer, wanted: readonly string[]): Promise<readonly RawChange[]> {
  const { stdout } = await ask({ ...layer, verb: 'changes', words: ['--choice'], input: pathBytes(wanted) })
  return parseChanges(stdout)
}

const pathBytes = (wanted: readonly string[]): Uint8Array => Buffer.from(wanted.map((path) => `${path}\0`).join(''))

/** The first list of changes, when the run has just ended: it is noted what the host had then (native/tools/layer-notes.h). */
export const firstChanges = async (layer: Layer): Promise<readonly Change[]> =>
  shownOf(layer, await rawChanges(layer, ['--ended']))

/** Everything that waits to be applied. */
export const changesOf = async (layer: Layer): Promise<readonly Change[]> => shownOf(layer, await rawChanges(layer))

const shownOf = ({ record: { zones } }: Layer, raw: readonly RawChange[]): readonly Change[] =>
  raw.map((change) => shownChange(change, zones))

export interface ApplyOptions {
  readonly paths?: readonly string[]
  /** Also over what the host has changed since. */
  readonly force?: boolean
  /** Modes as they are in the layer, also where they let others do more than before. */
  readonly modes?: boolean
  /** Leaves out files that programs of the host run or obey, even if they were named. */
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

/** All of it or nothing. @throws SandboxError for a layer that cannot be used, and for paths that name no change */
export async function applyLayer(
  layer: Layer,
  { paths = [], force = false, modes = false, withoutProtected = false }: ApplyOptions = {},
): Promise<Applied> {
  if (!force && layer.record.boot !== bootId())
    throw new SandboxError(
      'LAYER_FAILED',
      `${layer.id} was made before the machine was started: after a power cut it may be incomplete`,
      {
        hint: `look at it, then apply it all the same: llm-do diff ${layer.id}; llm-do apply --force ${layer.id}`,
      },
    )
  const words = [
    ...(modes ? ['--modes'] : []),
    ...(force ? ['--force'] : []),
    ...(withoutProtected ? ['--careful'] : []),
  ]
  const { stdout } = await ask({ ...layer, verb: 'apply', words, input: pathBytes(paths) })
  return parseApplied(stdout)
}

/** Pairs of a word and what it is about. */
function parseApplied(stdout: Uint8Array): Applied {
  const words = Buffer.from(stdout).toString('utf8').split('\0')
  const about = (wanted: string) => words.filter((_, at) => at % 2 === 1 && words[at - 1] === wanted)
  return {
    conflicts: about('conflict'),
    applied: Number(about('applied')[0] ?? 0),
    narrowed: Number(about('narrowed')[0] ?? 0),
    protected: about('protected'),
    special: about('special'),
  }
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
    const input = Buffer.from(chosen.map(({ zone, path }) => `${zone}\0${path}\0`).join(''), 'latin1')
    await ask({ ...layer, verb: 'view', input })
    return await use(view)
  } finally {
    // Six thousand files take node a second. Another command may have the layer.
    await ask({ ...layer, verb: 'view' }).catch(() => rm(view, { recursive: true, force: true }))
  }
}
