/**
 * Whether a plan that is kept in memory still holds: the question that native/cached.c asks of a launch file, for a program that
 * runs many commands. Whatever is odd or changed: no, and the plan is made again.
 * Edge: identities of files, this process.
 */
import { type BigIntStats, lstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { MAGIC, VERBS, type Verb } from '../backend/launchfile.ts'
import { type Invocation, type KeyInputs, keyWords } from './key.ts'

type CachedRecord = readonly [verb: Verb, ...words: string[]]
export type GuardedRecords = readonly CachedRecord[]

/** @throws for anything but a whole launch file */
export function readGuarded(bytes: Uint8Array): GuardedRecords {
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
  readonly records: GuardedRecords
  readonly lasting: Lasting
  readonly invocation: Invocation
  readonly caller: Pick<KeyInputs, 'version' | 'root' | 'cwd' | 'env'>
}

/** @returns the environment of the next command; undefined when something is not as it was, or another caller asks */
export function environmentIfFresh({
  records,
  lasting,
  invocation,
  caller,
}: GuardedUse): Readonly<Record<string, string>> | undefined {
  try {
    const key = keyWords({ ...caller, ...lasting, ...observeProcess(), invocation })
    return isFor(records, key) && isFresh(records) ? environmentOf(records, caller.env) : undefined
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
