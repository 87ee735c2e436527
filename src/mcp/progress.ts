/**
 * Tells a client that a command is still at work: with what it prints, and without that once a second.
 * Edge: the clock.
 */
import { type Listener, neutralise } from '../core.ts'
import { textOf } from './text.ts'

export interface Progress {
  /** Milliseconds since the command was asked for: it only grows, and the total is unknown. */
  readonly progress: number
  readonly message: string
}

export type Report = (progress: Progress) => void

interface Listeners {
  readonly onStdout: Listener
  readonly onStderr: Listener
}

const HEARTBEAT_MS = 1_000
/** A command that prints a lot does not flood its client. */
const SHORTEST_MS = 200
/** Characters of the last line. */
const LONGEST_LINE = 200

/** @returns listeners that hand on what they hear; `end` when the command has ended */
export function reporting(report: Report | undefined, listeners: Listeners) {
  if (report === undefined) return { listeners, end: () => undefined }
  const begun = performance.now()
  const said = { at: Number.NEGATIVE_INFINITY, message: 'running' }
  const say = (): void => {
    said.at = performance.now() - begun
    report({ progress: said.at, message: said.message })
  }
  const hearing =
    (listener: Listener): Listener =>
    (chunk) => {
      said.message = lastLineOf(chunk) ?? said.message
      if (performance.now() - begun - said.at >= SHORTEST_MS) say()
      return listener(chunk)
    }
  const timer = setInterval(say, HEARTBEAT_MS)
  return {
    listeners: { onStdout: hearing(listeners.onStdout), onStderr: hearing(listeners.onStderr) },
    end: () => clearInterval(timer),
  }
}

function lastLineOf(chunk: Uint8Array): string | undefined {
  const lines = textOf(chunk.subarray(-4 * LONGEST_LINE)).text.split(/[\r\n]+/)
  const last = lines.findLast((line) => line.trim() !== '')
  return last === undefined ? undefined : neutralise(last.slice(-LONGEST_LINE))
}
