/**
 * Ends of a run that can be foreseen: a program that is not there, a signal, the deadline. What people read of each, and what its JSON and its line of
 * the audit log have otherwise than those of an exit, is left with the plan; the client tells it where nothing else is to be said
 * (native/client/foreseen-end.c). Pure.
 */
import { constants } from 'node:os'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import type { Outcome } from '../backends/outcome.ts'
import type { Slot } from '../contract.ts'
import type { Plan } from '../plan/plan.ts'
import { classify } from './classify.ts'
import { exitStatus } from './exit-status.ts'
import type { Origins } from './hints.ts'
import { inForm, type JsonForm, jsonText } from './json.ts'
import type { Result } from './result.ts'
import { auditOf, END_SLOTS, ORDINARY } from './result-template.ts'
import { resultLines } from './text.ts'

/** Stand for what is known at the end: no other text of a run holds them. */
const PROGRAM = 'name-of-the-program'
const MANY = 987_654_321

interface End {
  readonly kind: 'exec' | 'signal' | 'deadline' | 'exit'
  readonly number: number
  readonly outcome: Partial<Outcome>
}

const notExecuted = (errno: string): Partial<Outcome> => ({
  cause: 'exec',
  failure: { step: '', path: '', errno, detail: '' },
})

const { ENOENT, EACCES, EISDIR, ENOEXEC, ENOTDIR, ELOOP } = constants.errno
/** A missing interpreter is node's to tell: the hint says where the script's first line leads. */
const NOT_EXECUTED: readonly End[] = Object.entries({ ENOENT, EACCES, EISDIR, ENOEXEC, ENOTDIR, ELOOP }).map(
  ([errno, number]) => ({ kind: 'exec', number, outcome: notExecuted(errno) }),
)

/** SIGSYS may be the filter's. */
const SIGNALS = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGKILL',
  'SIGUSR1',
  'SIGSEGV',
  'SIGUSR2',
  'SIGPIPE',
  'SIGALRM',
  'SIGTERM',
] as const
const KILLED_BY: readonly End[] = SIGNALS.map((signal) => ({
  kind: 'signal',
  number: constants.signals[signal],
  outcome: { signal },
}))

const LATE: readonly End[] = [0, 1, 2].map((number) => ({
  kind: 'deadline',
  number,
  outcome: { cause: 'deadline', killed: number === 2 ? MANY : number },
}))

/** People at a terminal hear of a command that has failed by itself. */
const FAILED: End = { kind: 'exit', number: 0, outcome: { exitCode: 1 } }
const EXITED: End = { kind: 'exit', number: 0, outcome: { exitCode: 0 } }

export interface Telling {
  readonly origins: Origins
  /** The form of JSON that is printed; undefined where a message for people is printed instead. */
  readonly form: JsonForm | undefined
  readonly isAudited: boolean
}

/** One text that the end decides about. */
interface Text {
  readonly of: 'message' | 'result' | 'record'
  readonly slot: Slot
  readonly text: string
}

/** Entries of a launch file. */
export function endRecords(plan: Plan, telling: Telling): readonly LaunchRecord[] {
  const textsOf = (end: End): readonly Text[] => textsAt(resultAt(plan, end, telling), telling)
  const exited = telling.form === undefined ? textsOf(FAILED).filter(({ of }) => of === 'message') : []
  const standard = textsOf(EXITED).filter(({ of }) => of !== 'message')
  const ends = [...NOT_EXECUTED, ...KILLED_BY, ...LATE].flatMap((end): readonly LaunchRecord[] => {
    const fillings = fillingsOf(end, withoutSame(textsOf(end), standard))
    return fillings === undefined
      ? []
      : [['ending', end.kind, end.number, exitStatus(resultAt(plan, end, telling))], ...fillings]
  })
  return [...(fillingsOf(EXITED, [...exited, ...standard].filter(isLeftOpen)) ?? []), ...ends]
}

/** The client knows an exit code, whether that is a success, and what the command has printed. */
const isLeftOpen = ({ slot, text }: Text): boolean =>
  !['ok', 'exit-code', 'stderr'].includes(slot) && (slot !== 'message' || text !== '')

const withoutSame = (texts: readonly Text[], others: readonly Text[]): readonly Text[] =>
  texts.filter((one) => !others.some(({ of, slot, text }) => of === one.of && slot === one.slot && text === one.text))

function resultAt(plan: Plan, { outcome }: End, { origins, form }: Telling): Result {
  // The warnings are known before the run, and said then.
  const told = { ...plan, warnings: [] }
  return classify(told, { ...ORDINARY, exitCode: null, ...outcome }, [PROGRAM], {
    origins,
    isAtTerminal: form === undefined,
  })
}

function textsAt(result: Result, { form, isAudited }: Telling): readonly Text[] {
  return [
    ...(form === undefined ? [messageOf(result)] : slotted('result', inForm(result, form), END_SLOTS[form])),
    ...(isAudited ? slotted('record', auditOf(result, undefined), END_SLOTS.audit) : []),
  ]
}

const messageOf = (result: Result): Text => ({
  of: 'message',
  slot: 'message',
  text: resultLines(result)
    .map((line) => `${line}\n`)
    .join(''),
})

function slotted(of: Text['of'], object: object, slots: Readonly<Record<string, Slot>>): readonly Text[] {
  const values = object as Readonly<Record<string, unknown>>
  return Object.entries(slots).map(([key, slot]) => ({ of, slot, text: textOf(key, slot, values[key]) }))
}

/** An error is left out where there is none: the slot writes its key, too. */
function textOf(key: string, slot: Slot, value: unknown): string {
  if (slot !== 'error') return jsonText(value)
  return value === undefined ? '' : `,"${key}":${jsonText(value)}`
}

/** Where a mark is: anywhere else it is something that only looks like one. */
const MARKED: readonly Slot[] = ['message', 'error', 'stderr']

/** @returns undefined where it cannot be told what is a mark: node tells of such an end */
function fillingsOf({ kind, number, outcome }: End, texts: readonly Text[]): readonly LaunchRecord[] | undefined {
  const mark = kind === 'exec' ? PROGRAM : outcome.killed === MANY ? String(MANY) : undefined
  const fillings = texts.map(({ of, slot, text }): LaunchRecord | undefined => {
    const [before = '', after, ...more] = mark === undefined ? [text] : text.split(mark)
    if (after === undefined) return ['filling', of, kind, number, slot, text, 'none', '']
    const isOne = more.length === 0 && MARKED.includes(slot)
    return isOne
      ? ['filling', of, kind, number, slot, before, kind === 'exec' ? 'program' : 'killed', after]
      : undefined
  })
  return fillings.every((one) => one !== undefined) ? fillings : undefined
}
