/**
 * The sandbox that stays for one client (`session` of run_command). Its commands take turns, each with the state of the one before. What a command
 * leaves running is killed at its end, so only files and the state stay. The sandbox ends with its client, when the client is idle for long, and with
 * copy-on-write before anything else needs the changes, since only then they are known.
 * Edge: the clock.
 */

import type { ExecResult, LiveSandbox } from '../core.ts'
import type { Command, Runner } from './runner.ts'
import { Turns } from './turns.ts'

/** Milliseconds without a command. */
const IDLE_MS = 15 * 60_000

export interface KeptCommand extends Command {
  readonly isNew: boolean
}

/** The run that has the pending changes of a client. */
export interface Changes {
  waiting: string | undefined
}

export class KeptSandbox {
  private readonly turns = new Turns(1)
  private live: LiveSandbox | undefined
  private idle: NodeJS.Timeout | undefined
  /** Why there is none any more, for the next command. */
  private lost: string | undefined

  constructor(
    private readonly runner: Runner,
    private readonly changes: Changes,
  ) {}

  get isOpen(): boolean {
    return this.live !== undefined
  }

  run({ isNew, ...command }: KeptCommand): Promise<ExecResult> {
    return this.turns.take(command.signal, async () => {
      clearTimeout(this.idle)
      if (isNew) await this.endNow(undefined)
      if (this.live?.hasEnded === true) await this.endNow('it ended without having been asked to')
      const warnings = isNew || this.lost === undefined ? [] : [`a new session has begun: ${this.lost}`]
      this.live ??= await this.runner.openLive(this.changes.waiting)
      this.lost = undefined
      const result = await this.runner.runIn(this.live, command)
      this.idle = setTimeout(() => void this.end('it was idle for 15 minutes'), IDLE_MS).unref()
      return { ...result, warnings: [...warnings, ...result.warnings] }
    })
  }

  /** Ends it, if there is one. @param why for the next command */
  async end(why: string | undefined): Promise<void> {
    await this.turns.take(new AbortController().signal, () => this.endNow(why))
  }

  private async endNow(why: string | undefined): Promise<void> {
    clearTimeout(this.idle)
    const { live } = this
    this.live = undefined
    if (live === undefined) return
    this.lost = why
    const ended = await live.close()
    if (this.runner.isCopyOnWrite && ended !== undefined) this.changes.waiting = ended.cow?.id
  }
}
