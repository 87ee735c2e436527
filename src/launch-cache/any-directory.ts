/**
 * A plan that serves every directory. The caller's directory is a slot in its words, which native/lib/any-directory.c fills in; with it are
 * the conditions under which the plan of a directory is this one.
 *
 * That a plan depends on nothing else of its directory is not believed but tried: the same call is planned from another place, about which
 * nothing is known, and both plans must be the same words. Pure.
 */
import { posix } from 'node:path'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import { KEY_ANY_DIRECTORY, KEY_CALLER, KEY_PLACE } from '../contract.ts'
import { markPlace, type Place, planDigest } from '../plan/hash.ts'
import type { PathFacts } from '../plan/mounts.ts'
import { endsOf } from '../plan/names.ts'
import type { BackendTraits } from '../plan/offers.ts'
import { zonesWithOpenSockets } from '../plan/open-sockets.ts'
import type { Plan } from '../plan/plan.ts'
import { protectedSystems, protectedWords } from '../plan/protected-paths.ts'
import type { Request } from '../plan/request.ts'
import { isBelow, isWithin, SHARED_DIRECTORIES, SHARED_TREES, searchPath } from '../plan/well-known-paths.ts'
import type { Policy } from '../policy/policy.ts'
import { type CachedInputs, poolDigest } from './cached-launch.ts'
import { SLOT_MARK, SLOTS, slotted } from './slots.ts'

/** A directory that no host has, for the plan that a plan is held against. A layer goes to the file system of its zone, so that one is the same. */
export const elsewhere = ({ layer }: Plan, { dev }: Place): Place => ({
  path: '/.llm-do-any-directory',
  dev: layer === undefined ? 4_294_967_291 : dev,
  ino: 4_294_967_279,
  uid: 4_294_967_231,
  gid: 4_294_967_197,
})

/** Of the key. */
const DIRECTORY_AT = [...KEY_CALLER, ...KEY_PLACE].indexOf('directory')

/** What the words of a launch file are made from, before it is sealed. */
export type Words = Omit<CachedInputs, 'seal' | 'contents'> & { readonly contents: readonly string[] }

export interface PlannedWords {
  readonly words: Words
  readonly plan: Plan
  readonly place: Place
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

/**
 * @param own the plan of the caller's directory
 * @param other that of the same call from `elsewhere`
 */
export function forAnyDirectory(own: PlannedWords, other: PlannedWords, around: Surroundings): AnyDirectory {
  const { place } = own
  const known = [...Object.keys(own.words.paths), ...own.words.contents]
  const inside = known.filter((path) => isBelow(path, place.path) && path !== posix.join(place.path, '.git'))
  const named = inside.find((path) => own.words.contents.includes(path) || !isProtectedName(path, around))
  if (named !== undefined) return { dependsOn: `the plan was made from ${named}` }
  if (looksLikeSlots(own.words)) return { dependsOn: 'a word of the plan looks like a slot' }
  const [mine, theirs] = [withSlots(own), withSlots(other)]
  if (JSON.stringify(recordsOf(mine)) !== JSON.stringify(recordsOf(theirs)))
    return { dependsOn: 'the plan of another directory is another one' }
  if (holds(wordsIn(mine), place.path)) return { dependsOn: 'the plan has the path of the directory in a text' }
  const paths = commonPaths(own, other)
  if (paths === undefined) return { dependsOn: 'other paths were looked at than for another directory' }
  const conditions = conditionsOf(around, place, inside)
  const slots: LaunchRecord = ['slots', planDigest(own.plan, place), poolDigest(mine)]
  return { words: { ...mine, paths, conditions: [slots, ...conditions] } }
}

/** All but what guards a plan against changes on disk. */
const recordsOf = ({ key, variables, unset, isPoolable, endsWithParent, judgement, ending, records }: Words) => ({
  key,
  variables,
  unset,
  isPoolable,
  endsWithParent,
  judgement,
  ending,
  records,
})

function withSlots({ words, plan, place }: PlannedWords): Words {
  const fillings = { place, hash: plan.hash }
  return {
    ...words,
    key: words.key.map((word, at) => (at === DIRECTORY_AT ? KEY_ANY_DIRECTORY : word)),
    pool: SLOTS.pool,
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
 * What was looked at for both directories.
 * @returns undefined where anything else was looked at than that, the directory, what lies in it, and what it lies in
 */
function commonPaths(own: PlannedWords, other: PlannedWords): Words['paths'] | undefined {
  const isItsOwn = (path: string, { place }: PlannedWords): boolean =>
    isWithin(path, place.path) || isWithin(place.path, path)
  const lacks = (one: PlannedWords, theirs: PlannedWords): boolean =>
    Object.keys(one.words.paths).some((path) => !(path in theirs.words.paths) && !isItsOwn(path, one))
  if (lacks(own, other) || lacks(other, own)) return undefined
  return Object.fromEntries(Object.entries(own.words.paths).filter(([path]) => path in other.words.paths))
}

/* ---- conditions ---- */

/** Of a copy-on-write zone the plan says that no protected name in it is a link; whether it is there does not matter. */
function isProtectedName(path: string, { plan, request: { cwd } }: Surroundings): boolean {
  return plan.zones.some(({ mode, source }) => mode === 'cow' && source === cwd && isBelow(path, source))
}

function conditionsOf(around: Surroundings, place: Place, inside: readonly string[]): readonly LaunchRecord[] {
  const { plan, request, traits } = around
  const isSearched = zonesWithOpenSockets(plan, traits).some(({ source }) => source === place.path)
  return [
    ...closedTrees(around).map((path): LaunchRecord => ['apart', 'within', path]),
    ...[...new Set([...SHARED_DIRECTORIES, ...request.homes])].map((path): LaunchRecord => ['apart', 'above', path]),
    ...firstSteps(around.policy).map((path): LaunchRecord => ['step', path]),
    ...inside.map((path): LaunchRecord => ['straight', markPlace(path, place, SLOTS.path)]),
    ...(plan.layer === undefined ? [] : [['device', place.dev] satisfies LaunchRecord]),
    ...(isSearched ? [['quiet'] satisfies LaunchRecord] : []),
  ]
}

/** What decides the next run, what every run uses, and what is never shown. */
function closedTrees({ policy, request, paths }: Surroundings): readonly string[] {
  const entries = searchPath(request.path)
  const { secretDirectory } = request
  return [
    ...new Set([
      ...SHARED_TREES,
      ...entries,
      ...entries.flatMap((entry) => paths[entry]?.real ?? []),
      ...endsOf(policy.protectFiles, paths),
      ...(secretDirectory === undefined ? [] : [secretDirectory, paths[secretDirectory]?.real ?? secretDirectory]),
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
