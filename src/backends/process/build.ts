/**
 * The process backend: the command as a plain process of the host, for development only. Pure.
 * Nothing is walled off. What still holds: rules of the worker, the deadline, the output cap, rlimits, and a memory watchdog.
 */
import { SandboxError } from '../../error.ts'
import type { Plan } from '../../plan/plan.ts'
import type { RunInputs } from '../backend.ts'
import type { Launch } from '../launch.ts'

export interface ProcessInputs extends RunInputs {
  /** The operator set LLM_DO_ALLOW_UNSANDBOXED=1. */
  readonly allowUnsandboxed?: boolean
}

/** Variable by which the processes of a run are found again, wherever they moved. */
export const RUN_VARIABLE = 'LLM_DO_RUN'

/**
 * Sets soft and hard limits, then becomes the command. `ulimit` counts as POSIX says: 512-byte blocks for -c, seconds for -t.
 * A shell that lacks a word fails before the command runs, with 125.
 */
const LIMITS_SCRIPT = 'ulimit -c 0 || exit 125; [ "$1" = - ] || ulimit -t "$1" || exit 125; shift; exec "$@"'

export function buildProcess(plan: Plan, run: ProcessInputs): Launch {
  if (run.allowUnsandboxed !== true) throw notAllowed()
  const { cpuTimeMs } = plan.limits
  const cpuSeconds = cpuTimeMs === undefined ? '-' : String(Math.ceil(cpuTimeMs / 1000))
  return {
    file: '/bin/sh',
    argv: ['-c', LIMITS_SCRIPT, 'llm-do', cpuSeconds, ...run.command],
    env: { ...run.commandEnv, [RUN_VARIABLE]: run.runId },
    cwd: plan.workdir,
    descriptors: [],
  }
}

function notAllowed(): SandboxError {
  return new SandboxError('NO_BACKEND', 'process isolates nothing and must be allowed twice', {
    hint: 'LLM_DO_ALLOW_UNSANDBOXED=1 llm-do exec --backend process ...',
  })
}
