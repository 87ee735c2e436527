/**
 * One run by the native chain. launch holds the deadline, the limits and the clean-up; here are only its pipes.
 * Edge: processes.
 */
import type { ChildProcess } from 'node:child_process'
import { type ChildStdio, runChild } from '../child-process.ts'
import type { Launch } from '../launch.ts'
import { outcomeOfLaunch } from '../launch-status.ts'
import type { Outcome } from '../outcome.ts'
import { runFramed } from './launch-process.ts'

export interface NamespaceRun {
  readonly launch: Launch
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
  /** The outcome may come when the command has ended and nothing of it is left, before its walls are taken down. */
  readonly isEarly?: boolean
}

/** Never throws for a sandbox that could not be built: that is an outcome, too. */
export async function superviseNamespace({ launch, stdio, signal, isEarly = false }: NamespaceRun): Promise<Outcome> {
  const stop = async (child: ChildProcess): Promise<void> => {
    child.kill(signalOf(signal?.reason))
  }
  const isFramed = stdio.mode === 'capture' && launch.canFrame === true
  const end = isFramed
    ? await runFramed({ launch, stdio, signal, stop, isEarly })
    : await runChild({ launch, stdio, signal, stop })
  return outcomeOfLaunch(end)
}

const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function signalOf(reason: unknown): NodeJS.Signals {
  return PASSED_ON.find((name) => name === reason) ?? 'SIGTERM'
}
