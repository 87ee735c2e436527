/**
 * Whether a plan that is kept in memory still holds: the question that native/cached.c asks of a launch file, for a program that
 * runs many commands. Whatever is odd or changed: no, and the plan is made again.
 * Edge: identities of files, this process.
 */
import { type BigIntStats, lstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { MAGIC, VERBS, type Verb, writeLaunchFile } from '../backend/launchfile.ts'
import { type Invocation, type KeyInputs, keyWords } from './cache-key.ts'

/** The guards of a launch file, sorted by how they are checked, because they are checked before each run. */
export interface Guards {
  readonly key: readonly string[]
  readonly places: readonly Guard[]
  readonly contents: readonly Guard[]
  /** How the command's environment is made of the caller's. */
  readonly rules: readonly Rule[]
  /**
   * FRAME_GUARDS: the places, for a warm sandbox to look at. Undefined where they must be looked at beforehand, because other
   * runs in the same zone make what protected paths need.
   */
  readonly frame: Uint8Array | undefined
}

interface Guard {
  readonly path: string
  readonly identity: string
}

interface Rule {
  readonly verb: 'variable' | 'locale' | 'inherit'
  readonly name: string
  readonly value: string
}

type CachedRecord = readonly [verb: Verb, ...words: string[]]

/** @throws for anything but a whole launch file */
export function readGuards(bytes: Uint8Array): Guards {
  const records = readRecords(bytes)
  const of = (verb: Verb) => records.filter((record) => record[0] === verb)
  const guards = (verb: Verb) => of(verb).map(([, path = '', identity = '']): Guard => ({ path, identity }))
  return {
    key: of('key').map(([, word = '']) => word),
    places: guards('at'),
    contents: guards('content'),
    rules: records.flatMap(([verb, name = '', value = '']) => (isRule(verb) ? [{ verb, name, value }] : [])),
    frame: of('protect').length > 0 ? undefined : writeLaunchFile(of('at')),
  }
}

const isRule = (verb: Verb): verb is Rule['verb'] => verb === 'variable' || verb === 'locale' || verb === 'inherit'

function readRecords(bytes: Uint8Array): readonly CachedRecord[] {
  const words = Buffer.from(bytes).toString('utf8').split('\0')
  if (words[0] !== MAGIC || words.at(-2) !== 'end' || words.at(-1) !== '') throw new Error('not a launch file')
  const records: CachedRecord[] = []
  for (let at = 1; at < words.length - 2; ) {
    const verb = words[at] as Verb
    if (!Object.hasOwn(VERBS, verb)) throw new Error('unknown verb')
    const next = at + 1 + VERBS[verb]
    records.push(words.slice(at, next) as unknown as CachedRecord)
    at = next
  }
  return records
}

/** What stays as it is for as long as a process with these ids lives. */
export type Lasting = Pick<KeyInputs, 'bootId' | 'capabilities'>

export function observeLasting(): Lasting {
  return { bootId: lineOf('/proc/sys/kernel/random/boot_id', ''), capabilities: lineOf('/proc/self/status', 'CapEff:') }
}

export interface GuardedUse {
  readonly guards: Guards
  /** Whether the places are looked at; a warm sandbox does that by itself, for a tenth of the time. */
  readonly withPlaces: boolean
  readonly lasting: Lasting
  readonly invocation: Invocation
  readonly caller: Pick<KeyInputs, 'version' | 'root' | 'cwd' | 'env'>
}

/** @returns the environment of the next command; undefined when something is not as it was, or another caller asks */
export function environmentIfFresh({
  guards,
  withPlaces,
  lasting,
  invocation,
  caller,
}: GuardedUse): Readonly<Record<string, string>> | undefined {
  try {
    const key = keyWords({ ...caller, ...lasting, ...observeProcess(), invocation })
    return isFor(guards, key) && isFresh(guards, withPlaces) ? environmentOf(guards, caller.env) : undefined
  } catch {
    return undefined // Planning again is always right, and says what is wrong where something is.
  }
}

/* ---- the process ---- */

function observeProcess() {
  return {
    uid: process.geteuid?.() ?? -1,
    gid: process.getegid?.() ?? -1,
    cgroup: lineOf('/proc/self/cgroup', '0::'),
    userNamespace: readlinkSync('/proc/self/ns/user'),
    mountNamespace: readlinkSync('/proc/self/ns/mnt'),
  }
}

function lineOf(file: string, start: string): string {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.find((line) => line.startsWith(start)) ?? ''
}

const isFor = ({ key }: Guards, asked: readonly string[]): boolean =>
  key.length === asked.length && key.every((word, at) => word === asked[at])

/* ---- what the plan was made from ---- */

function isFresh({ places, contents }: Guards, withPlaces: boolean): boolean {
  if (!contents.every(({ path, identity }) => identityOfContent(path) === identity)) return false
  return !withPlaces || places.every(({ path, identity }) => identityAt(path) === identity)
}

/** The same words as native/cached.c. */
function identityAt(path: string): string {
  const seen = look(() => lstatSync(path, QUIETLY))
  if (typeof seen === 'string' || !seen.isSymbolicLink()) return numbersOf(seen)
  return `${numbersOf(seen)}>${numbersOf(look(() => statSync(path, QUIETLY)))}`
}

function identityOfContent(path: string): string {
  const { dev, ino, mode, uid, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(':')
}

const ABSENT: Readonly<Record<string, string>> = { ENOENT: 'missing', ENOTDIR: 'missing', EACCES: 'denied' }

/** An exception costs five times as much as the look, and most places that are looked at are empty. */
const QUIETLY = { bigint: true, throwIfNoEntry: false } as const

function look(status: () => BigIntStats | undefined): BigIntStats | string {
  try {
    return status() ?? 'missing'
  } catch (error) {
    const absent = ABSENT[(error as NodeJS.ErrnoException).code ?? '']
    if (absent === undefined) throw error
    return absent
  }
}

function numbersOf(seen: BigIntStats | string): string {
  return typeof seen === 'string' ? seen : [seen.dev, seen.ino, seen.mode, seen.uid, seen.gid].join(':')
}

/* ---- the command's environment ---- */

type Variable = readonly [name: string, value: string]

/** The same rules in the same order as command_environment in native/variables.c; a later one wins. */
export function environmentOf(
  { rules }: Pick<Guards, 'rules'>,
  caller: KeyInputs['env'],
): Readonly<Record<string, string>> {
  const all = Object.entries(caller).filter((one): one is [string, string] => one[1] !== undefined)
  return Object.fromEntries(rules.flatMap((rule) => variablesBy(rule, caller, all)))
}

function variablesBy({ verb, name, value }: Rule, caller: KeyInputs['env'], all: readonly Variable[]) {
  if (verb === 'variable') return [[name, value] as const]
  if (verb === 'inherit') return inherited(name, caller, all)
  const shown = caller[name] || value
  return shown === '' ? [] : [[name, shown] as const]
}

function inherited(pattern: string, caller: KeyInputs['env'], all: readonly Variable[]): readonly Variable[] {
  if (pattern.endsWith('*')) return all.filter(([name]) => name.startsWith(pattern.slice(0, -1)))
  const value = Object.hasOwn(caller, pattern) ? caller[pattern] : undefined
  return value === undefined ? [] : [[pattern, value]]
}
