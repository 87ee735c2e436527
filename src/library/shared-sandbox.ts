/**
 * The one live sandbox of a program or a client: started by the first command, and again by the next one where it has ended. The result of that
 * command says so, since files and state of the earlier ones are gone.
 */
import type { Result } from '../report/result.ts'
import { type LiveCommand, type LiveOptions, type LiveSandbox, openLiveSandbox } from '../run/live-sandbox.ts'
import { closedError } from './closed-error.ts'

interface Living {
  readonly live: LiveSandbox
  readonly warnings: readonly string[]
}

export class SharedSandbox {
  private current: Promise<Living> | undefined
  private isClosed = false

  constructor(private readonly options: LiveOptions) {}

  async run(command: LiveCommand): Promise<Result> {
    this.current = this.living(this.current)
    const { live, warnings } = await this.current
    const result = await live.run(command)
    return warnings.length === 0 ? result : { ...result, warnings: [...warnings, ...result.warnings] }
  }

  /** One call after the other: of several that find none, one starts it. */
  private async living(earlier: Promise<Living> | undefined): Promise<Living> {
    const before = await earlier?.catch(() => undefined)
    if (this.isClosed) throw closedError('sandbox', 'openSandbox')
    if (before?.live.hasEnded === false) return { live: before.live, warnings: [] }
    const warnings = before === undefined ? [] : [await endOf(before.live)]
    return { live: await openLiveSandbox(this.options), warnings }
  }

  /** @returns how it ended; undefined where there was none */
  async close(): Promise<Result | undefined> {
    this.isClosed = true
    const living = await this.current?.catch(() => undefined)
    return await living?.live.close()
  }
}

async function endOf(live: LiveSandbox): Promise<string> {
  const ended = await live.ended
  return `the sandbox of the earlier commands has ended (${ended?.reason ?? 'lost'}), and with it their files and state`
}
