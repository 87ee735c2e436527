/**
 * One run by the native runner, which holds the deadline, the limits and the clean-up.
 * Edge: processes.
 */
import type { Socket } from 'node:net'
import { type ChildStdio, type Stoppable, signalOf } from '../child-process.ts'
import type { NativeLaunch } from '../launch.ts'
import { outcomeOfLaunch } from '../launch-status.ts'
import type { Outcome } from '../outcome.ts'
import { type LaunchEnd, runLaunch } from './launch-process.ts'

export interface NamespaceRun {
  readonly launch: NativeLaunch
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
  /** Of the plan; the launcher holds it. */
  readonly deadlineMs?: number | undefined
  readonly channel?: Socket | undefined
  /** For a sandbox that serves: called once, when its command has been executed. */
  readonly onServing?: (() => void) | undefined
  /** The outcome may come when the command has ended and nothing of it is left, before its walls are taken down. */
  readonly isEarly?: boolean
}

/** Never throws for a sandbox that could not be built: that is an outcome, too. */
export async function superviseNamespace(run: NamespaceRun): Promise<Outcome> {
  return outcomeOfLaunch(await supervise(run))
}

/** The same for a plan that was made earlier. @returns undefined when something that it was made from has changed */
export async function superviseKept(run: NamespaceRun): Promise<Outcome | undefined> {
  const end = await supervise(run)
  return end.isStale ? undefined : outcomeOfLaunch(end)
}

function supervise({
  launch,
  stdio,
  signal,
  deadlineMs,
  channel,
  onServing,
  isEarly = false,
}: NamespaceRun): Promise<LaunchEnd> {
  const stop = async (child: Stoppable): Promise<void> => {
    child.kill(signalOf(signal?.reason))
  }
  return runLaunch({ launch, stdio, signal, deadlineMs, channel, onServing, stop, isEarly })
}
