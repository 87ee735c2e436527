/** What the client tells of an end, filled in, is what node would tell of it. */
import { constants } from 'node:os'
import { describe, expect, test } from 'vitest'
import type { LaunchRecord } from '../../src/backends/namespace/launch-file.ts'
import type { Outcome } from '../../src/backends/outcome.ts'
import { auditObject } from '../../src/report/audit.ts'
import { classify } from '../../src/report/classify.ts'
import { exitStatus } from '../../src/report/exit-status.ts'
import { endRecords } from '../../src/report/foreseen-ends.ts'
import { inForm, JSON_FORMS, type JsonForm } from '../../src/report/json.ts'
import { auditRecords, templateRecords } from '../../src/report/result-template.ts'
import { resultLines } from '../../src/report/text.ts'
import { outcome, plan } from './fixtures.ts'

interface End {
  readonly kind: string
  readonly number: number
  readonly outcome: Partial<Outcome>
}

const notExecuted = (errno: 'ENOENT' | 'EACCES' | 'EISDIR' | 'ENOEXEC' | 'ENOTDIR' | 'ELOOP'): End => {
  const failure = { step: 'init: exec', path: '', errno, detail: '' }
  return { kind: 'exec', number: constants.errno[errno], outcome: { cause: 'exec', exitCode: null, failure } }
}
const endedBy = (signal: NodeJS.Signals): End => ({
  kind: 'signal',
  number: constants.signals[signal],
  outcome: { exitCode: null, signal },
})
const late = (killed: number): End => ({
  kind: 'deadline',
  number: Math.min(killed, 2),
  outcome: { cause: 'deadline', exitCode: null, signal: killed === 1 ? 'SIGTERM' : 'SIGKILL', killed },
})

const ENDS: readonly End[] = [
  ...(['ENOENT', 'EACCES', 'EISDIR', 'ENOEXEC', 'ENOTDIR', 'ELOOP'] as const).map(notExecuted),
  ...(['SIGSEGV', 'SIGTERM', 'SIGKILL', 'SIGPIPE'] as const).map(endedBy),
  ...[0, 1, 2, 37].map(late),
]
const titled = ENDS.map((end) => [`${end.kind} ${end.number}`, end] as const)

const PROGRAM = 'a "quoted" prog'
const node = (end: End) => classify(plan(), outcome(end.outcome), [PROGRAM])

const telling = (form?: JsonForm) => ({ origins: {}, form, isAudited: form === undefined })

/** As filling_at finds it. */
function fillingAt(records: readonly LaunchRecord[], end: End, of: string, slot: string) {
  const { signal } = end.outcome
  const { kind, number } = slot === 'signal' && signal ? endedBy(signal as NodeJS.Signals) : end
  const at = (wanted: readonly unknown[]) =>
    records.find((record) => record[0] === 'filling' && wanted.every((word, place) => record[place + 1] === word))
  return at([of, kind, number, slot]) ?? at([of, 'exit', 0, slot])
}

function filled(records: readonly LaunchRecord[], end: End, of: string, slot: string): string | undefined {
  const found = fillingAt(records, end, of, slot)
  if (found === undefined) return undefined
  const [, , , , , before, mark, after] = found
  const program = of === 'message' ? PROGRAM : JSON.stringify(PROGRAM).slice(1, -1)
  return `${before}${mark === 'program' ? program : mark === 'killed' ? end.outcome.killed : ''}${after}`
}

const ENDS_NOW = ['signal', 'reason', 'message', 'denials', 'hints', 'error', 'timed-out']

/** The template with what was foreseen in its slots; the rest of them as `SLOT`. */
function filledTemplate(
  verb: 'result' | 'record',
  template: readonly LaunchRecord[],
  ends: readonly LaunchRecord[],
  end: End,
) {
  const text = template
    .filter(([one]) => one === verb)
    .map(
      ([, segment, slot]) =>
        `${segment}${slot === 'end' ? '' : (filled(ends, end, verb, `${slot}`) ?? open(`${slot}`))}`,
    )
    .join('')
  return JSON.parse(text) as Readonly<Record<string, unknown>>
}

function open(slot: string): string {
  expect(ENDS_NOW).not.toContain(slot)
  // Written with their keys; nothing was counted.
  return ['peak-pids', 'read-bytes', 'write-bytes'].includes(slot) ? '' : '"SLOT"'
}

const isOpen = (value: unknown): boolean => value === 'SLOT' || JSON.stringify(value)?.includes('"SLOT"') === true

/** Where the template has something, it is the same; what is left open is the client's. */
function expectSame(found: Readonly<Record<string, unknown>>, byNode: object, leftOpen: readonly string[]): void {
  const known = Object.entries(found).filter(([, value]) => !isOpen(value))
  expect(Object.keys(found)).toEqual(Object.keys(JSON.parse(JSON.stringify(byNode))))
  expect(Object.keys(found).filter((key) => isOpen(found[key]))).toEqual(leftOpen)
  expect(Object.fromEntries(known)).toEqual(
    Object.fromEntries(Object.entries(JSON.parse(JSON.stringify(byNode))).filter(([key]) => !leftOpen.includes(key))),
  )
}

const LEFT_OPEN = {
  native: ['stdout', 'stderr', 'durationMs', 'setupMs', 'command', 'usage'],
  shell: ['stdout', 'stderr'],
  task: ['stdout', 'stderr', 'executionTime'],
} as const

describe('what is left with a plan', () => {
  test.each(titled)('is what people read of %s, and the exit status', (_, end) => {
    const records = endRecords(plan(), telling())
    const byNode = resultLines(node(end)).map((line) => `${line}\n`)
    expect(filled(records, end, 'message', 'message')).toBe(byNode.join(''))
    const ending = records.find(
      ([verb, kind, number]) => verb === 'ending' && kind === end.kind && number === end.number,
    )
    expect(ending?.[3]).toBe(exitStatus(node(end)))
  })

  test.each(JSON_FORMS.flatMap((form) => titled.map(([title, end]) => [form, title, end] as const)))(
    'is the JSON, %s, of %s',
    (form, _, end) => {
      const found = filledTemplate('result', templateRecords(plan(), form), endRecords(plan(), telling(form)), end)
      // A shell hears on stderr of what was not executed, which has printed nothing.
      const isTold = form === 'shell' && end.kind === 'exec'
      expectSame(
        found,
        inForm(node(end), form),
        LEFT_OPEN[form].filter((key) => !(isTold && key === 'stderr')),
      )
    },
  )

  test.each(titled)('is the line of the audit log of %s', (_, end) => {
    const found = filledTemplate('record', auditRecords(plan(), '/l', 'w'), endRecords(plan(), telling()), end)
    const entry = { time: '', result: node(end), worker: 'w', decision: 'run', decidedBy: '' } as const
    const leftOpen = ['time', 'decidedBy', 'argvSha256', 'argv', 'durationMs', 'usage', 'prev']
    expectSame(found, auditObject(entry, ''), leftOpen)
  })

  test('has what an exit leaves in each form', () => {
    const exit: End = { kind: 'exit', number: 0, outcome: {} }
    for (const form of JSON_FORMS) {
      const found = filledTemplate('result', templateRecords(plan(), form), endRecords(plan(), telling(form)), exit)
      const computed = { native: ['ok', 'exitCode'], shell: ['exit_code'], task: ['success', 'exitCode'] }[form]
      const order = Object.keys(inForm(node(exit), form)).filter((key) =>
        [...LEFT_OPEN[form], ...computed].includes(key),
      )
      expectSame(found, inForm(node(exit), form), order)
    }
  })
})

test.each([undefined, 'native'] as const)('a mark that is found twice leaves nothing of that end: %s', (form) => {
  const origins = {
    'resources.timeout': [{ layer: 'profile', source: '/p/987654321.yaml', key: 'resources.timeout' }],
  } as const
  const records = endRecords(plan(), { origins, form, isAudited: true })
  const deadlines = records.filter(([verb, kind]) => verb === 'ending' && kind === 'deadline')
  expect(deadlines.map(([, , number]) => number)).toEqual([0, 1])
  const many = records.filter(([verb, , kind, number]) => verb === 'filling' && kind === 'deadline' && number === 2)
  expect(many).toEqual([])
})
