/**
 * The offers of each backend on this host for this policy, as data. src/backends/ makes them; planning compares them with the needs and
 * reads from them how plans for the backends differ, so no file of the plan names a backend.
 */
import type { HeldBy, NetworkWay } from '../host/facts.ts'
import type { Lack } from '../host/probe-failures.ts'
import type { BackendName, EngineName, Need, NetworkMode } from '../policy/values.ts'
import type { SetName } from '../seccomp/rules.ts'

/** `kernel`: a wall made of namespaces, mounts or filters; `runner`: our own process does it. */
export type Holder = HeldBy | NetworkWay | 'kernel' | 'runner'

export type { Lack }

/** Everything a backend can enforce on this host, whatever the policy. */
export interface Offers {
  readonly gives: Readonly<Partial<Record<Need, Holder>>>
  readonly lacks: Readonly<Partial<Record<Need, Lack>>>
  /** Set when the backend cannot be used here at all; `gives` is then empty. */
  readonly unusable?: Lack
  /** Engines of the namespace backend that work, best first. */
  readonly engines: readonly EngineName[]
}

/** How plans for a backend differ from plans for another one; the same on every host. */
export interface BackendTraits {
  /** `auto` may choose it, in the order of the table. */
  readonly isAutomatic: boolean
  /**
   * The tree at `/` inside: one that the plan lists and that has the host's programs, the files of an image, the
   * host's own root, or nothing but the zones.
   */
  readonly root: 'assembled' | 'image' | 'host' | 'zones'
  /** The command makes its own system calls, and a protected path in a zone is a mount that such a call could move. */
  readonly protectsByMounts: boolean
  /** Landlock is on the command, so it can close sockets in the zones. */
  readonly hasLandlock: boolean
  /** The start of a run finds git directories at every level of a zone; elsewhere the plan names those at its root. */
  readonly findsGit: boolean
  /**
   * The command sees the host's own root, and Landlock opens what the plan lists: programs, some of /etc, and the zones. Nothing can be
   * made for it there, so it has no scratch directory.
   */
  readonly opensByPath: boolean
  /** Walls that a policy gives up by naming the backend, unless it requires them by name. */
  readonly givesUp: readonly Need[]
  /** System calls that are refused around it whatever filter the policy names. */
  readonly refuses: (mode: NetworkMode) => readonly SetName[]
  /** The run gets a cgroup that our own programs make. */
  readonly hasCgroup: boolean
}

/** The offers of a backend, narrowed by a policy and the caller's environment. */
export interface Terms {
  /** Why the whole backend is out, before any need is compared. */
  readonly barred?: Lack | undefined
  readonly engine?: EngineName
  readonly warnings?: readonly string[]
  /** The facts that the offers depend on were not looked at yet, because that costs too much to do it always. */
  readonly isUnobserved?: boolean
}

export interface BackendOffer extends Offers, Terms {
  readonly name: BackendName
  readonly traits: BackendTraits
}

export const NFTABLES_FIX = 'modprobe nf_tables nft_tproxy nfnetlink_log'

/** Holders that `require` accepts: the kernel itself says no, whatever our processes do. */
export const KERNEL_HOLDERS: readonly Holder[] = ['kernel', 'cgroup2', 'docker', 'nftables', 'listeners']
