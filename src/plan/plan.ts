/**
 * Everything decided, nothing done. A plan is JSON, holds no secret value and no run-specific word (id, time), so the
 * same policy on the same host gives the same bytes. Backends read it; nothing else says what a sandbox looks like.
 */

import type { Inode, NetworkWay, PathFact } from '../host/facts.ts'
import type { Upstream } from '../network/upstream.ts'
import type { BackendName, EngineName, HostMode, Need, NetworkPolicy, Upper } from '../policy/values.ts'
import type { PlannedLimits } from './limits.ts'

/** The owner of a file tree: a zone is the user's, everything else is the system's. */
export interface PlannedZone {
  readonly name: string
  readonly mode: HostMode
  /** Canonical, symlink-free. */
  readonly source: string
  readonly target: string
  readonly kind: 'directory' | 'file' | 'socket'
  /** Identity seen at planning time; the launcher refuses another one. */
  readonly dev: number
  readonly ino: Inode
  readonly uid: number
  readonly gid: number
  /** Host directories the launcher's caller must make first (policy said `create`). */
  readonly create: boolean
  readonly sockets: boolean
  /** Paths relative to the zone's root that stay read-only (in a cow zone: that apply leaves alone); parents first. Empty for ro zones. */
  readonly protect: readonly string[]
  /**
   * Directories of git are protected at every level of a rw zone; `open` names what stays writable in them. Absent in ro zones, in
   * files and where the policy opens `.git`.
   */
  readonly git?: PlannedGit
  /** Links in the caller's home lead to what is protected as well. Absent where the policy opens all names. */
  readonly home?: PlannedHome
  /**
   * Files that decide the next run, wherever they lie, and have more than one hard link: other names of theirs in a rw zone stay
   * read-only. Absent where there are none. `path` is canonical.
   */
  readonly linked?: readonly LinkedFile[]
  /** Patterns of what the command finds empty in it. Absent where nothing is hidden. */
  readonly hide?: readonly string[]
  /** The place that asked for it, for people: `flag --rw`, `profiles/ci.yaml: zones.input`. */
  readonly from: string
}

export type LinkedFile = Pick<PathFact, 'path' | 'dev' | 'ino'>

/** How the changes to copy-on-write zones are kept. */
export interface PlannedLayer {
  readonly upper: Upper
  readonly keepMs: number
  /** Most bytes; absent = no limit. */
  readonly size?: number
}

export interface PlannedHome {
  readonly path: string
  /** Names of homes that the policy opens. */
  readonly open: readonly string[]
}

export interface PlannedGit {
  /** Names inside a git directory, of GIT_NAMES; names of systems that are not protected, of REPOSITORY_SYSTEMS. */
  readonly open: readonly string[]
}

/** A device node of the host, as it was seen at planning time: the launcher refuses another one. */
export interface PlannedDevice extends Pick<PlannedZone, 'source' | 'target' | 'dev' | 'ino' | 'from'> {
  /** st_rdev. */
  readonly number: number
}

export interface Scratch {
  readonly target: string
  readonly size: number
  /** Inode bound; 0 is never used. */
  readonly inodes: number
  readonly mode: number
}

/** System part of the tree, the same for every backend that shares the host's root. */
export type SystemEntry =
  | { readonly op: 'directory'; readonly target: string; readonly mode: number }
  | { readonly op: 'symlink'; readonly target: string; readonly link: string }
  /** A small file of our own making, e.g. /etc/passwd. */
  | { readonly op: 'file'; readonly target: string; readonly content: string; readonly mode: number }
  | {
      readonly op: 'bind'
      readonly source: string
      readonly target: string
      readonly kind: 'directory' | 'file'
      readonly from: string
    }

export interface PlannedVariable {
  readonly name: string
  /** `given`: by the caller of this one run, and known to nothing else; the name of the plan does not depend on it. */
  readonly from: 'built-in' | 'inherit' | 'set' | 'given'
  /** Only for built-in ones; what the user sets or inherits is looked up when the sandbox starts. */
  readonly value?: string
}

export interface PlannedSeccomp {
  readonly profile: string
  readonly arch: 'x64' | 'arm64'
  /** Classic BPF, 8 bytes an instruction, little-endian, hexadecimal; empty for `off`. */
  readonly filter: string
}

export interface PlannedNetwork extends NetworkPolicy {
  /** The mechanism that takes the connections of a restricted network to the helper that judges them. */
  readonly by?: NetworkWay
  /** The operator's proxy, through which hosts are reached. */
  readonly upstream?: Upstream
}

export interface PlannedAuthority {
  readonly file: string
  readonly target: string
}

/** The certificates by which the command verifies servers where TLS ends on this host. */
export interface PlannedTrust {
  /** This host's bundle, canonical. */
  readonly source: string
  /** Files inside in whose place that bundle is mounted, with the certificate of the run's own authority. */
  readonly places: readonly string[]
}

export interface Plan {
  readonly schema: 1
  /** SHA-256 of all the rest, 16 hexadecimal digits. */
  readonly hash: string
  readonly profile: string
  readonly backend: BackendName
  readonly engine?: EngineName
  readonly image?: string
  readonly runtime?: string
  readonly dockerReuse: 'off' | 'session'
  readonly needs: readonly Need[]
  readonly zones: readonly PlannedZone[]
  /** Absent without copy-on-write zones. */
  readonly layer?: PlannedLayer
  readonly scratch: readonly Scratch[]
  /** Absent where the command gets none of the host's. */
  readonly devices?: readonly PlannedDevice[]
  readonly system: readonly SystemEntry[]
  readonly network: PlannedNetwork
  /** Absent where TLS of no host ends on this one. */
  readonly trust?: PlannedTrust
  /** Certificates of this host that the command trusts, and where it finds them. */
  readonly authorities?: readonly PlannedAuthority[]
  readonly limits: PlannedLimits
  readonly cgroupParent?: string
  readonly env: readonly PlannedVariable[]
  readonly workdir: string
  readonly seccomp: PlannedSeccomp
  /** Landlock version of the kernel, 0 without; init closes sockets in zones with it. */
  readonly landlockAbi: number
  /** Numeric identity inside. */
  readonly uid: number
  readonly gid: number
  /** Identity outside: `self`, or for root a fresh unprivileged id, or the owner of the zones where they cannot be idmapped. */
  readonly identity: 'self' | 'fresh'
  readonly hostname: string
  readonly tty: boolean
  /** The run ends with the process that started its caller. */
  readonly dieWithParent?: true
  readonly warnings: readonly string[]
}
