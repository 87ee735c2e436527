/** Observations of the machine. Data only: probe.ts and paths.ts fill it in, tests replay it from tests/hosts. */
import type { CgroupFact } from '../cgroup/fact.ts'

export type { CgroupFact, CgroupRung } from '../cgroup/fact.ts'

export type PathKind = 'file' | 'directory' | 'socket' | 'fifo' | 'device' | 'missing' | 'loop' | 'denied'

/** Inode number, exact: a number up to Number.MAX_SAFE_INTEGER, else its decimal digits. */
export type Inode = number | string

/** @property driver the name under which the kernel has registered the number (/proc/devices); empty where there is none */
export interface DeviceFact {
  readonly type: 'char' | 'block'
  /** st_rdev. */
  readonly number: number
  readonly major: number
  readonly minor: number
  readonly driver: string
}

/** One answer to "what is at this path?", taken once, before anything is decided. */
export interface PathFact {
  /** As it was asked for, absolute. */
  readonly path: string
  readonly kind: PathKind
  /** Canonical path; for a missing path the canonical parent plus the rest. */
  readonly real: string
  readonly dev: number
  /** A decimal string where a number would lose digits: overlayfs and FUSE use all 64 bits. */
  readonly ino: Inode
  readonly uid: number
  readonly gid: number
  /** Permission bits, 0 when unknown. */
  readonly mode: number
  /** Its number and driver, where it is a device. */
  readonly device?: DeviceFact
  /** Hard links of a regular file that has more than one. */
  readonly names?: number
  /**
   * Identity as it was seen in this very look, in the words of native/lib/launch-cache.h: for the launch cache. Absent in captured hosts
   * and where the path could not be looked at.
   */
  readonly identity?: string
  /** Link text when the path itself is a symbolic link. */
  readonly link?: string
}

/** A thing that was tried: it worked, or this is why not. */
export type Probe =
  | { readonly ok: true; readonly detail?: string }
  | {
      readonly ok: false
      readonly step: string
      readonly errno: string
      readonly message: string
      /** The fix, where the prober knows it; else see probe-failures.ts. */
      readonly fix?: string
    }

/**
 * The mechanism that takes the connections of a sandbox whose network is restricted by name to the helper on the host: rules of nftables,
 * or listeners where the kernel has none.
 */
export type NetworkWay = 'nftables' | 'listeners'

/** @property lacking why it is not nftables; empty when it is */
export type NetworkProbe =
  | { readonly ok: true; readonly by: NetworkWay; readonly lacking: string }
  | (Probe & { readonly ok: false })

/** The mechanism that enforces a limit or a wall, best first where there is a choice; see offers.ts. */
export type HeldBy = 'cgroup2' | 'watchdog' | 'rlimit' | 'affinity' | 'docker' | 'wasm' | 'timer' | 'none'

export interface ProgramFact {
  readonly path: string
  readonly version: string
  readonly setuid: boolean
}

/** Things that only help to explain why a probe failed; nothing is ever decided by them. */
export interface Surroundings {
  /** Kind of container this process seems to be in. */
  readonly container?: string
  /** A seccomp filter is already on this process. */
  readonly filtered: boolean
  /** The root of this process is not that of its mount namespace. */
  readonly chroot?: true
  /** The user or group of this process has no id in its user namespace. */
  readonly unmapped?: true
  /** The AppArmor profile for our programs that came with them (packaging/install); npm's packages have none. */
  readonly appArmorProfile?: string
  /** Values of the few kernel settings that forbid user namespaces, by sysctl name; unreadable ones are left out. */
  readonly settings: Readonly<Record<string, string>>
}

export interface DockerFact {
  readonly program: 'docker' | 'podman'
  readonly path: string
  readonly clientVersion: string
  readonly server: Probe
  readonly serverVersion?: string
  readonly rootless: boolean
  /** Limits the daemon says it can hold. */
  readonly limits: readonly ('memory' | 'swap' | 'cpus' | 'pids')[]
  /** Docker Desktop and friends: the daemon is in a virtual machine. */
  readonly remote: boolean
  /** SELinux labels decide what a container may open, whatever is mounted; absent = they do not. */
  readonly labelled?: true
}

/** An engine that was not asked for is not started. */
export const NOT_TRIED: Probe & { readonly ok: false } = { ok: false, step: 'probe', errno: '', message: 'not tried' }

export interface HostFacts {
  readonly platform: 'linux' | 'darwin' | 'win32'
  readonly arch: 'x64' | 'arm64'
  readonly kernel: string
  readonly bootId: string
  readonly uid: number
  readonly gid: number
  /** Effective capabilities, hexadecimal as in /proc/self/status. */
  readonly capabilities: string
  readonly cpus: number
  /** Numbers of these processors, `0-1,4`; absent in captured hosts and without /proc. */
  readonly cpuList?: string
  readonly nativePrograms: Probe
  readonly bwrap?: ProgramFact
  /** A real empty sandbox was started by each engine. */
  readonly engines: Readonly<Record<'bwrap' | 'unshare', Probe>>
  /** The engine that is only believed to work: a run will show it. */
  readonly untried?: 'unshare'
  /** The network of an empty sandbox was restricted by name; absent = not tried. */
  readonly restrictedNetwork?: NetworkProbe
  readonly landlockAbi: number
  readonly cgroup: CgroupFact
  readonly docker?: DockerFact
  readonly wasmtime?: ProgramFact
  readonly surroundings?: Surroundings
  /** No engine works, and this process is in a sandbox of our own, whose walls stand whatever is decided in it. */
  readonly isInsideOwn?: true
  /** No process can be seen, so that none can be watched: Landlock of a sandbox without namespaces hides them. */
  readonly hidesProcesses?: true
  readonly paths: Readonly<Record<string, PathFact>>
}
