/**
 * A sandbox that stays open: it is planned once, and again when something that the plan was made from has changed (plan-cache.ts);
 * sandboxes built from it are kept ready, and every run gets a fresh one.
 * Edge: process.env, the clock.
 *
 * Each is a connection to the fork server of this process (backends/namespace/fork-server.ts), which also starts the other runs. A run whose plan
 * is exactly theirs is written to one of them; every other run, and every run while none is ready, is built when it comes and has the same result.
 */
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
import { refuseVariables } from '../run/refuse-variables.ts'
import { runKept } from './kept-run.ts'
import { type KeptPlan, type PlannedRun, type PlanOptions, Plans } from './plan-cache.ts'
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
/** The plan of most commands does not depend on which one it is; this one represents them. */
const ANY_PROGRAM = 'true'
/** Milliseconds without a run after which one more is built. */
const QUIET_MS = 20
/** Milliseconds after a failure: at first, and doubled up to the last while no run is served. */
const REST_MS = { first: 500, last: 8_000 }

/** @throws SandboxError for a policy or a host that allows no run; OptionsError */
export async function openSandbox(given: SandboxOptions = {}): Promise<Sandbox> {
  checkOptions('openSandbox', given)
  const { warm = STANDARD_WARM, ...options } = given
  refuseVariables(options.env)
  makeOwnDirectory(options.env ?? process.env)
  const plans = new Plans(options)
  return new OpenSandbox({ options, warm, plans, first: await plans.make(ANY_PROGRAM, undefined) })
}

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

/** The plan of the sandboxes that are ready, and the programs that it serves. */
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
  private readonly plans: Plans
  private readonly idle = new Set<WarmSandbox>()
  private built: Built
  private building: Promise<void> | undefined
  private readonly unneeded = new AbortController()
  private next: NodeJS.Timeout | undefined
  private restMs = REST_MS.first
  private restUntilMs = 0
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
      .finally(() => {
        void this.admit(claim)
        this.keep()
      })
    const { result, isWarm } = planned ?? { result: await this.runAnew(request), isWarm: false }
    this.counts[isWarm ? 'warm' : 'cold'] += 1
    return result
  }

  close = (): Promise<void> => {
    this.closing ??= this.end()
    return this.closing
  };

  [Symbol.asyncDispose] = (): Promise<void> => this.close()

  private async end(): Promise<void> {
    this.plans.close()
    clearTimeout(this.next)
    this.unneeded.abort()
    // Nothing that is waited for here keeps node running.
    const running = setInterval(() => undefined, 60_000)
    await Promise.all([this.building, this.dropIdle(), this.shared?.close()])
    clearInterval(running)
  }

  /** @returns undefined when something that the plan was made from has changed */
  private async runPlanned(program: string, planned: PlannedRequest): Promise<Served | undefined> {
    this.follow(program, planned.run)
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

  /** Waiting sandboxes follow their plan: after a profile was edited, the old ones are useless. */
  private follow(program: string, run: PlannedRun): void {
    if (this.fits(run.kept)) return void this.built.programs.add(program)
    if (!this.built.programs.has(program) || !isPoolable(run.prepared)) return
    this.built = { launchFile: run.kept.launchFile, programs: new Set([program]) }
    void this.dropIdle()
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
    if (outcome === undefined) return undefined
    this.restMs = REST_MS.first
    return { result: await judge({ ...prepared, request: { ...prepared.request, command } }, outcome), isWarm: true }
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
      void warm.close()
    }
    return undefined
  }

  private takeClaimed(claim: Claim, files: Uint8Array | undefined): WarmSandbox | undefined {
    const { built, warm } = claim
    if (warm === undefined || built !== this.built || !warm.usable || !warm.takes(files)) return this.take(files)
    claim.warm = undefined
    return warm
  }

  /** Sandboxes that were built from another plan serve no run any more. */
  private async admit({ built, warm }: Claim): Promise<void> {
    if (warm === undefined) return
    if (this.isClosed || built !== this.built || !warm.usable || this.idle.size >= this.size) await warm.close()
    else this.idle.add(warm)
  }

  /** One at a time; when enough are ready, only after a quiet moment, since building makes runs slower. */
  private keep(): void {
    clearTimeout(this.next)
    if (this.isClosed || this.building !== undefined || this.idle.size >= this.size) return
    const quietMs = this.idle.size > this.size / 3 ? QUIET_MS : 0
    const wait = Math.max(quietMs, this.restUntilMs - performance.now())
    this.next = setTimeout(() => this.build(), wait).unref()
  }

  private build(): void {
    const { built } = this
    const opening = { signal: this.unneeded.signal, onGone: (gone: WarmSandbox) => this.lose(gone) }
    // A process that cannot be started, for want of memory, throws: as for every other failure, it is tried again later.
    const opened = WarmSandbox.open(built.launchFile, opening).catch(() => undefined)
    this.building = opened.then(async (warm) => {
      if (warm === undefined) this.rest()
      await this.admit({ built, warm })
      this.building = undefined
      this.keep()
    })
  }

  /** The host's mounts have changed, or it was killed. */
  private lose(warm: WarmSandbox): void {
    if (!this.idle.delete(warm) || this.isClosed) return
    this.rest()
    this.keep()
  }

  /** Where building fails, or is for nothing, again and again, it must not take a whole processor. */
  private rest(): void {
    this.restUntilMs = performance.now() + this.restMs
    this.restMs = Math.min(2 * this.restMs, REST_MS.last)
  }

  /** The waiting sandboxes are useless now. */
  private async dropIdle(): Promise<void> {
    const all = [...this.idle]
    this.idle.clear()
    await Promise.all(all.map((warm) => warm.close()))
  }
}
