/** The raw end of a run: reason, events and numbers as observed. report/classify.ts adds words, hints and denials. */
import type { Observed, ReachedHost, Reason } from '../contract.ts'
import type { ErrorCode } from '../error.ts'
import type { RefusedRequest } from '../network/termination.ts'

/** How a run ended: reported by the native runner (native/lib/status.c), or by backends/ending.ts where there is none. */
export interface Ending {
  readonly reason: Reason
  /** Exit code of the command, null when a signal ended it or it never ran. */
  readonly exitCode: number | null
  /** `SIGKILL`..., null when it exited. */
  readonly signal: string | null
  /** Of our own process, 0 to 255. */
  readonly exitStatus: number
}

/** The reasons of a command that was not stopped by the runner. */
export const endedOnItsOwn = ({ reason }: Pick<Ending, 'reason'>): boolean =>
  reason === 'exit' || reason === 'signal' || reason === 'pids' || reason === 'seccomp'

/** Why the command was not started, or why its end is not known. */
export interface SetupFailure {
  readonly code: ErrorCode
  /** The step and its program, e.g. `launch: clone mount`. */
  readonly step: string
  readonly path: string
  /** Symbolic, e.g. `EPERM`; empty when no system call failed. */
  readonly errno: string
  /** Free words, e.g. what bwrap printed. */
  readonly detail: string
}

/** Something that was made in spite of its protection; paths are the host's. */
export interface ProtectedAttempt {
  readonly path: string
  /** Its new name in the same directory; empty when it could not be moved. */
  readonly aside: string
  /** It had been removed before it could be moved. */
  readonly gone: boolean
  /** Nothing was seen to be made: the path cannot be looked at after the run. */
  readonly unseen?: boolean
}

/** All are counted, and the first are named. */
export interface Hidden {
  readonly count: number
  readonly paths: readonly string[]
}

/** Attempts at protected paths: all are counted, and the first are named. */
export interface Guarded {
  readonly attempts: { readonly count: number; readonly first: readonly ProtectedAttempt[] }
  /** Files of root with a set-id bit or capabilities that were read-only in a writable zone. */
  readonly setId: { readonly count: number; readonly first: readonly string[] }
  /** Files and directories that the command found empty, as paths of the host; absent where there were none. */
  readonly hidden?: Hidden
  /** Git has tried to change a configuration, and could not. */
  readonly configLocked: boolean
  /** The guard got no notices of the kernel: it looked a few times a second, or less in a large zone. */
  readonly unwatched?: true
}

/** The connections of a command whose network is restricted. */
export interface NetworkReport {
  readonly hosts: readonly ReachedHost[]
  /** Connections to more hosts than fit into the report. */
  readonly omitted: number
  /** The helper ended before the run, and with it the network. */
  readonly isLost: boolean
  /** Requests that the terminator refused; absent if it ended TLS of no host. */
  readonly terminated?: TerminatorReport
}

export interface TerminatorReport {
  readonly refused: readonly RefusedRequest[]
  /** Refused requests of further kinds than fit into the report. */
  readonly omitted: number
  /** It ended before the run: its hosts were not reached any more. */
  readonly isLost: boolean
}

/** Everything that the sandbox refused the command, as the observer saw it. */
export interface ObservedReport {
  readonly rows: readonly Observed[]
  /** More than fit into the report. */
  readonly omitted: number
  /** Calls that could not be looked at, for want of rights. */
  readonly unread: number
  /** It ended before the run: from then on observed calls have failed. */
  readonly isLost: boolean
}

export interface Capture {
  readonly head: Uint8Array
  readonly tail: Uint8Array
  /** All bytes the command wrote, kept or not. */
  readonly bytes: number
}

export interface Usage {
  readonly cpuMs: number
  readonly peakMemory: number
  /** 0: not counted. */
  readonly peakPids: number
  /** From and to disks; absent where they were not counted. */
  readonly readBytes?: number
  readonly writeBytes?: number
}

export interface Outcome extends Ending {
  readonly failure?: SetupFailure
  /** The signal that asked us to stop, for reason `cancelled`. */
  readonly cancelledBy?: string
  readonly stdout: Capture
  readonly stderr: Capture
  /** CLOCK_MONOTONIC differences in milliseconds: until the command's exec, and from there to its end. */
  readonly setupMs: number
  readonly durationMs: number
  readonly usage: Usage
  /** Counters of the run's cgroup, absent without one. */
  readonly events?: { readonly oomKill: number; readonly pidsMax: number; readonly throttledMs: number }
  /** Targets of scratch file systems that were full at the end of a command that failed; absent where none was. */
  readonly full?: readonly string[]
  /** Processes of the tree that had to be killed at the end. */
  readonly killed: number
  /** Absent when nothing of it happened. */
  readonly guarded?: Guarded
  /** Absent where the network is not restricted. */
  readonly network?: NetworkReport
  /** Absent in a run that was not observed. */
  readonly observed?: ObservedReport
  readonly warnings: readonly string[]
  /** Reason `disk`: what was written to writable zones was too much, and not a layer. */
  readonly zonesGrown?: true
  /** Where the changes of copy-on-write zones are; absent where there are none. */
  readonly layer?: { readonly directory: string; readonly id: string }
}
