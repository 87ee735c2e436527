/**
 * One run by the native chain. launch holds the deadline, the limits and the clean-up; here are only its pipes.
 * Edge: processes.
 */
import type { Launch } from '../backend/launch.ts'
import { type ChildStdio, runChild } from './child.ts'
import { outcomeOfLaunch } from './launch-status.ts'
import type { Outcome } from './outcome.ts'

export interface NamespaceRun {
  readonly launch: Launch
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
}

/** Never throws for a sandbox that could not be built: that is an outcome, too. */
export async function superviseNamespace({ launch, stdio, signal }: NamespaceRun): Promise<Outcome> {
  const end = await runChild({
    launch,
    stdio,
    signal,
    stop: async (child) => {
      child.kill(signalOf(signal?.reason))
    },
  })
  return outcomeOfLaunch(end)
}

const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function signalOf(reason: unknown): NodeJS.Signals {
  return PASSED_ON.find((name) => name === reason) ?? 'SIGTERM'
}
