/**
 * The plan's share of a result, left for the client with the plan: its words for each reason, the denial that comes with one, and the members of the
 * JSON result and of the audit line that the plan knows. native/client/result.c adds how the run ended. Pure.
 */
import { NO_CAPTURE } from '../backends/capture.ts'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import type { Outcome } from '../backends/outcome.ts'
import type { Plan } from '../plan/plan.ts'
import { auditObject } from './audit.ts'
import { classify } from './classify.ts'
import type { Origins } from './hints.ts'
import { type JsonForm, jsonText } from './json.ts'
import type { Result } from './result.ts'
import { resultLines } from './text.ts'

/** A command that succeeded, with nothing to report. */
const ORDINARY: Outcome = {
  reason: 'exit',
  exitCode: 0,
  signal: null,
  exitStatus: 0,
  stdout: NO_CAPTURE,
  stderr: NO_CAPTURE,
  setupMs: 0,
  durationMs: 0,
  usage: { cpuMs: 0, peakMemory: 0, peakPids: 0 },
  killed: 0,
  warnings: [],
}

/** Reasons with words of the plan, each with an outcome that has it; with a count of one. */
const ENDED: readonly Partial<Outcome>[] = [
  { reason: 'timeout' },
  { reason: 'cpu-time' },
  { reason: 'memory', events: { oomKill: 1, pidsMax: 0, throttledMs: 0 } },
  { reason: 'pids', events: { oomKill: 0, pidsMax: 1, throttledMs: 0 } },
  { reason: 'seccomp', signal: 'SIGSYS' },
]

interface Reader {
  readonly origins: Origins
  /** The form of JSON that is printed; undefined where people read a message. */
  readonly form: JsonForm | undefined
}

/** Entries of a launch file. */
export function wordRecords(plan: Plan, { origins, form }: Reader): readonly LaunchRecord[] {
  const results = ENDED.map((end) =>
    // The warnings are known before the run, and printed then.
    classify({ ...plan, warnings: [] }, { ...ORDINARY, exitCode: null, ...end }, [], { origins }),
  )
  return results.filter((result) => form !== undefined || isPrintedByClient(result)).flatMap(recordsOf)
}

/** The client prints the message and the hint as they are; Node also spells what does not print, and lists denials that no hint covers. */
function isPrintedByClient(result: Result): boolean {
  const { message, hints } = result
  const lines = [message, ...hints.map((hint) => `hint: ${hint}`)]
  return resultLines(result).join('\n') === lines.map((line) => `llm-do: ${line}`).join('\n')
}

function recordsOf({ reason, message, hints, denials }: Result): readonly LaunchRecord[] {
  const [hint = '', ...more] = hints
  if (more.length > 0) return []
  return [
    ['reason', reason, message, hint],
    ...denials.map(
      ({ layer, operation, target, fix, key }): LaunchRecord => ['denial', reason, layer, operation, target, fix, key],
    ),
  ]
}

/** Members of the JSON result, and of a line of the audit log, that the plan knows; the last ones of each. */
const RESULT_MEMBERS = [
  'backend',
  'profile',
  'planHash',
  'limits',
  'isolation',
  'devices',
  'network',
  'warnings',
] as const
const AUDIT_MEMBERS = ['worker', 'profile', 'planHash', 'backend', 'network'] as const

function membersOf(object: Readonly<Record<string, unknown>>, names: readonly string[]): string {
  const members = names.filter((name) => object[name] !== undefined).map((name) => [name, object[name]])
  return jsonText(Object.fromEntries(members)).slice(1, -1)
}

function ordinaryResult(plan: Plan): Result {
  const isRestricted = plan.network.mode === 'restricted'
  return classify(plan, { ...ORDINARY, ...(isRestricted && { network: { hosts: [], omitted: 0, isLost: false } }) }, [])
}

/** How much of each stream is kept, and the form of the result. */
export function resultRecords(plan: Plan, form: JsonForm): readonly LaunchRecord[] {
  const members = form === 'native' ? membersOf({ ...ordinaryResult(plan) }, RESULT_MEMBERS) : ''
  return [
    ['capture', plan.limits.output ?? 'all'],
    ['result', form, members],
  ]
}

/** For a run that is recorded. @param file the log, absolute @param worker its name */
export function auditRecords(plan: Plan, file: string, worker: string | undefined): readonly LaunchRecord[] {
  const result = ordinaryResult(plan)
  const entry = { time: '', result, ...(worker !== undefined && { worker }), decision: 'run', decidedBy: '' } as const
  return [['audit', file, membersOf({ ...auditObject(entry, '') }, AUDIT_MEMBERS)]]
}
