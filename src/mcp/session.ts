/**
 * One client: its tools, the long outputs that it can still read, and the changes of its copy-on-write commands. Each such command
 * continues with the changes of the one before it, so they take turns, and so do diff, apply and discard.
 */
import {
  applyLayer,
  changesOf,
  diffLayer,
  discardLayer,
  findLayer,
  type Layer,
  neutralise,
  type Result,
  refusal,
  SandboxError,
  unshownText,
} from '../core.ts'
import { answer, changesData, commandAnswer, errorAnswer } from './answer.ts'
import { type Changes, KeptSandbox } from './kept-sandbox.ts'
import { Output, Outputs } from './outputs.ts'
import { type Report, reporting } from './progress.ts'
import type { Command, Runner } from './runner.ts'
import type { CallToolResult } from './sdk.ts'
import type { ArgumentsOf, ResultOf, ToolName } from './tools.ts'
import { Turns } from './turns.ts'

export interface Call {
  readonly signal: AbortSignal
  /** Tells a client that asked for it how far its call has come. */
  readonly report: Report | undefined
}

type Tools = { readonly [Name in ToolName]: (values: ArgumentsOf<Name>, call: Call) => Promise<CallToolResult> }

export class Session {
  private readonly outputs = new Outputs()
  private readonly turns: Turns
  private readonly changes: Changes = { waiting: undefined }
  /** Of the commands that go on with each other's state. */
  private readonly kept: KeptSandbox
  private readonly underWay = new Set<Promise<unknown>>()
  private readonly closed = new AbortController()

  constructor(private readonly runner: Runner) {
    this.kept = new KeptSandbox(runner, this.changes)
    this.turns = new Turns(runner.isCopyOnWrite ? 1 : Number.POSITIVE_INFINITY)
  }

  /** A refusal is an answer, too: what the model reads it can mend. */
  call(name: ToolName, values: unknown, call: Call): Promise<CallToolResult> {
    const signal = AbortSignal.any([call.signal, this.closed.signal])
    const tool = this.tools[name] as (values: unknown, call: Call) => Promise<CallToolResult>
    const work = tool(values, { ...call, signal }).catch(errorAnswer)
    this.underWay.add(work)
    return work.finally(() => this.underWay.delete(work))
  }

  get isBusy(): boolean {
    return this.underWay.size > 0
  }

  /** Ends what is under way and waits for it. @returns the run whose changes a person may still apply */
  async close(): Promise<string | undefined> {
    this.closed.abort('SIGTERM')
    await Promise.allSettled(this.underWay)
    if (this.kept.isOpen) await this.kept.end(undefined)
    this.outputs.forget()
    return this.changes.waiting
  }

  private readonly tools: Tools = {
    run_command: (values, call) => this.turns.take(call.signal, () => this.runCommand(values, call)),
    read_output: async (place) => {
      const piece = this.outputs.read(place)
      return answer([], piece, [piece.text])
    },
    diff: (values, { signal }) => this.turns.take(signal, () => this.afterKept('diff', () => this.diff(values))),
    apply: ({ paths }, { signal }) => this.turns.take(signal, () => this.afterKept('apply', () => this.apply(paths))),
    discard: (_, { signal }) => this.turns.take(signal, () => this.afterKept('discard', () => this.discard())),
  }

  /** The changes of a sandbox that stays are known when it has ended. */
  private async afterKept<T>(by: string, then: () => Promise<T>): Promise<T> {
    if (this.runner.isCopyOnWrite) await this.kept.end(`${by} has ended the one before`)
    return await then()
  }

  private start(session: ArgumentsOf<'run_command'>['session'], command: Command): Promise<Result> {
    if (session === 'none') return this.afterKept('a command in a fresh sandbox', () => this.startFresh(command))
    return this.kept.run({ ...command, isNew: session === 'new' })
  }

  private async startFresh(command: Command): Promise<Result> {
    const ran = await this.runner.run({ ...command, cowContinue: this.changes.waiting })
    if (this.runner.isCopyOnWrite && ran.error === undefined) this.changes.waiting = ran.cow?.id
    return ran
  }

  private async runCommand(asked: ArgumentsOf<'run_command'>, { signal, report }: Call): Promise<CallToolResult> {
    const { command, args, cwd, session, stdin, timeout_ms: timeoutMs } = asked
    const words = args === undefined ? ['sh', '-c', command] : [command, ...args]
    const output = new Output()
    const deadline = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
    const progress = reporting(report, { onStdout: output.stdout.push, onStderr: output.stderr.push })
    try {
      const ran = await this.start(session, {
        ...progress.listeners,
        words,
        cwd,
        stdin,
        signal: deadline === undefined ? signal : AbortSignal.any([signal, deadline]),
        cowContinue: undefined,
      }).catch((error: unknown) => this.refused(error, words))
      const isLate = ran.reason === 'cancelled' && deadline?.aborted === true && !signal.aborted
      return commandAnswer(isLate ? timedOut(ran, timeoutMs) : ran, output)
    } finally {
      progress.end()
      this.outputs.add(output)
    }
  }

  /** Changes that a person has discarded in the meantime are gone: the next command begins with what the host has. */
  private refused(error: unknown, words: readonly string[]): Result {
    if (!(error instanceof SandboxError)) throw error
    if (error.code === 'LAYER_NOT_FOUND') this.changes.waiting = undefined
    return refusal(error, words, this.runner.plan.profile)
  }

  private get layer(): Layer | undefined {
    return this.changes.waiting === undefined ? undefined : findLayer(this.changes.waiting, this.runner.granted.env)
  }

  private async diff({ paths, stat }: ArgumentsOf<'diff'>): Promise<CallToolResult> {
    const { layer } = this
    const output = new Output()
    if (layer === undefined) return answer(['nothing has changed'], { patch: output.show('stdout'), inGit: [] })
    const { patch, inGit, unshown } = await diffLayer(layer, { paths, stat, env: this.runner.granted.env })
    output.stdout.push(patch)
    this.outputs.add(output)
    const shown = output.show('stdout')
    const data: ResultOf<'diff'> = {
      patch: shown,
      ...(shown.gap !== undefined && { output: output.id }),
      changes: changesData(layer.id, await changesOf(layer)),
      inGit: [...inGit],
    }
    const unseen = unshownText(unshown)
    const more = [
      ...(inGit.length === 0 ? [] : [`${inGit.length} changes inside .git are not in the patch`]),
      ...(unseen === '' ? [] : [`the patch does not show ${unseen}`]),
    ]
    return answer(more, data, [shown.text])
  }

  private async apply(paths: readonly string[]): Promise<CallToolResult> {
    const { layer } = this
    if (layer === undefined) return answer(['nothing has changed'], NOTHING_APPLIED)
    const done = await applyLayer(layer, { paths, withoutProtected: true })
    // The next command still sees changes that were left out.
    if (done.conflicts.length === 0 && (await changesOf(layer)).length === 0) this.changes.waiting = undefined
    const data: ResultOf<'apply'> = {
      applied: done.applied,
      conflicts: [...done.conflicts],
      protected: [...done.protected],
      special: [...done.special],
    }
    const lines = [
      ...done.conflicts.map((path) => `conflict: ${neutralise(path)} was changed on the host since the command began`),
      ...done.protected.map((path) => `left out: a person may apply it: llm-do apply ${layer.id} ${neutralise(path)}`),
      ...done.special.map((path) => `left out: ${neutralise(path)} is a device, FIFO or socket`),
      done.conflicts.length > 0 ? 'nothing was applied' : `${done.applied} applied`,
    ]
    return { ...answer(lines, data), ...(done.conflicts.length > 0 && { isError: true }) }
  }

  private async discard(): Promise<CallToolResult> {
    const { layer } = this
    if (layer !== undefined) await discardLayer(layer)
    this.changes.waiting = undefined
    const data: ResultOf<'discard'> = { discarded: layer !== undefined }
    return answer([layer === undefined ? 'nothing has changed' : 'discarded'], data)
  }
}

const NOTHING_APPLIED: ResultOf<'apply'> = { applied: 0, conflicts: [], protected: [], special: [] }

const timedOut = (ran: Result, timeoutMs: number | undefined): Result => ({
  ...ran,
  reason: 'timeout',
  message: `stopped after ${timeoutMs} ms (timeout_ms of this call)`,
})
