/** The types of what a policy holds: plain data. Sizes are bytes, times are milliseconds; `null` means "no limit". */

/** Who set a value, lowest authority first; a later layer replaces or adds, as the key declares. */
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

/** Every backend, in the order in which they are listed; src/backends/index.ts says what each does. */
export const BACKEND_NAMES = ['namespace', 'docker', 'wasm', 'process'] as const
export type BackendName = (typeof BACKEND_NAMES)[number]
export type BackendChoice = 'auto' | BackendName

/** Backends without any wall: a worker may not choose one where a sandbox was granted. */
const WITHOUT_WALLS: readonly BackendChoice[] = ['process']
export const isSandbox = (backend: BackendChoice): boolean => !WITHOUT_WALLS.includes(backend)

export type EngineName = 'bwrap' | 'unshare'
export type EngineChoice = 'auto' | EngineName

export type NetworkMode = 'none' | 'restricted' | 'host'
export interface NetworkPolicy {
  readonly mode: NetworkMode
  /** `host`, `*.host`, `host:port`; an empty list allows nothing. */
  readonly allow: readonly string[]
  readonly deny: readonly string[]
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
  'cpus-limit',
  'pids-limit',
  'io-limit',
  'deadline',
  'output-limit',
  'tty',
  'wasi-command',
  'sockets-closed',
] as const
export type Need = (typeof NEEDS)[number]
