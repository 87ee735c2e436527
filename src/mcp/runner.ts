/**
 * Runs the commands of all clients under the one policy that the server was started with. Nothing of a call becomes policy, but for the
 * directory that the command starts in.
 */
import { posix } from 'node:path'
import {
  type ExecOptions,
  type ExecResult,
  exec,
  type Listener,
  type LiveSandbox,
  openLiveSandbox,
  openSandbox,
  type Plan,
  type PolicyLayer,
  prepare,
  prepareZones,
  type Sandbox,
} from '../core.ts'
import { Turns } from './turns.ts'

/** Options from the start of the server. */
export type Granted = Required<Pick<ExecOptions, 'cwd' | 'env' | 'layers'>> & Pick<ExecOptions, 'profile'>

export interface Command {
  readonly words: readonly string[]
  /** Below the directory where commands start. */
  readonly cwd: string | undefined
  readonly stdin: string
  readonly onStdout: Listener
  readonly onStderr: Listener
  readonly signal: AbortSignal
  /** The run whose changes this one continues. */
  readonly cowContinue: string | undefined
}

/** Commands that run at once; the others wait. */
const MOST_AT_ONCE = 16
/** The first plan is made for this program; most plans do not depend on their program. */
const ANY_COMMAND = ['true']

export class Runner {
  private readonly turns = new Turns(MOST_AT_ONCE)

  private constructor(
    readonly granted: Granted,
    readonly plan: Plan,
    /** Keeps sandboxes ready. Not for copy-on-write: each command continues with the changes of the one before it. */
    private readonly sandbox: Sandbox | undefined,
  ) {}

  /** @throws SandboxError for a policy or a host that allows no run */
  static async open(granted: Granted): Promise<Runner> {
    const { plan } = await prepareZones(() => prepare({ ...granted, command: ANY_COMMAND }))
    return new Runner(granted, plan, plan.layer === undefined ? await openSandbox(granted) : undefined)
  }

  get isCopyOnWrite(): boolean {
    return this.plan.layer !== undefined
  }

  /** @throws SandboxError when the sandbox was refused; the reason of the signal where its turn has not come before */
  run(command: Command): Promise<ExecResult> {
    return this.turns.take(command.signal, () => this.start(command))
  }

  /** A sandbox that continues the changes of that run. @throws SandboxError where the backend has none that lives */
  openLive(cowContinue: string | undefined): Promise<LiveSandbox> {
    return openLiveSandbox({ ...this.granted, ...(cowContinue !== undefined && { cowContinue }) })
  }

  /** As `run`, in a sandbox of the client's, with the state of the command before it. */
  runIn(live: LiveSandbox, command: Command): Promise<ExecResult> {
    const { words, cwd, stdin, onStdout, onStderr, signal } = command
    const workdir = cwd === undefined ? {} : { workdir: posix.join(this.plan.workdir, cwd) }
    const asked = { command: words, keepState: true, ...workdir, onStdout, onStderr, signal }
    return this.turns.take(signal, () => live.run({ ...asked, stdin: Buffer.from(stdin) }) as Promise<ExecResult>)
  }

  private async start({ words, cwd, cowContinue, stdin, onStdout, onStderr, signal }: Command): Promise<ExecResult> {
    const asked = { command: words, onStdout, onStderr, signal, ...(stdin !== '' && { stdin }) }
    if (this.sandbox !== undefined && cwd === undefined) return await this.sandbox.exec(asked)
    const { granted } = this
    const layers = cwd === undefined ? granted.layers : [...granted.layers, this.startingIn(cwd)]
    return await exec({ ...granted, ...asked, layers, ...(cowContinue !== undefined && { cowContinue }) })
  }

  private startingIn(cwd: string): PolicyLayer {
    const workdir = posix.join(this.plan.workdir, cwd)
    return { layer: 'flag', source: 'the argument cwd', directory: this.granted.cwd, values: { workdir } }
  }

  async close(): Promise<void> {
    await this.sandbox?.close()
  }
}
