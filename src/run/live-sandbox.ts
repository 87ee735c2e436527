/**
 * A sandbox that lives while a program gives it commands, one after the other or several at once: they see the same files, processes and
 * network, and may go on with each other's directory, variables and functions. It is a run like every other, which serves (native/client/exec-in.c);
 * its own command only sleeps. With this process it ends.
 * Edge: the file system, processes.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type ChildEnd, runChild, signalOf } from '../backends/child-process.ts'
import { backendNamed } from '../backends/index.ts'
import { outcomeOfLaunch } from '../backends/launch-status.ts'
import type { Outcome } from '../backends/outcome.ts'
import { type ErrorCode, SandboxError } from '../error.ts'
import { ownDirectory } from '../host/own-directory.ts'
import { exactCwd } from '../os/exact-cwd.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { checkNativeProgram, hostCall } from '../os/native-programs.ts'
import { isOwnDirectory } from '../os/private-files.ts'
import { isGone, isHere, ownIdentity } from '../os/process-identity.ts'
import { promised } from '../os/promised.ts'
import type { PolicyLayer } from '../policy/layer.ts'
import type { Result } from '../report/result.ts'
import { type GuardedCallbacks, withCallbacks } from './callbacks.ts'
import { exec, judge } from './exec.ts'
import { prepareZones } from './make-zones.ts'
import { type ExecOptions, type Prepared, prepare } from './plan-run.ts'
import { newRunId } from './run-id.ts'

export type LiveOptions = Pick<ExecOptions, 'profile' | 'policy' | 'layers' | 'cwd' | 'env' | 'cowContinue'>

export interface LiveCommand extends Pick<ExecOptions, 'command' | 'onStdout' | 'onStderr' | 'signal'> {
  /** In addition to those of the sandbox. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Where it starts, absolute; default the directory where commands start, or that of the state. */
  readonly workdir?: string
  /** Milliseconds; the time limit of the policy holds, too. */
  readonly timeout?: number
  /** Starts with directory, variables and functions of the last such command, and leaves its own; `reset` forgets them before. */
  readonly keepState?: boolean | 'reset'
  readonly stdin?: NonNullable<ExecOptions['stdin']>
}

/** Of the sandbox itself. Plans depend on their program only by its toolchain, and this one has none. */
const SLEEPS = ['sleep', '2147483647']
/** Its own time is not that of one command. */
const LIVES: PolicyLayer['values'] = { resources: { timeout: 'none' }, tty: false }

/** Milliseconds that the end of a command may take after its time: the signal, the kill, the rest of its output. */
const GRACE_MS = 500

/** Milliseconds in which the end of a sandbox is known after that of its command. */
const END_MS = 2_000

/** Warnings by the state of a shell (STATE_* of native/lib/init-protocol.h). */
const WARNINGS: Readonly<Record<string, string>> = {
  2: 'the earlier state remains, because the shell left no whole one at its exit (after exec, or with a trap for EXIT)',
  3: 'the earlier state remains, because that of this command is larger than 1 MiB',
}

/** @throws SandboxError for a policy or a host that allows no such sandbox */
export async function openLiveSandbox(options: LiveOptions): Promise<LiveSandbox> {
  const prepared = await prepareZones(() => prepare({ ...options, command: SLEEPS, mode: 'capture' }))
  const { plan, facts } = prepared
  if (!backendNamed(plan.backend).hasLaunchFile)
    throw new SandboxError('NO_BACKEND', `a sandbox of the backend ${plan.backend} runs one command only.`, {
      hint: '--backend namespace',
    })
  const directory = makePlace(options.env ?? process.env, facts.uid)
  const live = new LiveSandbox(prepared, directory)
  await live.start(options)
  return live
}

/** Its directory is named for this process, so those of processes that were killed are found and removed. */
function makePlace(env: NonNullable<ExecOptions['env']>, uid: number): string {
  const all = join(ownDirectory(env, uid), 'live')
  makeDirectories(all, 0o700)
  if (!isOwnDirectory(all, uid))
    throw new SandboxError('SETUP_FAILED', `${all}: is not this user's alone.`, { hint: `ls -ld ${all}` })
  for (const name of readdirSync(all)) {
    const identity = identityIn(name)
    if (isHere(identity) && isGone(identity)) rmSync(join(all, name), { recursive: true, force: true })
  }
  const place = join(all, encodeURIComponent(`${ownIdentity()} ${newRunId()}`))
  mkdirSync(place, { mode: 0o700 })
  return place
}

/** Empty for what this program did not name. */
function identityIn(name: string): string {
  try {
    return decodeURIComponent(name).split(' ')[0] ?? ''
  } catch {
    return ''
  }
}

export class LiveSandbox {
  private readonly over = promised<Result | undefined>()
  /** How it ended; never rejects. */
  readonly ended = this.over.promise
  private readonly abort = new AbortController()
  private isOver = false

  constructor(
    private readonly prepared: Prepared,
    private readonly directory: string,
  ) {}

  get hasEnded(): boolean {
    return this.isOver
  }

  /** @throws SandboxError where it does not come to live */
  async start({ layers = [], ...options }: LiveOptions): Promise<void> {
    const own: PolicyLayer = {
      layer: 'flag',
      source: 'a live sandbox',
      directory: options.cwd ?? exactCwd(),
      values: LIVES,
    }
    const serving = new Promise<'serves'>((resolve, reject) => {
      const serve = { runId: newRunId(), directory: this.directory, onServing: () => resolve('serves') }
      exec({
        ...options,
        layers: [...layers, own],
        command: SLEEPS,
        mode: 'capture',
        stdin: 'ignore',
        signal: this.abort.signal,
        serve,
      }).then(
        (result) => {
          this.end(result)
          reject(notStarted(result))
        },
        (error: unknown) => {
          this.end(undefined)
          reject(error)
        },
      )
    })
    await serving
  }

  private end(result: Result | undefined): void {
    this.isOver = true
    rmSync(this.directory, { recursive: true, force: true })
    this.over.resolve(result)
  }

  /** Ends everything in it. @returns how it ended */
  async close(): Promise<Result | undefined> {
    this.abort.abort('SIGTERM')
    return await this.ended
  }

  /** @throws whatever a listener or `stdin` has failed with, which ends the command */
  async run({ stdin = 'ignore', ...asked }: LiveCommand): Promise<Result> {
    return await withCallbacks({ ...asked, stdin }, (callbacks) => this.runGuarded({ ...asked, ...callbacks }))
  }

  private async runGuarded(asked: Omit<LiveCommand, 'stdin'> & GuardedCallbacks): Promise<Result> {
    const { output = null, timeoutMs } = this.prepared.plan.limits
    const ownMs =
      asked.timeout !== undefined && asked.timeout < (timeoutMs ?? Number.POSITIVE_INFINITY) ? asked.timeout : undefined
    const limitMs = ownMs ?? timeoutMs
    const end = await runChild({
      launch: this.launchOf(asked, limitMs),
      stdio: {
        mode: 'capture',
        stdin: asked.stdin ?? 'ignore',
        outputCap: output,
        ...(asked.onStdout && { onStdout: asked.onStdout }),
        ...(asked.onStderr && { onStderr: asked.onStderr }),
      },
      signal: asked.signal,
      // That program holds the time itself; from here on no listener is waited for.
      deadlineMs: limitMs === undefined ? undefined : limitMs + GRACE_MS,
      stop: async (child) => void child.kill(signalOf(asked.signal?.reason)),
    })
    const { outcome, warnings } = readEnd(end)
    const { request } = this.prepared
    const result = await judge({ ...this.prepared, request: { ...request, command: asked.command } }, outcome)
    // Its supervisor hears of the end a moment later, and the next command must not be asked of it.
    if (result.reason === 'lost') await Promise.race([this.ended, afterMs(END_MS)])
    const isOwnTime = ownMs !== undefined && result.reason === 'timeout'
    return {
      ...result,
      warnings: [...result.warnings, ...warnings],
      ...(isOwnTime && { message: `stopped after ${ownMs} ms (timeout of this command)` }),
    }
  }

  private launchOf(
    { command, env = {}, workdir, keepState = false }: Omit<LiveCommand, 'stdin'>,
    timeoutMs: number | undefined,
  ) {
    const variables = Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined)
    const words = [
      ...[this.directory, String(process.pid), '--report'],
      ...(this.prepared.plan.tty ? ['--tty'] : []),
      ...(workdir === undefined ? [] : ['--workdir', workdir]),
      ...(timeoutMs === undefined ? [] : ['--timeout', `${Math.max(1, Math.round(timeoutMs))}ms`]),
      ...(keepState === false ? [] : [keepState === 'reset' ? '--keep-state=reset' : '--keep-state']),
      ...variables.flatMap(([name]) => ['--env', name]),
    ]
    const { file, argv } = hostCall('exec-in', [...words, '--', ...command])
    checkNativeProgram(file, process.arch)
    return {
      file,
      argv,
      env: Object.fromEntries(variables),
      cwd: '/',
      descriptors: [{ fd: 3, carries: 'status' }] as const,
    }
  }
}

const afterMs = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref())

const notStarted = ({ error, message, reason }: Result): SandboxError =>
  new SandboxError(
    (error?.code as ErrorCode | undefined) ?? 'SETUP_FAILED',
    error?.message ?? `the sandbox ended at its start (${reason}) ${message}`,
    {
      hint: error?.hint ?? 'llm-do doctor',
    },
  )

/** The state in the first line, launch's report in the second one. */
function readEnd(end: ChildEnd): { readonly outcome: Outcome; readonly warnings: readonly string[] } {
  const [state = '', ...rest] = end.status.split('\n')
  const warning = WARNINGS[state]
  return {
    outcome: outcomeOfLaunch({ ...end, status: rest.join('\n') }),
    warnings: warning === undefined ? [] : [warning],
  }
}
