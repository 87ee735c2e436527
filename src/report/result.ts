/** The object of `--json` and of the library. `schema` changes only when the meaning of a field changes. */

import type { Isolation } from '../backends/backend.ts'
import type { NetVerdict, Reason } from '../contract.ts'
import type { Change } from '../cow/change.ts'
import type { PendingChanges } from '../cow/pending.ts'
import type { PlannedLimit, PlannedRates } from '../plan/limits.ts'
import type { BackendName } from '../policy/values.ts'

export type { Reason }

/** One thing that the sandbox refused, and what would have allowed it. */
export interface Denial {
  /** The wall: the view of the file system, the network, the system call filter, the guard of protected paths, a limit. */
  readonly layer: 'mount' | 'network' | 'seccomp' | 'guard' | 'limit'
  /** `read`, `write`, `resolve`, `connect`, `request`, `allocate`, `fork`, `syscall`... */
  readonly operation: string
  /** In the words of the inside: a path, `HOST:PORT`, `memory`. */
  readonly target: string
  /** How often; 1 where that is not counted. */
  readonly count: number
  /** The flag that allows it, ready to be pasted; empty where none does. */
  readonly fix: string
  /** The key of a profile for the same; empty where there is none. */
  readonly key: string
  /**
   * `sandbox`: the wall itself has counted it. `stderr`: the command says so, and the plan and the host confirm that it would have been
   * refused; whether it was tried is the command's word.
   */
  readonly evidence: 'sandbox' | 'stderr'
}

/** One host and port; `port` is absent where only the name was asked for. */
export interface NetworkUse {
  readonly host: string
  readonly port?: number
  /** `refused`: a request on a connection that was allowed. */
  readonly verdict: NetVerdict | 'refused'
  /** Its method and path, or the fault in it. */
  readonly request?: string
  /** That decided; absent where none covers the host. */
  readonly rule?: string
  /** Where a name leads, if that must be listed itself. */
  readonly address?: string
  /** The port of the server inside, where host and port are this host's own. */
  readonly inside?: number
  /** The flag that allows it where the network is not only recorded; absent elsewhere. */
  readonly needs?: string
  /** Or questions for the name, or attempts, or requests. */
  readonly connections: number
  readonly bytesIn: number
  readonly bytesOut: number
}

export interface Result {
  readonly schema: 1
  readonly ok: boolean
  readonly exitCode: number | null
  readonly signal: string | null
  readonly reason: Reason
  /** Of `llm-do exec` itself, 0 to 255: the command's exit code, 128+N after signal N, 124 after a timeout... */
  readonly exitStatus: number
  readonly stdout: string
  readonly stderr: string
  /** Bytes dropped in the middle of each stream. */
  readonly truncated: { readonly stdout: number; readonly stderr: number }
  /** `base64` when the bytes are not valid UTF-8, for both streams. */
  readonly encoding: 'utf8' | 'base64'
  readonly durationMs: number
  readonly setupMs: number
  /** `null` when the run was refused before a backend was chosen. */
  readonly backend: BackendName | null
  readonly profile: string
  readonly planHash: string
  readonly command: readonly string[]
  readonly limits: {
    readonly memory?: PlannedLimit
    readonly cpus?: PlannedLimit
    readonly pids?: PlannedLimit
    readonly io?: PlannedRates
    readonly timeoutMs?: number
    /** By how many bytes writable zones may grow. */
    readonly rwSize?: number
  }
  readonly usage: {
    readonly cpuMs: number
    readonly peakMemory: number
    /** Processes and threads at once, the sandbox's own one or two among them; absent without a counter. */
    readonly peakPids?: number
    /** Bytes from and to disks while the run lived; absent without a counter. */
    readonly readBytes?: number
    readonly writeBytes?: number
  }
  readonly isolation: Isolation
  /** The run had copy-on-write zones, and this is what waits to be applied; absent where nothing was changed. */
  readonly cow?: PendingChanges
  readonly changes?: readonly Change[]
  /** One line for people when something is off, empty when nothing is: what stopped the command and who set that limit. */
  readonly message: string
  /** Devices of the host that the command could use, as it found them; absent where there were none. */
  readonly devices?: readonly string[]
  /** Hosts that a command with a restricted network has reached or tried to, and names that one without any has asked for; absent else. */
  readonly network?: readonly NetworkUse[]
  /** Emptied for the command by `hide`, as paths of the host: all are counted, the first are named. Absent where nothing was. */
  readonly hidden?: { readonly count: number; readonly paths: readonly string[] }
  readonly denials: readonly Denial[]
  readonly warnings: readonly string[]
  readonly hints: readonly string[]
  /** Present when the sandbox itself failed or refused: reason `setup`, `denied` or `lost`. */
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string }
}
