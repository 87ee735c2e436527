/**
 * A plan that serves every directory. The caller's directory is a slot in its words, and so are those that the command line names as
 * sources of zones; native/lib/any-directory.c fills them in. With them are the conditions under which the plan of directories is this one.
 *
 * That a plan depends on nothing else of its directories is not believed but tried: the same call is planned for other places, about which
 * nothing is known, and both plans must be the same words. Pure.
 */
import { posix } from 'node:path'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import { KEY_CALLER } from '../contract.ts'
import { type Place, type Places, planDigest } from '../plan/hash.ts'
import type { PathFacts } from '../plan/mounts.ts'
import { endsOf } from '../plan/names.ts'
import type { BackendTraits } from '../plan/offers.ts'
import { zonesWithOpenSockets } from '../plan/open-sockets.ts'
import type { Plan } from '../plan/plan.ts'
import { protectedSystems, protectedWords } from '../plan/protected-paths.ts'
import type { Request } from '../plan/request.ts'
import { environmentFiles } from '../plan/virtual-environment.ts'
import { isBelow, isWithin, SHARED_DIRECTORIES, SHARED_TREES, searchPath } from '../plan/well-known-paths.ts'
import type { Policy } from '../policy/policy.ts'
import { type CachedInputs, poolDigest, poolName } from './cached-launch.ts'
import { POOL_SLOT, SLOT_MARK, slotted } from './slots.ts'

/** Directories that no host has, for the plan that a plan is held against. A layer goes to the file system of its zone, so that one is the same. */
export function elsewhere({ layer }: Plan, places: Places): Places {
  const other = ({ dev }: Place, at: number): Place => ({
    path: `/.llm-do-any-directory-${at}`,
    dev: layer === undefined ? 4_294_967_291 - at : dev,
    ino: 4_294_967_279 - at,
    uid: 4_294_967_231 - at,
    gid: 4_294_967_197 - at,
  })
  const [caller, ...named] = places
  return [other(caller, 0), ...named.map((place, at) => other(place, at + 1))]
}

/** The content of a launch file before it is sealed. */
export type Words = Omit<CachedInputs, 'seal' | 'contents'> & {
  readonly contents: readonly string[]
  /** The key of a plan for any directory. */
  readonly keyForAny: readonly string[]
}

export interface PlannedWords {
  readonly words: Words
  readonly plan: Plan
  readonly places: Places
}

/** Everything that a directory can be or hold so that its plan is another one. */
export interface Surroundings {
  readonly plan: Plan
  readonly policy: Policy
  readonly request: Request
  readonly paths: PathFacts
  readonly traits: BackendTraits
}

/** A launch file for any directory, or why there is none. */
export type AnyDirectory = { readonly words: Words } | { readonly dependsOn: string }

/** A path in one of the directories that planning looked at: then no other directory has this plan. */
export function pathInside({ words, places }: Omit<PlannedWords, 'plan'>): string | undefined {
  const [{ path: directory }] = places
  // The client looks for these itself.
  const known = [posix.join(directory, '.git'), ...environmentFiles(directory)]
  return [...Object.keys(words.paths), ...words.contents].find(
    (path) => !known.includes(path) && places.some((place) => isBelow(path, place.path)),
  )
}

/**
 * @param own the plan of the caller's directory, which has no path inside
 * @param other that of the same call from `elsewhere`
 */
export function forAnyDirectory(own: PlannedWords, other: PlannedWords, around: Surroundings): AnyDirectory {
  const { places } = own
  if (looksLikeSlots(own.words)) return { dependsOn: 'a word of the plan looks like a slot' }
  const [mine, theirs] = [withSlots(own), withSlots(other)]
  if (JSON.stringify(recordsOf(mine)) !== JSON.stringify(recordsOf(theirs)))
    return { dependsOn: 'the plan of another directory is another one' }
  if (places.some(({ path }) => holds(wordsIn(mine), path)))
    return { dependsOn: 'the plan has the path of the directory in a text' }
  const paths = commonPaths(own, other)
  if (paths === undefined) return { dependsOn: 'other paths were looked at than for another directory' }
  const conditions = conditionsOf(around, places)
  const digest = poolDigest(mine)
  const slots: LaunchRecord = ['slots', places.length, planDigest(own.plan, places), digest]
  const pool = servesEveryDirectory(mine) ? poolName(digest) : mine.pool
  return { words: { ...mine, pool, key: mine.keyForAny, paths, conditions: [slots, ...conditions] } }
}

const isSlot = (word: unknown): boolean => typeof word === 'string' && word.startsWith(SLOT_MARK)
const isBelowTarget = (path: unknown, target: string | number): boolean =>
  typeof path === 'string' && isBelow(path, String(target))

/**
 * Whether a sandbox can be built before its directories are known, and get them with its command: they are zones without an overlay, nothing
 * is mounted in them, and no other place of the sandbox depends on them or has to be guarded. Native code builds it (native/sandbox/root-fs.h).
 */
function servesEveryDirectory({ key, records }: Words): boolean {
  const zones = records.filter(([verb]) => verb === 'zone')
  const targets = zones.filter(([, source]) => isSlot(source)).map(([, , target = '']) => target)
  return (
    !isWeakRoot(key) &&
    records.some(([verb, engine]) => verb === 'engine' && engine === 'unshare') &&
    zones.every(([, source, , mode, , , sockets]) =>
      isSlot(source) ? (mode === 'ro' || mode === 'rw') && sockets === 'closed' : mode === 'ro',
    ) &&
    records.every(([verb, source]) => verb !== 'hide' || isSlot(source)) &&
    records.every((record) => hasSlotsInPlace(record)) &&
    records.every(([, first, second]) => !targets.some((at) => isBelowTarget(first, at) || isBelowTarget(second, at)))
  )
}

/** Of these the first word is the directory of a zone, of `zone` two more are its numbers. */
const OF_ZONES = new Set(['zone', 'protect', 'git', 'hide', 'caller'])

function hasSlotsInPlace([verb, first, ...rest]: LaunchRecord): boolean {
  const others = verb === 'zone' ? [...rest.slice(0, 2), ...rest.slice(4)] : rest
  const words: readonly (string | number | undefined)[] = OF_ZONES.has(verb) ? others : [first, ...others]
  return !words.some((word) => typeof word === 'string' && word.includes(SLOT_MARK))
}

const CAP_SYS_ADMIN = 21n

/** Root that cannot map ids runs as the owner of its zones (native/sandbox/root-fs.c). */
function isWeakRoot(key: readonly string[]): boolean {
  const [uid, capabilities = ''] = [key[KEY_CALLER.indexOf('uid')], key[KEY_CALLER.indexOf('capabilities')]]
  const digits = /[0-9a-f]+$/.exec(capabilities)?.[0] ?? '0'
  return uid === '0' && ((BigInt(`0x${digits}`) >> CAP_SYS_ADMIN) & 1n) === 0n
}

/** All but what guards a plan against changes on disk. */
const recordsOf = ({ keyForAny, variables, unset, isPoolable, endsWithParent, judgement, ending, records }: Words) => ({
  keyForAny,
  variables,
  unset,
  isPoolable,
  endsWithParent,
  judgement,
  ending,
  records,
})

function withSlots({ words, plan, places }: PlannedWords): Words {
  const fillings = { places, hash: plan.hash }
  return {
    ...words,
    pool: POOL_SLOT,
    variables: slotted(words.variables, fillings),
    judgement: slotted(words.judgement, fillings),
    ending: slotted(words.ending, fillings),
    records: slotted(words.records, fillings),
  }
}

const holds = (words: readonly (string | number)[], text: string): boolean =>
  words.some((word) => typeof word === 'string' && word.includes(text))

const wordsIn = ({ variables, judgement, ending, records }: Words): readonly (string | number)[] =>
  [variables, judgement, ending, records].flat(2)

function looksLikeSlots(words: Words): boolean {
  const { key, paths, contents, unset } = words
  return holds([...key, ...Object.keys(paths), ...contents, ...unset, ...wordsIn(words)], SLOT_MARK)
}

/**
 * The paths that planning looked at for both directories.
 * @returns undefined where anything else was looked at than that, the directory, what lies in it, and what it lies in
 */
function commonPaths(own: PlannedWords, other: PlannedWords): Words['paths'] | undefined {
  const isItsOwn = (path: string, { places }: PlannedWords): boolean =>
    places.some((place) => isWithin(path, place.path) || isWithin(place.path, path))
  const lacks = (one: PlannedWords, theirs: PlannedWords): boolean =>
    Object.keys(one.words.paths).some((path) => !(path in theirs.words.paths) && !isItsOwn(path, one))
  if (lacks(own, other) || lacks(other, own)) return undefined
  return Object.fromEntries(Object.entries(own.words.paths).filter(([path]) => path in other.words.paths))
}

/* ---- conditions ---- */

function conditionsOf(around: Surroundings, places: Places): readonly LaunchRecord[] {
  const { plan, request, traits } = around
  const searched = zonesWithOpenSockets(plan, traits).map(({ source }) => source)
  const onDevice = plan.layer === undefined ? [] : places
  return [
    ...closedTrees(around).map((path): LaunchRecord => ['apart', 'within', path]),
    ...[...new Set([...SHARED_DIRECTORIES, ...request.homes])].map((path): LaunchRecord => ['apart', 'above', path]),
    ...firstSteps(around.policy).map((path): LaunchRecord => ['step', path]),
    ...onDevice.map(({ dev }, at): LaunchRecord => ['device', at, dev]),
    ...places.flatMap(({ path }, at): LaunchRecord[] => (searched.includes(path) ? [['quiet', at]] : [])),
  ]
}

/** Trees that no directory may lie in: they decide the next run, every run uses them, or they are never shown. */
function closedTrees({ policy, request, paths }: Surroundings): readonly string[] {
  const entries = searchPath(request.path)
  return [
    ...new Set([
      ...SHARED_TREES,
      ...entries,
      ...entries.flatMap((entry) => paths[entry]?.real ?? []),
      ...endsOf(policy.protectFiles, paths),
      ...request.secretDirectories.flatMap((directory) => [directory, paths[directory]?.real ?? directory]),
    ]),
  ]
}

/** A directory whose path ends like the beginning of a protected name is a part of what has that name. */
function firstSteps(policy: Policy): readonly string[] {
  const { zone, home, git } = protectedWords(policy)
  const systems =
    git === undefined
      ? []
      : protectedSystems(git).flatMap(({ name, closed }) => closed.map((below) => `${name}/${below}`))
  const names = [...zone, ...home, ...systems].map((name) => posix.normalize(name).replace(/\/$/, '').split('/'))
  return [...new Set(names.flatMap((words) => words.slice(1).map((_, at) => words.slice(0, at + 1).join('/'))))]
}
