/**
 * One client: its tools, what it can still read of long outputs, and the changes of its copy-on-write commands, each of which goes on with
 * those of the one before it. So such commands take turns, and so do diff, apply and discard.
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
import { Output, Outputs } from './outputs.ts'
import { type Report, reporting } from './progress.ts'
import type { Runner } from './runner.ts'
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
  private readonly runner: Runner
  private readonly outputs = new Outputs()
  private readonly turns: Turns
  /** The run that has the changes which wait. */
  private waiting: string | undefined
  private readonly underWay = new Set<Promise<unknown>>()
  private readonly closed = new AbortController()

  constructor(runner: Runner) {
    this.runner = runner
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
    this.outputs.forget()
    return this.waiting
  }

  private readonly tools: Tools = {
    run_command: (values, call) => this.turns.take(call.signal, () => this.runCommand(values, call)),
    read_output: async (place) => {
      const piece: ResultOf<'read_output'> = { ...this.outputs.read(place) }
      return answer([], piece, [piece.text])
    },
    diff: (values, { signal }) => this.turns.take(signal, () => this.diff(values)),
    apply: ({ paths }, { signal }) => this.turns.take(signal, () => this.apply(paths)),
    discard: (_, { signal }) => this.turns.take(signal, () => this.discard()),
  }

  private async runCommand(asked: ArgumentsOf<'run_command'>, { signal, report }: Call): Promise<CallToolResult> {
    const { command, args, cwd, stdin, timeout_ms: timeoutMs } = asked
    const words = args === undefined ? ['sh', '-c', command] : [command, ...args]
    const output = new Output()
    const deadline = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
    const progress = reporting(report, { onStdout: output.stdout.push, onStderr: output.stderr.push })
    try {
      const ran = await this.runner
        .run({
          ...progress.listeners,
          words,
          cwd,
          stdin,
          signal: deadline === undefined ? signal : AbortSignal.any([signal, deadline]),
          cowContinue: this.waiting,
        })
        .catch((error: unknown) => this.refused(error, words))
      if (this.runner.isCopyOnWrite && ran.error === undefined) this.waiting = ran.cow?.id
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
    if (error.code === 'LAYER_NOT_FOUND') this.waiting = undefined
    return refusal(error, words, this.runner.plan.profile)
  }

  private get layer(): Layer | undefined {
    return this.waiting === undefined ? undefined : findLayer(this.waiting, this.runner.granted.env)
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
    // What was left out goes on to be seen by the next command.
    if (done.conflicts.length === 0 && (await changesOf(layer)).length === 0) this.waiting = undefined
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
    this.waiting = undefined
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
