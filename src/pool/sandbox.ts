/**
 * A sandbox that stays open: it is planned once, and again when something that the plan was made from has changed (plan-cache.ts);
 * sandboxes built from it are kept ready, and every run gets a fresh one.
 * Edge: process.env, the clock, its pool's directory.
 *
 * A keeper of our own (keeper.ts) builds them; each is connected to as soon as it is ready. A run whose plan is exactly theirs is
 * written to one of them; every other run, and every run while none is ready, is built when it comes and has the same result.
 */
import { rm } from 'node:fs/promises'
import type { Listener } from '../backends/capture.ts'
import { backendNamed } from '../backends/index.ts'
import { NO_INPUT } from '../backends/input.ts'
import { SandboxError } from '../error.ts'
import { isPoolable } from '../launch-cache/eligibility.ts'
import { checkOptions } from '../library/check-options.ts'
import { closedError } from '../library/closed-error.ts'
import { SharedSandbox } from '../library/shared-sandbox.ts'
import { type SpawnedCommand, spawnBy } from '../library/spawn.ts'
import { inputFrom, type Stdin } from '../library/stdin.ts'
import type { Result } from '../report/result.ts'
import { type GuardedCallbacks, withCallbacks } from '../run/callbacks.ts'
import { makeOwnDirectory } from '../run/caller.ts'
import { exec, judge } from '../run/exec.ts'
import { type ExecResult, withHandle } from '../run/layer-handle.ts'
import type { LiveCommand } from '../run/live-sandbox.ts'
import type { ExecOptions } from '../run/plan-run.ts'
import { newRunId } from '../run/run-id.ts'
import { type Keeper, type KeeperWord, startKeeper } from './keeper.ts'
import { runKept } from './kept-run.ts'
import { type KeptPlan, type PlannedRun, type PlanOptions, Plans } from './plan-cache.ts'
import { poolsDirectory } from './pool-directory.ts'
import { WarmSandbox } from './warm-sandbox.ts'

export interface SandboxOptions extends Pick<ExecOptions, 'profile' | 'policy' | 'layers' | 'cwd' | 'env'> {
  /** Sandboxes that are kept ready, 0 to 64; default 2. */
  readonly warm?: number
}

export interface SandboxSpawn {
  readonly command: readonly string[]
  /** The caller's environment for this run; default that of the sandbox. */
  readonly env?: ExecOptions['env']
  /** Ends the run; the reasons SIGINT, SIGTERM and SIGHUP are passed on to the command, any other is SIGTERM to it. */
  readonly signal?: AbortSignal
}

export interface SandboxCommand extends SandboxSpawn {
  /** Default: empty. */
  readonly stdin?: Stdin
  /** While a promise that it returns is pending, the command's output waits. What it fails with ends the run, and is what is thrown. */
  readonly onStdout?: Listener
  readonly onStderr?: Listener
}

/** A command in the sandbox that lives. */
export interface SandboxRun extends Omit<LiveCommand, 'stdin'> {
  /** Default: empty. */
  readonly stdin?: Stdin
}

/** A command as its runs see it. */
type Request = SandboxSpawn & GuardedCallbacks

export interface Sandbox extends AsyncDisposable {
  /**
   * Runs one command in a fresh sandbox of this policy.
   * @throws SandboxError when the sandbox was refused, or closed before (SANDBOX_CLOSED); OptionsError; whatever a listener or `stdin`
   * has failed with, which ends the run. A command that fails is a result.
   */
  readonly exec: (command: SandboxCommand) => Promise<ExecResult>
  /**
   * Starts one command in a fresh sandbox of this policy.
   * @throws OptionsError
   */
  readonly spawn: (command: SandboxSpawn) => SpawnedCommand
  /**
   * Runs one command in a sandbox that lives until `close`, the same for each call; it is started by the first one. What a command leaves
   * running is killed at its end, and its files stay. If that sandbox has ended, the next call starts another one, with a warning.
   * @throws as `exec`, and NO_BACKEND where the policy's backend has no such sandbox, POLICY_INVALID for copy-on-write zones
   */
  readonly run: (command: SandboxRun) => Promise<ExecResult>
  /** Sandboxes that are ready at this moment. */
  readonly ready: () => number
  /** How many runs a ready sandbox has served, and how many went the cold way. */
  readonly served: () => { readonly warm: number; readonly cold: number }
  /** Ends what is kept ready, and no run begins any more. Runs that are under way end by themselves. Again does nothing. */
  readonly close: () => Promise<void>
}

const STANDARD_WARM = 2
/** The plan of most commands does not depend on which one it is; this one stands for them. */
const ANY_PROGRAM = 'true'
/** Milliseconds before a keeper that has ended is started again: at first, and doubled up to the last while it builds nothing. */
const RESTART_MS = { first: 1_000, last: 16_000 }

/** @throws SandboxError for a policy or a host that allows no run; OptionsError */
export async function openSandbox(given: SandboxOptions = {}): Promise<Sandbox> {
  checkOptions('openSandbox', given)
  const { warm = STANDARD_WARM, ...options } = given
  makeOwnDirectory(options.env ?? process.env)
  const plans = new Plans(options)
  return new OpenSandbox({ options, warm, plans, first: await plans.make(ANY_PROGRAM, undefined) })
}

/** A keeper that was killed leaves its directory; the name is ours alone. */
const removePoolDirectory = (directory: string): Promise<void> => rm(directory, { recursive: true, force: true })

interface Opening {
  readonly options: PlanOptions
  readonly warm: number
  readonly plans: Plans
  readonly first: PlannedRun
}

interface Served {
  readonly result: Result
  readonly isWarm: boolean
}

/** What is kept ready, and the programs that it was right for. */
interface Built {
  readonly launchFile: Buffer
  readonly programs: Set<string>
}

/** A ready sandbox, out of the others' reach. */
interface Claim {
  /** From what it was built. */
  built: Built
  warm: WarmSandbox | undefined
}

interface PlannedRequest {
  readonly request: Request
  readonly run: PlannedRun
  /** For this run, unless it turns out to need another one. */
  readonly claim: Claim
}

class OpenSandbox implements Sandbox {
  private readonly options: PlanOptions
  private readonly size: number
  private readonly pools: string
  private readonly plans: Plans
  private readonly idle = new Set<WarmSandbox>()
  private built: Built
  private keeper: { readonly keeper: Keeper; readonly directory: string } | undefined
  private restart: NodeJS.Timeout | undefined
  private restartMs = RESTART_MS.first
  private closing: Promise<void> | undefined
  private readonly isCopyOnWrite: boolean
  /** That of `run`. */
  private shared: SharedSandbox | undefined
  private readonly counts = { warm: 0, cold: 0 }

  constructor({ options, warm, plans, first }: Opening) {
    this.options = options
    this.plans = plans
    this.isCopyOnWrite = first.prepared.plan.layer !== undefined
    this.built = { launchFile: first.kept.launchFile, programs: new Set() }
    this.size = isPoolable(first.prepared) ? warm : 0
    this.pools = poolsDirectory(options.env ?? process.env, first.prepared.facts.uid)
    this.keep()
  }

  ready = (): number => this.idle.size

  served = () => ({ ...this.counts })

  exec = async (request: SandboxCommand): Promise<ExecResult> => {
    checkOptions('sandbox.exec', request)
    const { stdin, ...asked } = request
    return this.guarded(stdin === undefined ? asked : { ...asked, stdin: inputFrom(stdin) })
  }

  spawn = (request: SandboxSpawn): SpawnedCommand => {
    checkOptions('sandbox.spawn', request)
    return spawnBy((streams) => this.guarded({ ...request, ...streams }), request.signal)
  }

  run = async (request: SandboxRun): Promise<ExecResult> => {
    checkOptions('sandbox.run', request)
    this.refuseClosed()
    if (this.isCopyOnWrite)
      throw new SandboxError('POLICY_INVALID', 'run(): changes to copy-on-write zones are known only at its end.', {
        hint: 'exec(), whose result has the changes of its command',
      })
    this.shared ??= new SharedSandbox(this.options)
    const { stdin, ...asked } = request
    const result = await this.shared.run(stdin === undefined ? asked : { ...asked, stdin: inputFrom(stdin) })
    return withHandle(result, { env: this.options.env, signal: request.signal })
  }

  private async guarded(request: Request): Promise<ExecResult> {
    this.refuseClosed()
    const result = await withCallbacks(request, (callbacks) => this.runFresh({ ...request, ...callbacks }))
    return withHandle(result, { env: request.env ?? this.options.env, signal: request.signal })
  }

  private refuseClosed(): void {
    if (this.isClosed) throw closedError('sandbox', 'openSandbox')
  }

  private get isClosed(): boolean {
    return this.closing !== undefined
  }

  private async runFresh(request: Request): Promise<Result> {
    const [program] = request.command
    if (program === undefined || request.command.some((word) => word.includes('\0'))) return this.runAnew(request)
    const claim: Claim = { built: this.built, warm: undefined }
    const onKept = (kept: KeptPlan): void => this.lookAhead(kept, claim)
    const planned = await this.plans
      .attempt({ program, env: request.env, onKept }, (run) => this.runPlanned(program, { request, run, claim }))
      .finally(() => this.admit(claim))
    const { result, isWarm } = planned ?? { result: await this.runAnew(request), isWarm: false }
    this.counts[isWarm ? 'warm' : 'cold'] += 1
    return result
  }

  close = (): Promise<void> => {
    this.plans.close()
    this.closing ??= Promise.all([this.endKeeper(), this.shared?.close()]).then(() => undefined)
    return this.closing
  };

  [Symbol.asyncDispose] = (): Promise<void> => this.close()

  /** @returns undefined when something that the plan was made from has changed */
  private async runPlanned(program: string, planned: PlannedRequest): Promise<Served | undefined> {
    await this.follow(program, planned.run)
    this.keep()
    return (await this.runWarm(planned)) ?? (await this.runCold(planned))
  }

  /** A sandbox wakes up, and its runner looks at files, while the command is prepared here. */
  private lookAhead(kept: KeptPlan, claim: Claim): void {
    if (kept.files === undefined || !this.fits(kept)) return
    claim.built = this.built
    claim.warm = this.take(kept.files)
    claim.warm?.lookAhead(kept.files)
  }

  private fits({ launchFile, prepared }: KeptPlan): boolean {
    return this.size > 0 && isPoolable(prepared) && this.built.launchFile.equals(launchFile)
  }

  /** What is kept ready follows the plan that it was built for: a profile that was edited makes the old ones useless. */
  private async follow(program: string, run: PlannedRun): Promise<void> {
    if (this.fits(run.kept)) return void this.built.programs.add(program)
    if (!this.built.programs.has(program) || !isPoolable(run.prepared)) return
    this.built = { launchFile: run.kept.launchFile, programs: new Set([program]) }
    await this.endKeeper()
  }

  private async runWarm({ request, run, claim }: PlannedRequest): Promise<Served | undefined> {
    const { prepared, env, kept } = run
    const { command, stdin = NO_INPUT, onStdout, onStderr, signal } = request
    if (!this.fits(run.kept) || signal?.aborted === true) return undefined
    const { output: outputCap = null, timeoutMs: deadlineMs } = prepared.plan.limits
    const { files } = kept
    const input = typeof stdin === 'string' ? NO_INPUT : stdin
    const streams = { stdin: input, outputCap, onStdout, onStderr, deadlineMs }
    const outcome = await this.takeClaimed(claim, files)?.run({ command, env, files, signal, ...streams })
    const result = outcome && (await judge({ ...prepared, request: { ...prepared.request, command } }, outcome))
    return result && { result, isWarm: true }
  }

  /** @returns undefined when launch found the plan stale */
  private async runCold({ request, run }: PlannedRequest): Promise<Served | undefined> {
    const { prepared, env, kept } = run
    const { plan } = prepared
    if (!backendNamed(plan.backend).hasLaunchFile || plan.tty || kept.path === undefined)
      return { result: await this.runAnew(request), isWarm: false }
    const result = await runKept({ prepared, env, launchFile: kept.path, files: kept.files }, request)
    return result && { result, isWarm: false }
  }

  /** The way of every other run. */
  private runAnew({ command, env, stdin, onStdout, onStderr, signal }: Request): Promise<Result> {
    return exec({
      ...this.options,
      command,
      mode: 'capture',
      ...(env === undefined ? {} : { env }),
      stdin: stdin ?? 'ignore',
      ...(onStdout === undefined ? {} : { onStdout }),
      ...(onStderr === undefined ? {} : { onStderr }),
      ...(signal === undefined ? {} : { signal }),
    })
  }

  private take(files: Uint8Array | undefined): WarmSandbox | undefined {
    for (const warm of this.idle) {
      this.idle.delete(warm)
      if (warm.usable && warm.takes(files)) return warm
      warm.close()
    }
    return undefined
  }

  private takeClaimed(claim: Claim, files: Uint8Array | undefined): WarmSandbox | undefined {
    const { built, warm } = claim
    if (warm === undefined || built !== this.built || !warm.usable || !warm.takes(files)) return this.take(files)
    claim.warm = undefined
    return warm
  }

  /** What was built from another plan serves no run any more. */
  private admit({ built, warm }: Claim): void {
    if (warm === undefined) return
    if (this.isClosed || built !== this.built || !warm.usable) warm.close()
    else this.idle.add(warm)
  }

  private keep(): void {
    if (this.isClosed || this.size === 0 || this.keeper !== undefined || this.restart !== undefined) return
    const name = `lib${newRunId()}`
    const keeper = startKeeper({
      pools: this.pools,
      name,
      size: this.size,
      idleSeconds: 0,
      launchFile: this.built.launchFile,
      directory: '',
      endsWithUs: true,
    })
    this.keeper = { keeper, directory: `${this.pools}/${name}` }
    keeper.listen((word) => void this.onKeeperWord(keeper, word))
    keeper.unref()
  }

  /** A host that is short of something for a moment is no reason to be without ready sandboxes until the next run. */
  private keepLater(): void {
    this.restart = setTimeout(() => {
      this.restart = undefined
      this.keep()
    }, this.restartMs).unref()
    this.restartMs = Math.min(2 * this.restartMs, RESTART_MS.last)
  }

  private async endKeeper(): Promise<void> {
    clearTimeout(this.restart)
    this.restart = undefined
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
    await removePoolDirectory(directory)
  }

  private async onKeeperWord(keeper: Keeper, word: KeeperWord): Promise<void> {
    if (keeper !== this.keeper?.keeper) return
    if (word.word !== 'ready') {
      const { directory } = this.keeper
      this.keeper = undefined
      if (!this.isClosed) this.keepLater()
      await removePoolDirectory(directory)
      return
    }
    const { built } = this
    const warm = await WarmSandbox.open(`${this.keeper.directory}/r${word.id}`, (gone) => this.idle.delete(gone))
    if (warm !== undefined) this.restartMs = RESTART_MS.first
    this.admit({ built, warm })
  }
}
