/** The function that programs call: it checks the options; everything else is the same as in any other run, see run/exec.ts. Pure. */
import type { Plan } from '../plan/plan.ts'
import { type ExecResult, execWithHandle } from '../run/layer-handle.ts'
import { prepare, type ExecOptions as RunOptions } from '../run/plan-run.ts'
import { checkOptions } from './check-options.ts'
import { type SpawnedCommand, spawnBy } from './spawn.ts'
import { inputFrom, type Stdin } from './stdin.ts'

/** Where no unit is said: times are milliseconds, sizes are bytes. */
export interface ExecOptions extends Omit<RunOptions, 'stdin' | 'invocation' | 'ending' | 'narrowedFrom'> {
  /** Default: empty; with `mode: 'inherit'` our own. */
  readonly stdin?: Stdin
}

export type SpawnOptions = Omit<ExecOptions, 'mode' | 'stdin' | 'onStdout' | 'onStderr'>

/**
 * Runs one command in one sandbox.
 * @returns the result, also of a command that failed, was ended by a limit, or by `signal` (reason `cancelled`)
 * @throws OptionsError for options that cannot be understood; SandboxError when the sandbox was refused; whatever a listener or `stdin`
 * has failed with, which ends the run
 */
export async function exec(options: ExecOptions): Promise<ExecResult> {
  checkOptions('exec', options)
  return execWithHandle(runOptions(options))
}

/**
 * Starts one command in one sandbox, for servers and everything that is talked to while it runs. The limits of the policy hold for it,
 * the time limit too: `policy: { resources: { timeout: 'none' } }` for a server.
 * @throws OptionsError
 */
export function spawn(options: SpawnOptions): SpawnedCommand {
  checkOptions('spawn', options)
  return spawnBy((streams) => execWithHandle({ ...options, ...streams, mode: 'capture' }), options.signal)
}

/**
 * Plans `exec` with these options, without running it.
 * @throws OptionsError; SandboxError for a policy or a host that allows no run
 */
export async function plan(options: ExecOptions): Promise<Plan> {
  checkOptions('exec', options, 'plan')
  const { stdin: _, ...asked } = options
  return (await prepare(asked)).plan
}

function runOptions({ stdin, ...options }: ExecOptions): RunOptions {
  if (stdin !== undefined) return { ...options, stdin: inputFrom(stdin) }
  return options.mode === 'inherit' ? { ...options, stdin: 'inherit' } : options
}
