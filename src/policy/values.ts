/** The types of what a policy holds: plain data. Sizes are bytes, times are milliseconds; `null` means "no limit". */

import type { HeaderCredential } from '../network/termination.ts'
import type { ToolHosts } from '../network/tools/index.ts'

/** The layer that set a value, lowest authority first; a later layer replaces or adds, as the key declares. */
export type Layer = 'built-in' | 'profile' | 'workshop' | 'worker' | 'docker-environment' | 'environment' | 'flag'

/** Where a value came from, for messages and `--plan --why`. */
export interface Origin {
  readonly layer: Layer
  /** The file that declares it, or the flag or variable name. */
  readonly source: string
  /** Dotted key inside that source, e.g. `resources.memory`. */
  readonly key: string
}

export const ZONE_MODES = ['ro', 'cow', 'rw', 'tmpfs'] as const
export type ZoneMode = (typeof ZONE_MODES)[number]

/** Modes of host directories, the narrowest first. */
export const HOST_MODES = ['ro', 'cow', 'rw'] as const
export type HostMode = (typeof HOST_MODES)[number]

/** Where the changes to copy-on-write zones are kept. */
export const UPPERS = ['disk', 'memory', 'copy'] as const
export type Upper = (typeof UPPERS)[number]

/** The command's writes there reach the host: immediately, or when they are applied. */
export const isWritable = (mode: ZoneMode): boolean => mode === 'rw' || mode === 'cow'
export const narrowestMode = (a: HostMode, b: HostMode): HostMode =>
  HOST_MODES.indexOf(a) < HOST_MODES.indexOf(b) ? a : b

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
  /** Nothing but a socket may be there. */
  readonly kind?: 'socket'
  /** The home directory that we keep by a name: programs outside the sandbox have no business in it. */
  readonly isHome?: true
  /** Its content must not leave: see network.afterSecrets. */
  readonly secret?: true
  readonly origin: Origin
}

/** Every backend, in the order in which they are listed; src/backends/index.ts says what each does. */
export const BACKEND_NAMES = ['namespace', 'docker', 'wasm', 'no-namespaces', 'process'] as const
export type BackendName = (typeof BACKEND_NAMES)[number]
export type BackendChoice = 'auto' | BackendName

/** Backends without any wall: a worker may not choose one where a sandbox was granted. */
const WITHOUT_WALLS: readonly BackendChoice[] = ['process']
export const isSandbox = (backend: BackendChoice): boolean => !WITHOUT_WALLS.includes(backend)

/** From whole sandboxes to none: a worker may not choose a weaker one than was granted. */
const WEAKER: readonly BackendChoice[] = ['no-namespaces', ...WITHOUT_WALLS]
export const isWeakerBackend = (backend: BackendChoice, than: BackendChoice): boolean =>
  WEAKER.indexOf(backend) > WEAKER.indexOf(than)

export type EngineName = 'bwrap' | 'unshare'
export type EngineChoice = 'auto' | EngineName

export type NetworkMode = 'none' | 'restricted' | 'host'
/** Proxies in addition to the transparent path of a restricted network: where that is missing, always, never. */
export type ProxyChoice = 'auto' | 'on' | 'off'
/** Later: `llm-do allow` adds hosts; ask: the person at the terminal is asked, too. */
export const GRANTS = ['no', 'later', 'ask'] as const
export type GrantsChoice = (typeof GRANTS)[number]
export interface NetworkPolicy {
  readonly mode: NetworkMode
  /** `host`, `*.host`, `host:port`; an empty list allows nothing. */
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  /** Absent = `auto`. */
  readonly proxy?: ProxyChoice
  /** Whether the list can grow while the command runs. Absent = `no`. */
  readonly grants?: Exclude<GrantsChoice, 'no'>
  /** Resolved names of tools in the list; absent where there were none, and before they are resolved. */
  readonly tools?: readonly ResolvedTool[]
  /** Ports of the host's own loopback, which a restricted command reaches by the name LOCAL_NAME. Absent: none. */
  readonly local?: readonly number[]
  /** Servers inside that this host reaches: `ADDRESS:PORT:INSIDE`. Absent: none. */
  readonly publish?: readonly string[]
  /** Name -> address, in the place of what the host's resolver says. Absent: none. */
  readonly hosts?: Readonly<Record<string, string>>
  /** Restricted in name only: every public name is reached, and noted. */
  readonly record?: true
  /** TLS of the hosts that the next two name ends on this host. Absent: nowhere. */
  readonly terminate?: true
  readonly credentials?: readonly HeaderCredential[]
  /** `METHOD HOST/PATH`: all that may be asked of these hosts. */
  readonly requests?: readonly string[]
  /** With a zone that is secret the network is off. Absent: a zone takes nothing away. */
  readonly afterSecrets?: AfterSecrets
  /** Why there is none although one was asked for. */
  readonly closedBy?: string
}

export const AFTER_SECRETS = ['allow', 'deny'] as const
export type AfterSecrets = (typeof AFTER_SECRETS)[number]

/** A name such as `@npm`, and its rules on this host. */
export type ResolvedTool = Pick<ToolHosts, 'name' | 'hosts' | 'from'>

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
  /** Leave it out when the file is missing. */
  readonly optional?: true
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
  'copy-on-write',
  'explain',
] as const
export type Need = (typeof NEEDS)[number]
