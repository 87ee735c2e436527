/**
 * The normal form of workers and workshops: what every accepted spelling is reduced to before anything else sees it.
 * A worker says what is to be done and requests; a workshop says where, and grants.
 */
import type { PolicyLayer } from '../policy/layer.ts'
import type { ZoneMode } from '../policy/values.ts'

/** Where something is written. */
export interface SourceLocation {
  readonly file: string
  /** From 1; absent when the whole file is meant. */
  readonly line?: number | undefined
  /** Dotted; empty when no key is meant. */
  readonly key: string
}

export type WarningCode =
  /** The description was not valid YAML and was taken as plain text. */
  | 'W_LENIENT'
  /** A key that means nothing here. */
  | 'W_UNKNOWN_KEY'
  /** A rule that a mount cannot enforce. */
  | 'W_ADVISORY'
  /** A mount without mode is read-only here; with Docker it is read-write. */
  | 'W_MODE'
  /** No tools are listed, so the file means all of them: every command is asked for. */
  | 'W_INHERIT'
  /** The shell toolset has no rules, so every command is blocked. */
  | 'W_NO_RULES'
  /** A star inside a word is literal, not a wildcard. */
  | 'W_PATTERN'
  /** A worker in pure YAML, without instructions. */
  | 'W_LEGACY'
  /** The name of the file became the name. */
  | 'W_NAME'
  /** The workshop or the operator mounts another directory under this name. */
  | 'W_MOVED'
  /** A higher authority sets this key; the request has no effect. */
  | 'W_KEPT'

export interface Warning extends SourceLocation {
  readonly code: WarningCode
  readonly message: string
}

export interface Requested<V> {
  readonly value: V
  readonly from: SourceLocation
}

/** A zone as a worker or workshop asks for it. */
export interface ZoneRequest {
  readonly name: string
  /** Absolute, inside. */
  readonly target: string
  readonly mode: ZoneMode
  /** Absolute on the host, not canonical. */
  readonly hostPath?: string
  /** No hostPath: the operator or the workshop must grant a zone of this name. */
  readonly request?: true
  /** tmpfs only, bytes. */
  readonly size?: number
  readonly create?: true
  readonly optional?: true
  readonly sockets?: true
  /** Size and suffix rules and the like: shown, but no mount can enforce them. */
  readonly advisory?: Readonly<Record<string, unknown>>
  readonly from: SourceLocation
}

/** A `sandbox` section: zones, and all the rest as a layer of the policy. */
export interface SandboxRequest {
  readonly zones: readonly ZoneRequest[]
  /** Everything but the zones, in the words of a profile. */
  readonly layer: PolicyLayer
  /** Only this subtree of what is visible inside. */
  readonly restrict?: Requested<string>
  /** true: every zone ro. false: a request that they are rw. */
  readonly readonly?: Requested<boolean>
  /** The section itself. */
  readonly from: SourceLocation
}

export type Decision = 'run' | 'ask' | 'block'

/** One rule about commands; the first that matches counts. */
export interface Rule {
  /** As it is written. */
  readonly pattern: string
  /** Words that a command begins with (`prefix`), or that it is (`exact`). No words and `prefix`: every command. */
  readonly tokens: readonly string[]
  readonly match: 'prefix' | 'exact'
  readonly decision: Decision
  readonly from: SourceLocation
}

export interface Shell {
  readonly rules: readonly Rule[]
  /** Verdict if no rule matches; absent = blocked. */
  readonly default?: Requested<Decision>
}

/** `opt-in`: what no toolset names is not there. `listed`: the tools of a list. `inherit`: no list, so all there are. */
export type ToolModel = 'opt-in' | 'listed' | 'inherit'

export interface Worker {
  readonly name: string
  /** As it was asked for. */
  readonly file: string
  readonly description?: string
  readonly model?: string
  readonly instructions: string
  readonly tools?: readonly string[]
  readonly toolModel: ToolModel
  readonly toolsets: readonly string[]
  /** Workers it may call; `*` = any. */
  readonly delegates: readonly Requested<string>[]
  readonly sandbox?: SandboxRequest
  /** null: it has no shell, so no command may be run for it. */
  readonly shell: Shell | null
  /** Opaque references to schemas of input and output. */
  readonly io: Readonly<Record<string, unknown>>
  readonly warnings: readonly Warning[]
}

export interface WorkshopWorker {
  readonly name: string
  /** Parts that this workshop takes away from this worker. */
  readonly narrowing?: SandboxRequest
  readonly from: SourceLocation
}

export interface Workshop {
  readonly name: string
  readonly file: string
  readonly description?: string
  /** The workers that may run here; absent = any. */
  readonly workers?: readonly WorkshopWorker[]
  readonly sandbox?: SandboxRequest
  /** Workers may add zones inside the project directory. */
  readonly allowWorkerZones: boolean
  readonly warnings: readonly Warning[]
}

/** The level that narrows: a workshop, a workshop's word about one worker, or the worker. */
export type Level = 'workshop' | 'narrowing' | 'worker'

export interface Escalation {
  /** `reviewer.worker:9`. */
  readonly location: string
  /** Dotted. */
  readonly key: string
  readonly wanted: string
  readonly granted: string
  /** An option by which the operator could grant it; empty if none can. */
  readonly fix: string
}
