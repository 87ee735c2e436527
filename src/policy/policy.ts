/**
 * What is wanted: the checked sum of profiles, workshop, worker, environment and flags.
 * Plain data with every default filled in. Sizes are bytes, times are milliseconds; `null` means "no limit".
 */

/** Who said a thing, lowest authority first; a later layer replaces or adds, by the rows of merge.ts. */
export type Layer = 'built-in' | 'profile' | 'workshop' | 'worker' | 'docker-environment' | 'environment' | 'flag'

/** Where a value came from, for messages and `--plan --why`. */
export interface Origin {
  readonly layer: Layer
  /** The file that declares it, or the flag or variable name. */
  readonly source: string
  /** Dotted key inside that source, e.g. `resources.memory`. */
  readonly key: string
}

export type ZoneMode = 'ro' | 'rw' | 'tmpfs'

export interface Zone {
  readonly name: string
  readonly mode: ZoneMode
  /** Absolute path on the host, not yet canonical; absent for tmpfs. */
  readonly hostPath?: string
  /** The host path was written with a slash at its end. */
  readonly meansDirectory?: boolean
  /** Absolute path inside; absent = the same path, or below the workspace for a source inside it. */
  readonly target?: string
  /** tmpfs only, bytes. */
  readonly size?: number
  /** Make the host directory when it is missing. */
  readonly create: boolean
  /** Leave the zone out when its source is missing. */
  readonly optional: boolean
  /** Sockets and FIFOs in this zone may be used and made. */
  readonly sockets: boolean
  readonly origin: Origin
}

export type BackendName = 'namespace' | 'docker' | 'wasm' | 'process'
export type BackendChoice = 'auto' | BackendName
export type EngineName = 'bwrap' | 'unshare'
export type EngineChoice = 'auto' | EngineName

export type NetworkMode = 'none' | 'restricted' | 'host'
export interface NetworkPolicy {
  readonly mode: NetworkMode
  /** `host`, `*.host`, `host:port`; an empty list allows nothing. */
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

export interface Resources {
  readonly memory: number | null
  readonly swap: number
  /** In cores, may be fractional. */
  readonly cpus: number | null
  readonly pids: number | null
  readonly timeoutMs: number | null
  readonly cpuTimeMs: number | null
  /** Bytes and operations per second, of each disk. */
  readonly readBps: number | null
  readonly writeBps: number | null
  readonly readIops: number | null
  readonly writeIops: number | null
  /** Bytes kept of stdout and stderr, each, when they are captured. */
  readonly output: number | null
  /** Sizes of the scratch file systems. */
  readonly tmp: number
  readonly run: number
  readonly shm: number
  readonly home: number
}

export interface EnvironmentPolicy {
  /** Names taken over from the caller. A name ending in `*` is a prefix. */
  readonly inherit: readonly string[]
  /** Values never reach a plan, a log or an argv. */
  readonly set: Readonly<Record<string, string>>
}

/** A file shown read-only at a fixed place; only operator and workshop may name one. */
export interface Credential {
  readonly file: string
  readonly target: string
  readonly origin: Origin
}

export type SeccompChoice = 'default' | 'strict' | 'nested' | 'off' | { readonly file: string }

/** Name or file of the filter, as plans and messages have it. */
export const seccompName = ({ seccomp }: { readonly seccomp: SeccompChoice }): string =>
  typeof seccomp === 'string' ? seccomp : seccomp.file

/** Words of `require`: limits and walls that the kernel itself must enforce. */
export const NEEDS = [
  'empty-root',
  'zones',
  'pid-namespace',
  'ipc-namespace',
  'user-namespace',
  'seccomp',
  'net-none',
  'net-restricted',
  'net-host',
  'memory-limit',
  'pids-limit',
  'cpu-limit',
  'io-limit',
  'deadline',
  'output-limit',
  'tty',
  'wasi-command',
  'sockets-closed',
] as const
export type Need = (typeof NEEDS)[number]

export interface Policy {
  /** Name or path of the profile that was asked for. */
  readonly profile: string
  readonly backend: BackendChoice
  readonly engine: EngineChoice
  readonly image?: string
  readonly runtime?: string
  /** Docker only: `session` keeps one container per plan. */
  readonly dockerReuse: 'off' | 'session'
  readonly zones: readonly Zone[]
  /** How the caller's directory appears when no zone is given. */
  readonly workspace: 'ro' | 'rw' | 'none'
  readonly samePath: boolean
  readonly network: NetworkPolicy
  readonly resources: Resources
  readonly env: EnvironmentPolicy
  readonly credentials: readonly Credential[]
  readonly sshAgent: boolean
  readonly seccomp: SeccompChoice
  readonly toolchains: 'auto' | 'off'
  /** Directory inside; absent = where the caller stands, else the workspace. */
  readonly workdir?: string
  /** Read-only paths inside rw zones, relative to the zone's root, beside the built-in ones of protected.ts. */
  readonly protect: readonly string[]
  /** Built-in names that can be written all the same: words of OPENABLE_NAMES. */
  readonly protectNot: readonly string[]
  /**
   * Absolute host paths, as they are reached, that decide the next run: files in use, those that would be found first, our own
   * directories. Every step of them stays as it is wherever a rw zone would show it; see plan/names.ts.
   */
  readonly protectFiles: readonly string[]
  readonly require: readonly Need[]
  readonly bestEffort: boolean
  readonly tty: boolean
  readonly cgroupParent?: string
  readonly pool: 'auto' | 'off'
  /** Dotted key -> who set it, every layer that spoke, last one wins. */
  readonly origins: Readonly<Record<string, readonly Origin[]>>
}
