/** A run by a plan that was made before: launch is all that has to be started. */
import type { ChildStdio } from '../backends/child-process.ts'
import { relaunchOf } from '../backends/namespace/build.ts'
import { superviseKept } from '../backends/namespace/run.ts'
import type { Result } from '../report/result.ts'
import type { GuardedCallbacks } from '../run/callbacks.ts'
import { judge } from '../run/exec.ts'
import type { Prepared } from '../run/plan-run.ts'

export interface KeptRun {
  readonly prepared: Prepared
  /** The command's environment. */
  readonly env: Readonly<Record<string, string>>
  /** Its path for this process, or what is in it. */
  readonly launchFile: string | Uint8Array
  /** Files that must be on disk, or the command is not started. */
  readonly files: Uint8Array | undefined
}

/** @returns undefined when launch found the plan stale: then nothing has been run */
export async function runKept(
  { prepared, env, launchFile, files }: KeptRun,
  { command, stdin, onStdout, onStderr, signal }: GuardedCallbacks & { readonly command: readonly string[] },
): Promise<Result | undefined> {
  const { plan } = prepared
  const launch = relaunchOf({ launchFile, command, env, guards: files })
  const stdio: ChildStdio = {
    mode: 'capture',
    stdin: stdin ?? 'ignore',
    outputCap: plan.limits.output ?? null,
    ...(onStdout === undefined ? {} : { onStdout }),
    ...(onStderr === undefined ? {} : { onStderr }),
  }
  const outcome = await superviseKept({ launch, stdio, signal, deadlineMs: plan.limits.timeoutMs, isEarly: true })
  return outcome && (await judge({ ...prepared, request: { ...prepared.request, command } }, outcome))
}
