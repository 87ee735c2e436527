/**
 * What the client hands over of a run that has ended: two lines, of what was captured and of what launch reported.
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
  const end = text.indexOf('\n')
  const status = text.slice(end + 1)
  if (end === 0) return { status }
  const { stdout, stderr } = JSON.parse(text.slice(0, end)) as Record<keyof Captured, HandedOver>
  return { status, captured: { stdout: captureFrom(stdout), stderr: captureFrom(stderr) } }
}
