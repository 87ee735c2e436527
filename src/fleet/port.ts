/**
 * The port between a source of tasks and the engine that runs them in sandboxes (engine.ts). Adapters are the HTTP protocol of
 * agents (http-source.ts), a queue (bullmq.ts) and lines of JSON (batch-source.ts). Types only.
 *
 * The engine calls `take` once for each free slot; between `take` and `report` a task is the engine's. It calls `progress` in order and
 * never two at once for one task, asks `isCancelled` every CANCEL_CHECK_MS while the task runs, and calls `report` exactly once, last,
 * when everything that the task has started is gone. Methods of different tasks may be under way at once.
 */
import type { Need, Reason, Result } from '../core.ts'

/** Milliseconds between two questions whether a running task is cancelled. */
export const CANCEL_CHECK_MS = 2_000

export interface TaskSource {
  /**
   * Returns the next task; waits while the source is empty, and retries what can be retried.
   * @param signal aborted when no more tasks are wanted
   * @returns undefined when no more can come: the source has ended, or `signal` is aborted
   * @throws an error that no retry mends; the engine then takes no more, finishes its tasks, and throws it
   */
  take(signal: AbortSignal): Promise<Task | undefined>
  /**
   * Output of a running task. While the promise is pending the command's output waits (back pressure).
   * A source that cannot deliver it drops it: the report holds the output, too. Does not throw.
   */
  progress(task: Task, output: TaskOutput): Promise<void>
  /** Whether somebody has asked to end it; false when that cannot be known now. Does not throw. */
  isCancelled(task: Task): Promise<boolean>
  /**
   * Delivers how the task ended, with retries; the same report may arrive twice, since an answer may be lost.
   * @throws when it cannot be delivered; the engine logs that and continues
   */
  report(task: Task, report: TaskReport): Promise<void>
}

/** A task. All of it comes from outside: nothing in it becomes a path or an option, and it can only narrow the policy. */
export interface Task {
  /** Unique at its source; 1 to 256 characters. Never a path. */
  readonly id: string
  /** Each is one sandbox over the same directory, in order; failures continue, the last exit code wins. At least one. */
  readonly commands: readonly (readonly string[])[]
  /** Initial content of the directory; absent: empty. */
  readonly files?: TaskFiles
  /** Wall time of each command, whole milliseconds above 0; only shortens what the operator has set. */
  readonly timeoutMs?: number
  /** Standard input of each command; absent: empty. */
  readonly stdin?: string | Uint8Array
  /** Variables of the commands, above what the policy sets. */
  readonly env?: Readonly<Record<string, string>>
  /** Limits and walls that must hold; a machine that cannot hold one reports `refused` with `elsewhere`. */
  readonly require?: readonly Need[]
  /** An existing directory of the host that it works in instead of a fresh private one; only a source that the operator's own words reach
   * (batch) sets it, and nothing in it is packed. Absolute. */
  readonly directory?: string
}

export interface TaskFiles {
  /**
   * The bytes of a ZIP file; it is checked while it is unpacked, so a source need not.
   * @throws when they cannot be had: the task is reported as `refused`
   */
  open(signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
}

/** A piece of what a command prints. Never empty, whole characters of UTF-8 (what is none became U+FFFD). */
export interface TaskOutput {
  readonly stream: 'stdout' | 'stderr'
  /** At most 64 KiB of UTF-8. */
  readonly text: string
}

export type TaskReport = FinishedTask | RefusedTask

/**
 * Every command was started and has ended, also by a limit or because the task was cancelled. Of the result (docs/reference/result.md) it
 * has what is said of the last command, and the limits that held for each.
 */
export interface FinishedTask extends Pick<Result, 'planHash' | 'backend' | 'isolation' | 'limits' | 'denials'> {
  readonly status: 'finished'
  /** Of the last command: its own; 124 deadline, 137 memory, 130 cancelled, 126/127 cannot be executed/found, 128+N signal N. */
  readonly exitCode: number
  /** Why the last command ended; `exit` with any code. */
  readonly reason: Reason
  /** One line for people when a limit or a cancellation ended it; empty otherwise. */
  readonly message: string
  /** Of all commands one after the other; of more than 1 MiB the middle is dropped. */
  readonly stdout: string
  readonly stderr: string
  /** Bytes that were dropped. */
  readonly truncated: { readonly stdout: number; readonly stderr: number }
  /** Milliseconds of wall time, unpacking and packing included; whole. */
  readonly durationMs: number
  /** Messages for people, one line each: about the run, and files that could not be packed. */
  readonly warnings: readonly string[]
  /** A ZIP of the regular files that the task has made or changed; absent when there are none, or `directory` was given. */
  readonly resultZip?: Uint8Array
}

/** The task did not run, or not to its end, for a reason that is not its own command's. */
export interface RefusedTask {
  readonly status: 'refused'
  /** The sandbox, the files, this machine going away, or the agent's having crashed in it. */
  readonly cause: 'sandbox' | 'files' | 'shutdown' | 'crash' | 'invalid'
  /** A code of docs/reference/errors.md where there is one. */
  readonly code?: string
  readonly message: string
  /** Another machine may succeed (exit status 125 in protocols that know only a number); false: the task itself is at fault. */
  readonly elsewhere: boolean
}
