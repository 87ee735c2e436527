/**
 * One run by the native runner, which holds the deadline, the limits and the clean-up.
 * Edge: processes.
 */
import { type Stoppable, signalOf } from '../child-process.ts'
import { outcomeOfLaunch } from '../launch-status.ts'
import type { Outcome } from '../outcome.ts'
import { type LaunchEnd, type LaunchProcess, runLaunch } from './launch-process.ts'

export interface NamespaceRun
  extends Omit<LaunchProcess, 'onStart' | 'stop' | 'isEarly'>,
    Partial<Pick<LaunchProcess, 'isEarly'>> {}

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
