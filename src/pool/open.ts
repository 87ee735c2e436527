/**
 * A sandbox that stays open: the policy is read once, sandboxes built from it are kept ready, and every run gets a fresh one.
 * Edge: process.env, the clock, its pool's directory.
 *
 * A keeper of our own (keeper.ts) builds them; each is connected to as soon as it is ready. A run whose plan is exactly theirs is
 * written to one of them; every other run, and every run while none is ready, takes the cold way and has the same result.
 */
import { rm } from 'node:fs/promises'
import { makeOwnDirectory, makeZoneDirectories, newRunId } from '../edges.ts'
import { type ExecOptions, exec, judge, type Prepared, plainLaunch, prepare } from '../exec.ts'
import { isPoolable } from '../launch-cache/cacheable.ts'
import type { Result } from '../report/result.ts'
import type { Listener } from '../supervisor/framed.ts'
import { type Keeper, type KeeperWord, startKeeper } from './keeper.ts'
import { poolsDirectory } from './place.ts'
import { WarmSandbox } from './warm-run.ts'

export interface SandboxOptions extends Pick<ExecOptions, 'profile' | 'policy' | 'layers' | 'cwd' | 'env'> {
  /** Sandboxes that are kept ready, 0 to 64; default 2. */
  readonly warm?: number
}

export interface SandboxCommand {
  readonly command: readonly string[]
  /** The caller's environment for this run; default that of the sandbox. */
  readonly env?: ExecOptions['env']
  /** Default: empty. */
  readonly stdin?: Uint8Array
  /** While a promise that it returns is pending, the command's output waits. */
  readonly onStdout?: Listener
  readonly onStderr?: Listener
  /** Ends the run; a reason that is the name of a signal is passed on to the command. */
  readonly signal?: AbortSignal
}

export interface Sandbox extends AsyncDisposable {
  /**
   * Runs one command in a fresh sandbox of this policy.
   * @throws SandboxError when the sandbox was refused; a command that fails is a result
   */
  readonly exec: (command: SandboxCommand) => Promise<Result>
  /** Sandboxes that are ready at this moment. */
  readonly ready: () => number
  /** How many runs a ready sandbox has served, and how many went the cold way. */
  readonly served: () => { readonly warm: number; readonly cold: number }
  /** Ends what is kept ready. Runs that are under way end by themselves. */
  readonly close: () => Promise<void>
}

const STANDARD_WARM = 2
/** The plan of most commands does not depend on which one it is; this one stands for them. */
const ANY_PROGRAM = 'true'
/** Plans that are remembered, one a program. */
const MOST_PLANS = 256
/** Milliseconds before a keeper that has ended is started again. */
const RESTART_MS = 1_000

/** @throws SandboxError for a policy or a host that allows no run */
export async function openSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  await makeOwnDirectory(options.env ?? process.env)
  const first = await prepare(capturing(options, [ANY_PROGRAM]))
  const prepared = (await makeZoneDirectories(first.plan)) ? await prepare(first.options) : first
  return new OpenSandbox(options, prepared)
}

function capturing({ warm: _, ...options }: SandboxOptions, command: readonly string[]): ExecOptions {
  return { ...options, command, mode: 'capture' }
}

/** A keeper that was killed leaves its directory; the name is ours alone. */
const removePlace = (directory: string): Promise<void> => rm(directory, { recursive: true, force: true })

class OpenSandbox implements Sandbox {
  private readonly options: SandboxOptions
  private readonly launchFile: Buffer
  private readonly size: number
  private readonly pools: string
  private readonly plans = new Map<string, Promise<Prepared>>()
  private readonly idle = new Set<WarmSandbox>()
  private keeper: { readonly keeper: Keeper; readonly directory: string } | undefined
  private restartAt = 0
  private isClosed = false
  private readonly counts = { warm: 0, cold: 0 }

  constructor(options: SandboxOptions, prepared: Prepared) {
    const { warm = STANDARD_WARM } = options
    this.options = options
    this.launchFile = Buffer.from(plainLaunch(prepared))
    this.size = isPoolable(prepared) ? warm : 0
    this.pools = poolsDirectory(options.env ?? process.env, prepared.facts.uid)
    this.plans.set(ANY_PROGRAM, Promise.resolve(prepared))
    this.keep()
  }

  ready = (): number => this.idle.size

  served = () => ({ ...this.counts })

  exec = async (asked: SandboxCommand): Promise<Result> => {
    const { command, env, stdin, onStdout, onStderr, signal } = asked
    this.keep()
    const warm = this.size === 0 || command[0] === undefined ? undefined : await this.runWarm(asked)
    this.counts[warm === undefined ? 'cold' : 'warm'] += 1
    if (warm !== undefined) return warm
    return exec({
      ...capturing(this.options, command),
      ...(env === undefined ? {} : { env }),
      stdin: stdin ?? 'ignore',
      ...(onStdout === undefined ? {} : { onStdout }),
      ...(onStderr === undefined ? {} : { onStderr }),
      ...(signal === undefined ? {} : { signal }),
    })
  }

  close = async (): Promise<void> => {
    this.isClosed = true
    for (const warm of this.idle) warm.close()
    this.idle.clear()
    const { keeper, directory = '' } = this.keeper ?? {}
    this.keeper = undefined
    if (keeper === undefined) return
    const { child } = keeper
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.ref()
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGTERM')) await ended
    keeper.release()
    await removePlace(directory)
  };

  [Symbol.asyncDispose] = (): Promise<void> => this.close()

  private async runWarm(asked: SandboxCommand): Promise<Result | undefined> {
    const { command, env, stdin = new Uint8Array(0), onStdout, onStderr, signal } = asked
    if (this.idle.size === 0 || signal?.aborted === true || command.some((word) => word.includes('\0')))
      return undefined
    const prepared = await this.planFor(command, env)
    if (!isPoolable(prepared) || !this.launchFile.equals(plainLaunch(prepared))) return undefined
    const warm = this.take()
    const outcome = await warm?.run({
      command,
      env: prepared.commandEnv,
      stdin,
      outputCap: prepared.plan.limits.output ?? null,
      onStdout,
      onStderr,
      signal,
    })
    if (outcome === undefined) return undefined
    return judge({ ...prepared, request: { ...prepared.request, command } }, outcome)
  }

  private take(): WarmSandbox | undefined {
    for (const warm of this.idle) {
      this.idle.delete(warm)
      if (warm.usable) return warm
    }
    return undefined
  }

  /** A plan depends on the program (its toolchain) and on the caller's environment, never on the arguments. */
  private planFor(command: readonly string[], env: ExecOptions['env']): Promise<Prepared> {
    const [program = ''] = command
    if (env !== undefined) return prepare({ ...capturing(this.options, command), env })
    const known = this.plans.get(program)
    if (known !== undefined) return known
    if (this.plans.size >= MOST_PLANS) this.plans.clear()
    const made = prepare(capturing(this.options, [program]))
    this.plans.set(program, made)
    made.catch(() => this.plans.delete(program))
    return made
  }

  private keep(): void {
    if (this.isClosed || this.size === 0 || this.keeper !== undefined || performance.now() < this.restartAt) return
    const name = `lib${newRunId()}`
    const keeper = startKeeper({
      pools: this.pools,
      name,
      size: this.size,
      idleSeconds: 0,
      launchFile: this.launchFile,
      leashed: true,
    })
    this.keeper = { keeper, directory: `${this.pools}/${name}` }
    keeper.listen((word) => void this.hear(keeper, word))
    keeper.unref()
  }

  private async hear(keeper: Keeper, word: KeeperWord): Promise<void> {
    if (keeper !== this.keeper?.keeper) return
    if (word.word !== 'ready') {
      const { directory } = this.keeper
      this.keeper = undefined
      this.restartAt = performance.now() + RESTART_MS
      await removePlace(directory)
      return
    }
    const warm = await WarmSandbox.open(`${this.keeper.directory}/r${word.id}`, (gone) => this.idle.delete(gone))
    if (warm === undefined) return
    if (this.isClosed) warm.close()
    else this.idle.add(warm)
  }
}
