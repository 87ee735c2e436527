/**
 * The start of a planned run by the backend that the plan has chosen.
 * Edge: this process as the caller: its environment and stdin.
 */
import { isatty } from 'node:tty'
import type { BackendRun } from '../backends/backend.ts'
import type { ChildStdio } from '../backends/child-process.ts'
import { backendNamed } from '../backends/index.ts'
import type { Launch } from '../backends/launch.ts'
import type { Outcome } from '../backends/outcome.ts'
import { runsDirectory } from '../backends/runs-directory.ts'
import { nativeDirectory } from '../os/native-programs.ts'
import { shellWord } from '../report/hints.ts'
import type { Prepared } from './plan-run.ts'
import { newRunId } from './run-id.ts'

/** Runs the plan to its end. */
export async function start(prepared: Prepared): Promise<Outcome> {
  const { plan, options, policy } = prepared
  const { run } = await backendNamed(plan.backend).load()
  return run({
    ...plannedRun(prepared, newRunId()),
    stdio: stdioOf(prepared),
    signal: options.signal,
    bestEffort: policy.bestEffort,
  })
}

/** The exact process of a plan, for people: its argv and what it reads. */
export async function printLaunch(prepared: Prepared): Promise<string> {
  const { build, print } = await backendNamed(prepared.plan.backend).load()
  const planned = plannedRun(prepared, 'run')
  return `${printWords(build(planned))}${print?.(planned) ?? ''}`
}

function printWords({ file, argv }: Pick<Launch, 'file' | 'argv'>): string {
  return `${[file, ...argv].map(shellWord).join(' ')}\n`
}

function plannedRun({ plan, facts, request, commandEnv, options }: Prepared, runId: string): BackendRun {
  const env = options.env ?? process.env
  return {
    plan,
    facts,
    env,
    cwd: request.cwd,
    run: {
      runId,
      command: request.command,
      ...(options.commandBytes === undefined ? {} : { commandBytes: options.commandBytes }),
      commandEnv,
      nativeDirectory: nativeDirectory(),
      runsDirectory: runsDirectory(env, facts.uid),
      stdinIsTerminal: isatty(0),
    },
  }
}

function stdioOf({ options, plan }: Prepared): ChildStdio {
  return {
    mode: options.mode ?? 'capture',
    stdin: options.stdin ?? 'ignore',
    outputCap: plan.limits.output ?? null,
    ...(options.onStdout === undefined ? {} : { onStdout: options.onStdout }),
    ...(options.onStderr === undefined ? {} : { onStderr: options.onStderr }),
  }
}
