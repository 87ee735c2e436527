/**
 * Finds the launch file of a known plan for node itself, as native/cached.c does for the front end: where the result must be
 * told as JSON. Whatever is odd, missing or changed: undefined, and the plan is made again.
 * Edge: the cache directory, identities of files, this process.
 */
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  statSync,
} from 'node:fs'
import { MAGIC, VERBS, type Verb } from '../backend/launchfile.ts'
import { type Invocation, type KeyInputs, keyName, keyWords, sumOf } from './key.ts'
import { type Told, toldName } from './told.ts'

export interface Recalled {
  readonly bytes: Uint8Array
  /** The command's environment. */
  readonly env: Readonly<Record<string, string>>
  readonly told: Told
}

export interface RecallInputs {
  readonly directory: string
  readonly invocation: Invocation
  readonly caller: Pick<KeyInputs, 'version' | 'root' | 'cwd' | 'env'>
}

/** @returns undefined for everything that is not exactly as it was stored */
export function recallLaunch({ directory, invocation, caller }: RecallInputs): Recalled | undefined {
  try {
    const key = keyWords({ ...caller, ...observeProcess(), invocation })
    // Node shows bytes that are not UTF-8 as U+FFFD; two such words would look alike.
    if (key.some((word) => word.includes('\ufffd'))) return undefined
    const name = keyName(key)
    const [bytes, text] = readPrivate(directory, [name, toldName(name)])
    if (bytes === undefined || text === undefined) return undefined
    const told = JSON.parse(text.toString('utf8')) as Told
    const records = checkedRecords(bytes)
    const isKnown = records[0]?.[1] === told.check && isFor(records, key) && isFresh(records)
    return isKnown ? { bytes, told, env: environmentOf(records, caller.env) } : undefined
  } catch {
    return undefined // Planning again is always right, and says what is wrong where something is.
  }
}

/* ---- the process ---- */

function observeProcess() {
  return {
    uid: process.geteuid?.() ?? -1,
    gid: process.getegid?.() ?? -1,
    bootId: lineOf('/proc/sys/kernel/random/boot_id', ''),
    cgroup: lineOf('/proc/self/cgroup', '0::'),
    capabilities: lineOf('/proc/self/status', 'CapEff:'),
    userNamespace: readlinkSync('/proc/self/ns/user'),
    mountNamespace: readlinkSync('/proc/self/ns/mnt'),
  }
}

function lineOf(file: string, start: string): string {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.find((line) => line.startsWith(start)) ?? ''
}

/* ---- the files ---- */

function isOurs({ uid, mode }: { readonly uid: number; readonly mode: number }): boolean {
  return uid === process.geteuid?.() && (mode & 0o077) === 0
}

/** The directory is opened once and its files through it, so that nobody puts another one in its place in between. */
function readPrivate(directory: string, names: readonly string[]): readonly (Buffer | undefined)[] {
  const parent = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    if (!isOurs(fstatSync(parent))) return []
    return names.map((name) => readOne(`/proc/self/fd/${parent}/${name}`))
  } finally {
    closeSync(parent)
  }
}

function readOne(path: string): Buffer | undefined {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const status = fstatSync(file)
    return status.isFile() && isOurs(status) ? readFileSync(file) : undefined
  } finally {
    closeSync(file)
  }
}

type CachedRecord = readonly [verb: Verb, ...words: string[]]

/** @throws for anything but a whole launch file whose sum is right */
function checkedRecords(bytes: Buffer): readonly CachedRecord[] {
  const words = bytes.toString('utf8').split('\0')
  if (words[0] !== MAGIC || words.at(-2) !== 'end' || words.at(-1) !== '') throw new Error('not a launch file')
  const records: CachedRecord[] = []
  for (let at = 1; at < words.length - 2; ) {
    const verb = words[at] as Verb
    if (!Object.hasOwn(VERBS, verb)) throw new Error('unknown verb')
    const next = at + 1 + VERBS[verb]
    records.push(words.slice(at, next) as unknown as CachedRecord)
    at = next
  }
  const [check, sum = ''] = records[0] ?? []
  const start = `${MAGIC}\0check\0${sum}\0`.length
  if (check !== 'check' || sumOf(bytes.subarray(start)) !== sum) throw new Error('damaged')
  return records
}

function isFor(records: readonly CachedRecord[], key: readonly string[]): boolean {
  const stored = records.filter(([verb]) => verb === 'key').map(([, word]) => word)
  return stored.length === key.length && stored.every((word, at) => word === key[at])
}

/* ---- what the plan was made from ---- */

function isFresh(records: readonly CachedRecord[]): boolean {
  return records.every(([verb, path = '', identity]) => {
    if (verb === 'at') return identityAt(path) === identity
    return verb !== 'content' || identityOfContent(path) === identity
  })
}

/** The same words as native/cached.c. */
function identityAt(path: string): string {
  const seen = look(() => lstatSync(path, { bigint: true }))
  if (typeof seen === 'string' || !seen.isSymbolicLink()) return numbersOf(seen)
  return `${numbersOf(seen)}>${numbersOf(look(() => statSync(path, { bigint: true })))}`
}

function identityOfContent(path: string): string {
  const { dev, ino, mode, uid, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(':')
}

const ABSENT: Readonly<Record<string, string>> = { ENOENT: 'missing', ENOTDIR: 'missing', EACCES: 'denied' }

function look(status: () => BigIntStats): BigIntStats | string {
  try {
    return status()
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

/** The same rules in the same order as command_environment in native/front.c; a later one wins. */
function environmentOf(records: readonly CachedRecord[], caller: KeyInputs['env']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    records.flatMap(([verb, name = '', value = '']) => variablesBy({ verb, name, value, caller })),
  )
}

interface Rule {
  readonly verb: Verb
  readonly name: string
  readonly value: string
  readonly caller: KeyInputs['env']
}

function variablesBy({ verb, name, value, caller }: Rule): readonly (readonly [string, string])[] {
  if (verb === 'variable') return [[name, value]]
  if (verb === 'inherit') return inherited(name, caller)
  if (verb !== 'locale') return []
  const shown = caller[name] || value
  return shown === '' ? [] : [[name, shown]]
}

function inherited(pattern: string, caller: KeyInputs['env']): readonly (readonly [string, string])[] {
  const isMeant = (name: string): boolean =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
  return Object.entries(caller).flatMap(([name, value]) =>
    value !== undefined && isMeant(name) ? [[name, value] as const] : [],
  )
}
