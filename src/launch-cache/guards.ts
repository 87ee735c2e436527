/**
 * The dependencies of a plan that is kept in memory: the caller, which is compared here, and the files, which the runner checks
 * before it starts a command (native/lib/launch-cache.c).
 * Edge: this process, as the caller.
 */

import { writeLaunchFile } from '../backends/namespace/launch-file.ts'
import { linkText } from '../host/paths.ts'
import { textOf } from '../os/look.ts'
import { type LaunchEntry, launchEntries, type Verb } from '../text/launch-entries.ts'
import { type Invocation, type KeyInputs, keyWords } from './cache-key.ts'

/** The guards of a launch file, sorted by who asks for them. */
export interface Guards {
  readonly key: readonly string[]
  /** How the command's environment is made of the caller's. */
  readonly rules: readonly Rule[]
  /** Variables that the caller must not have. */
  readonly unset: readonly string[]
  readonly places: readonly LaunchEntry[]
  /** FRAME_GUARDS: `places`, what must be on disk, for the runner to look at. */
  readonly files: Uint8Array
}

interface Rule {
  readonly verb: 'variable' | 'locale' | 'inherit'
  readonly name: string
  readonly value: string
}

/** @throws for anything but a whole launch file */
export function readGuards(bytes: Uint8Array): Guards {
  const records = launchEntries(bytes)
  const of = (...verbs: readonly Verb[]) => records.filter(([verb]) => verbs.includes(verb))
  const places = of('at', 'content')
  return {
    key: of('key').map(([, word = '']) => word),
    rules: records.flatMap(([verb, name = '', value = '']) => (isRule(verb) ? [{ verb, name, value }] : [])),
    unset: of('unset').map(([, name = '']) => name),
    places,
    files: writeLaunchFile(places),
  }
}

/** The same, with something else at one of the paths. */
export function guardsWith(guards: Guards, path: string, identity: string): Guards {
  const places = guards.places.map(
    (one): LaunchEntry => (one[0] === 'at' && one[1] === path ? ['at', path, identity] : one),
  )
  return { ...guards, places, files: writeLaunchFile(places) }
}

const isRule = (verb: Verb): verb is Rule['verb'] => verb === 'variable' || verb === 'locale' || verb === 'inherit'

/** Values that stay the same for as long as a process with these ids lives. */
export type Lasting = Pick<KeyInputs, 'bootId' | 'capabilities'>

export function observeLasting(): Lasting {
  return { bootId: lineOf('/proc/sys/kernel/random/boot_id', ''), capabilities: lineOf('/proc/self/status', 'CapEff:') }
}

export interface GuardedUse {
  readonly guards: Guards
  readonly lasting: Lasting
  readonly invocation: Invocation
  readonly caller: Pick<KeyInputs, 'version' | 'root' | 'cwd'>
}

type Variables = Readonly<Record<string, string | undefined>>

/** A caller, and the environment of its commands. */
interface Known {
  readonly env: Variables
  readonly process: ProcessFacts
  readonly commandEnv: Readonly<Record<string, string>>
}

/** Remembers the answer of the last caller: most runs of one plan have the same caller. */
export class Callers {
  private known: Known | undefined

  constructor(private readonly use: GuardedUse) {}

  /** @returns the environment of the next command; undefined when the plan was made for another caller, or that cannot be known */
  environmentFor(env: Variables): Readonly<Record<string, string>> | undefined {
    try {
      const { known } = this
      const caller = { env: copyOf(env), process: observeProcess() }
      const { userNamespace, mountNamespace } = caller.process
      if (userNamespace === '' || mountNamespace === '') return undefined // Hidden, so it may be another one by now.
      if (known && isSame(known.env, caller.env) && isSame(known.process, caller.process)) return known.commandEnv
      const commandEnv = this.environmentOf(caller)
      this.known = commandEnv && { ...caller, commandEnv }
      return commandEnv
    } catch {
      return undefined // Planning again is always right, and says what is wrong where something is.
    }
  }

  private environmentOf({ env, process }: Pick<Known, 'env' | 'process'>): Known['commandEnv'] | undefined {
    const { guards, lasting, invocation, caller } = this.use
    // Nobody sits before a pool of a program.
    const terminal = { isAtTerminal: false, hasTerminal: false }
    const key = keyWords({ ...caller, ...terminal, ...lasting, ...process, env, invocation })
    const isUnset = guards.unset.every((name) => env[name] === undefined)
    return isUnset && isFor(guards, key) ? environmentOf(guards, env) : undefined
  }
}

/** Each look at process.env asks the C library, and `{ ...process.env }` three times as often as this. */
const copyOf = (env: Variables): Variables => Object.fromEntries(Object.keys(env).map((name) => [name, env[name]]))

function isSame(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name])
}

/* ---- the process ---- */

type ProcessFacts = Readonly<Pick<KeyInputs, 'uid' | 'gid' | 'cgroup' | 'userNamespace' | 'mountNamespace'>>

export function observeProcess(): ProcessFacts {
  return {
    uid: process.geteuid?.() ?? -1,
    gid: process.getegid?.() ?? -1,
    cgroup: lineOf('/proc/self/cgroup', '0::'),
    userNamespace: linkText('/proc/self/ns/user'),
    mountNamespace: linkText('/proc/self/ns/mnt'),
  }
}

/** A value that the kernel or a container hides is an empty word of the key, to the client as well. */
function lineOf(file: string, start: string): string {
  const lines = textOf(file).split('\n')
  return lines.find((line) => line.startsWith(start)) ?? ''
}

const isFor = ({ key }: Guards, current: readonly string[]): boolean =>
  key.length === current.length && key.every((word, at) => word === current[at])

/* ---- the command's environment ---- */

type Variable = readonly [name: string, value: string]

/** The same rules in the same order as command_environment in native/client/environment.c; a later one wins. */
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
