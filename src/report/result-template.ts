/**
 * The JSON of a run that ends in an ordinary way, made before the run: segments of text with slots between them, which native/client/result-template.c
 * fills in. Everything that the result takes from the plan is in the segments. Pure.
 */

import { NO_CAPTURE } from '../backends/capture.ts'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import type { Outcome } from '../backends/outcome.ts'
import type { Slot } from '../contract.ts'
import type { Plan } from '../plan/plan.ts'
import { classify } from './classify.ts'
import { inForm, type JsonForm, jsonLine, type ShellForm, type TaskForm } from './json.ts'
import type { Result } from './result.ts'

/** The command ended by itself and there is nothing to report: all values without a slot are the same for each such run. */
export const ORDINARY: Outcome = {
  cause: 'exit',
  exitCode: 0,
  signal: null,
  stdout: NO_CAPTURE,
  stderr: NO_CAPTURE,
  setupMs: 0,
  durationMs: 0,
  usage: { cpuMs: 0, peakMemory: 0, peakPids: 0 },
  killed: 0,
  warnings: [],
}

interface Slots {
  readonly native: Partial<Record<keyof Result, Slot | Required<Record<keyof Result['usage'], Slot>>>>
  readonly shell: Partial<Record<keyof ShellForm, Slot>>
  readonly task: Partial<Record<keyof TaskForm, Slot>>
}

/** Key of the object in each form -> its slot. */
const SLOTS: Slots = {
  native: {
    ok: 'ok',
    exitCode: 'exit-code',
    stdout: 'stdout',
    stderr: 'stderr',
    durationMs: 'duration',
    setupMs: 'setup',
    command: 'command',
    usage: {
      cpuMs: 'cpu-time',
      peakMemory: 'peak-memory',
      peakPids: 'peak-pids',
      readBytes: 'read-bytes',
      writeBytes: 'write-bytes',
    },
  },
  shell: { stdout: 'stdout', stderr: 'stderr', exit_code: 'exit-code' },
  task: { success: 'ok', stdout: 'stdout', stderr: 'stderr', exitCode: 'exit-code', executionTime: 'whole-duration' },
}

/** JSON escapes quotes and NUL in every other string, so this is found nowhere else. */
const MARK = '\0slot '
const MARKED = /"\\u0000slot ([a-z-]+)"/

const marksOf = (slots: object): object =>
  Object.fromEntries(
    Object.entries(slots).map(([key, slot]) => [key, typeof slot === 'string' ? MARK + slot : marksOf(slot)]),
  )

/** Keys that are left out where nothing was counted: the slot writes key and value. */
const COUNTED = /,"(?:peakPids|readBytes|writeBytes)":$/

/** Records of a launch file: how much of each stream is kept, and the template, segment by segment. */
export function templateRecords(plan: Plan, form: JsonForm): readonly LaunchRecord[] {
  const line = jsonLine({ ...inForm(classify(plan, ORDINARY, []), form), ...marksOf(SLOTS[form]) })
  const segments = line.trimEnd().split(MARKED)
  // Segments and names of slots alternate, with a segment first and last.
  const records = segments.flatMap((text, at): LaunchRecord[] =>
    at % 2 === 0 ? [['result', text.replace(COUNTED, ''), segments[at + 1] ?? 'end']] : [],
  )
  return [['capture', plan.limits.output ?? 'all'], ...records]
}
