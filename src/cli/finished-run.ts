/**
 * The client's report of a run that has ended: three lines, of the captured output, of the audit log (`recorded`, or the
 * descriptors of log and lock), and of launch's report.
 * native/client/main.c writes them.
 *
 * Edge: inherited descriptors.
 */
import { readFileSync } from 'node:fs'
import type { Captured } from '../backends/launch-status.ts'
import type { Capture } from '../backends/outcome.ts'

export interface FinishedRun {
  /** The line of launch; half of it, or nothing, when launch was killed. */
  readonly status: string
  /** It is in the audit log already. */
  readonly isRecorded: boolean
  /** Descriptors of the open audit log and its lock; absent without such a log, and where the line is written. */
  readonly audit?: { readonly log: number; readonly lock: number }
  /** Absent when the output passed through. */
  readonly captured?: Captured
}

interface HandedOver {
  /** Descriptor of a file with the head and the tail. */
  readonly fd: number
  /** Bytes of the head. */
  readonly head: number
  /** All bytes the command wrote. */
  readonly bytes: number
}

function captureFrom({ fd, head, bytes }: HandedOver): Capture {
  const kept = readFileSync(fd)
  return { head: kept.subarray(0, head), tail: kept.subarray(head), bytes }
}

export function readFinishedRun(fd: number): FinishedRun {
  const text = readFileSync(fd, 'utf8')
  const [line = '', recorded, ...rest] = text.split('\n')
  const [, log, lock] = /^(\d+) (\d+)$/.exec(recorded ?? '') ?? []
  const audit = log === undefined ? {} : { audit: { log: Number(log), lock: Number(lock) } }
  const ended = { status: rest.join('\n'), isRecorded: recorded === 'recorded', ...audit }
  if (line === '') return ended
  const { stdout, stderr } = JSON.parse(line) as Record<keyof Captured, HandedOver>
  return { ...ended, captured: { stdout: captureFrom(stdout), stderr: captureFrom(stderr) } }
}
