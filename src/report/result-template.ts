/**
 * The JSON of a run, for the caller and for the audit log, made before it: segments of text with slots between them, which native/client/result-template.c
 * fills in. Everything that the result takes from the plan is in the segments; what depends on the kind of the end is in foreseen-ends.ts. Pure.
 */

import { NO_CAPTURE } from '../backends/capture.ts'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import type { NetworkReport, Outcome } from '../backends/outcome.ts'
import type { Slot } from '../contract.ts'
import type { Plan } from '../plan/plan.ts'
import { auditObject } from './audit.ts'
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

const NOTHING_REACHED: NetworkReport = { hosts: [], omitted: 0, isLost: false }

function ordinaryOutcome({ network }: Plan): Outcome {
  return network.mode === 'restricted' ? { ...ORDINARY, network: NOTHING_REACHED } : ORDINARY
}

interface Slots {
  readonly native: Partial<Record<keyof Result, Slot | Required<Record<keyof Result['usage'], Slot>>>>
  readonly shell: Partial<Record<keyof ShellForm, Slot>>
  readonly task: Partial<Record<keyof TaskForm, Slot>>
}

const USAGE = {
  cpuMs: 'cpu-time',
  peakMemory: 'peak-memory',
  peakPids: 'peak-pids',
  readBytes: 'read-bytes',
  writeBytes: 'write-bytes',
} as const

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
    usage: USAGE,
    signal: 'signal',
    reason: 'reason',
    message: 'message',
    denials: 'denials',
    hints: 'hints',
    error: 'error',
  },
  shell: { stdout: 'stdout', stderr: 'stderr', exit_code: 'exit-code' },
  task: {
    success: 'ok',
    stdout: 'stdout',
    stderr: 'stderr',
    exitCode: 'exit-code',
    executionTime: 'whole-duration',
    timedOut: 'timed-out',
    error: 'error',
  },
}

/** Key of a line of the audit log -> its slot. */
const AUDIT_SLOTS = {
  time: 'time',
  decidedBy: 'decided-by',
  argvSha256: 'argv-hash',
  argv: 'command',
  exitCode: 'exit-code',
  durationMs: 'duration',
  usage: USAGE,
  reason: 'reason',
  signal: 'signal',
  denials: 'denials',
  error: 'error',
  prev: 'previous-hash',
} as const

/** Slots that hold something else after another kind of end. */
const OF_THE_END: readonly string[] = [
  'ok',
  'exit-code',
  'stderr',
  'signal',
  'reason',
  'message',
  'denials',
  'hints',
  'error',
  'timed-out',
]

const endSlots = (slots: object): Readonly<Record<string, Slot>> =>
  Object.fromEntries(Object.entries(slots).filter(([, slot]) => OF_THE_END.includes(slot)))

/** For each form: key -> slot. */
export const END_SLOTS = {
  native: endSlots(SLOTS.native),
  shell: endSlots(SLOTS.shell),
  task: endSlots(SLOTS.task),
  audit: endSlots(AUDIT_SLOTS),
} as const

/** JSON escapes quotes and NUL in every other string, so this is found nowhere else. */
const MARK = '\0slot '
const MARKED = /"\\u0000slot ([a-z-]+)"/

const marksOf = (slots: object): object =>
  Object.fromEntries(
    Object.entries(slots).map(([key, slot]) => [key, typeof slot === 'string' ? MARK + slot : marksOf(slot)]),
  )

/** Keys that are left out where nothing was counted or went wrong: the slot writes key and value. */
const OPTIONAL = /,"(?:peakPids|readBytes|writeBytes|error)":$/

/** Segments and names of slots alternate, with a segment first and last. */
function segmentsOf(verb: 'result' | 'record', marked: object): readonly LaunchRecord[] {
  const segments = jsonLine(marked).trimEnd().split(MARKED)
  return segments.flatMap((text, at): LaunchRecord[] =>
    at % 2 === 0 ? [[verb, text.replace(OPTIONAL, ''), segments[at + 1] ?? 'end']] : [],
  )
}

/** With a place for an error. */
const ordinaryResult = (plan: Plan): Result => ({
  ...classify(plan, ordinaryOutcome(plan), []),
  error: { code: '', message: 'an error', hint: '' },
})

/** Records of a launch file: how much of each stream is kept, and the template, segment by segment. */
export function templateRecords(plan: Plan, form: JsonForm): readonly LaunchRecord[] {
  const marked = { ...inForm(ordinaryResult(plan), form), ...marksOf(SLOTS[form]) }
  return [['capture', plan.limits.output ?? 'all'], ...segmentsOf('result', marked)]
}

/** What the log says of a run that was let happen. @param worker its name */
export function auditOf(result: Result, worker: string | undefined): object {
  return auditObject({ time: '', result, ...(worker !== undefined && { worker }), decision: 'run', decidedBy: '' }, '')
}

/** The same for a run that is recorded: the log, absolute, and the line that is appended to it. @param worker its name */
export function auditRecords(plan: Plan, file: string, worker: string | undefined): readonly LaunchRecord[] {
  const marked = { ...auditOf(ordinaryResult(plan), worker), ...marksOf(AUDIT_SLOTS) }
  return [['audit', file], ...segmentsOf('record', marked)]
}
