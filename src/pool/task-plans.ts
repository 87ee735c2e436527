/**
 * Plans of tasks. Most tasks of an agent need the same plan but for their directory, which is fresh for each: so a plan is made once for
 * the path, and told of each directory that is made there. The runner looks each time whether what the plan was made from still holds,
 * the files that a task brings among it; where it does not, the plan is made again.
 */

import type { Result } from '../report/result.ts'
import { withCallbacks } from '../run/callbacks.ts'
import { exec } from '../run/exec.ts'
import type { ExecOptions } from '../run/plan-run.ts'
import { runKept } from './kept-run.ts'
import { type KeptPlan, keepPlan } from './plan-cache.ts'

/** Plans that are kept; then all are dropped. */
const MOST_PLANS = 256

export interface TaskCommand extends ExecOptions {
  readonly cwd: string
  readonly env: NonNullable<ExecOptions['env']>
  /** All that `narrow` depends on: commands of one variant have one plan, where program and directory are the same. */
  readonly variant: string
}

type Options = Omit<TaskCommand, 'variant'>

export class TaskPlans {
  private readonly kept = new Map<string, KeptPlan>()

  /** Runs one command, as `exec` does. */
  async exec({ variant, ...options }: TaskCommand): Promise<Result> {
    const [program = ''] = options.command
    const key = JSON.stringify([options.cwd, program, variant])
    const result = (await this.attempt(key, options)) ?? (await this.attemptAnew(key, program, options))
    return result ?? (await exec(options))
  }

  /** @returns undefined when no plan holds; then nothing has been run */
  private async attempt(key: string, options: Options): Promise<Result | undefined> {
    const plan = this.kept.get(key)?.forNew(options.cwd)
    const env = plan?.environment(options.env)
    if (plan === undefined || env === undefined) return undefined
    this.kept.set(key, plan)
    const { prepared, launchFile, files } = plan
    const run = { prepared, env, launchFile, files }
    return await withCallbacks(options, (callbacks) => runKept(run, { ...callbacks, command: options.command }))
  }

  /** @returns undefined for a plan that is good for one run only */
  private async attemptAnew(key: string, program: string, options: Options): Promise<Result | undefined> {
    const { command: _, stdin: __, onStdout: ___, onStderr: ____, signal: _____, ...rest } = options
    const plan = await keepPlan({ options: rest, program })
    if (plan.files === undefined) return undefined
    if (this.kept.size >= MOST_PLANS) this.kept.clear()
    this.kept.set(key, plan)
    return await this.attempt(key, options)
  }
}
