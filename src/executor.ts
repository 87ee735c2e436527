/**
 * The face for programs that come from a Docker executor: the same class shape, sandboxed by whatever this machine has.
 * Edge: the working directory of this process.
 *
 *     const executor = new SandboxExecutor({ timeout: 30_000, memoryLimit: '512m', cpuLimit: '2.0' })
 *     const { success, stdout } = await executor.execute(['npm', 'test'], '/path/to/project')
 */
import { SandboxError } from './error.ts'
import { checkOptions } from './library/check-options.ts'
import { closedError } from './library/closed-error.ts'
import type { SandboxInput } from './policy/keys/index.ts'
import type { PolicyLayer } from './policy/layer.ts'
import { refusal } from './report/classify.ts'
import { isolationLine } from './report/isolation.ts'
import { type TaskForm, taskForm } from './report/json.ts'
import type { Result } from './report/result.ts'
import { exec } from './run/exec.ts'
import { refuseVariables } from './run/refuse-variables.ts'

export interface SandboxExecutorOptions {
  /** Milliseconds of wall time; default 30 s, from the profile `task`. */
  readonly timeout?: number
  /** As Docker writes it: `512m`. */
  readonly memoryLimit?: string
  /** Cores: `2.0`. */
  readonly cpuLimit?: string | number
  /** Directory that the command works in when `execute` names none. */
  readonly workspaceDir?: string
  /** Variables of the command; what is not named here is not inherited. */
  readonly env?: Readonly<Record<string, string>>
  /** Gets one line about how each run is isolated; default: it is dropped. */
  readonly log?: (line: string) => void
}

export interface ExecuteOptions extends SandboxExecutorOptions {
  readonly image?: string
  readonly signal?: AbortSignal
}

/** `{success, stdout, stderr, exitCode, executionTime, timedOut, error?}`. */
export type ExecutionResult = TaskForm

export class SandboxExecutor implements AsyncDisposable {
  private isClosed = false

  /** @throws OptionsError */

  constructor(private readonly options: SandboxExecutorOptions = {}) {
    checkOptions('SandboxExecutor', options)
  }

  /**
   * Runs a command, or a line for `/bin/sh`, with the directory as its writable workspace. A refusal is a result too.
   * @throws SandboxError SANDBOX_CLOSED after `close`
   */
  async execute(command: string | readonly string[], workspaceDir?: string): Promise<ExecutionResult> {
    return this.run(command, { ...this.options, ...(workspaceDir !== undefined && { workspaceDir }) }, {})
  }

  /**
   * The same with the programs of a runtime (`node`, `python`, `cpp`, `java`, `dotnet`, `bash`): in a container.
   * @throws OptionsError; SandboxError SANDBOX_CLOSED after `close`
   */
  async executeIn(
    command: string | readonly string[],
    runtime: Runtime,
    options: ExecuteOptions = {},
  ): Promise<ExecutionResult> {
    checkOptions('executeIn', options)
    return this.run(command, { ...this.options, ...options }, { backend: 'docker', runtime })
  }

  /** No run begins any more; those that are under way end by themselves. Again does nothing. */
  async close(): Promise<void> {
    this.isClosed = true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  private async run(...words: Parameters<typeof run>): Promise<ExecutionResult> {
    if (this.isClosed) throw closedError('executor', 'new SandboxExecutor()')
    return run(...words)
  }
}

type Runtime = NonNullable<SandboxInput['runtime']>

async function run(
  command: string | readonly string[],
  options: ExecuteOptions,
  more: Pick<SandboxInput, 'backend' | 'runtime'>,
): Promise<ExecutionResult> {
  refuseVariables()
  const words = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
  const result = await exec({
    command: words,
    profile: PROFILE,
    mode: 'capture',
    stdin: 'ignore',
    cwd: options.workspaceDir ?? process.cwd(),
    layers: [layerOf(options, more)],
    ...(options.signal !== undefined && { signal: options.signal }),
  }).catch((error: unknown) => refused(error, words))
  options.log?.(isolationLine(result.backend))
  return taskForm(result)
}

/** The classic container task: workspace writable, 512m, 2 cpus, 30 s. */
const PROFILE = 'task'

function refused(error: unknown, command: readonly string[]): Result {
  if (error instanceof SandboxError) return refusal(error, command, PROFILE)
  throw error
}

/** Names of the values in messages. */
const PLACES = {
  'resources.timeout': 'timeout',
  'resources.memory': 'memoryLimit',
  'resources.cpus': 'cpuLimit',
} as const

/** Options as the last layer of the policy: whatever they do not name comes from the profile. */
export function layerOf(options: ExecuteOptions, more: Pick<SandboxInput, 'backend' | 'runtime'>): PolicyLayer {
  const { timeout, memoryLimit, cpuLimit, env, image } = options
  const resources = {
    ...(timeout !== undefined && { timeout: `${timeout}ms` }),
    ...(memoryLimit !== undefined && { memory: memoryLimit }),
    ...(cpuLimit !== undefined && { cpus: Number(cpuLimit) }),
  }
  return {
    layer: 'flag',
    source: 'SandboxExecutor',
    directory: options.workspaceDir ?? process.cwd(),
    locations: PLACES,
    values: { ...more, resources, ...(env && { env: { set: { ...env } } }), ...(image !== undefined && { image }) },
  }
}
