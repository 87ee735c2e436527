/**
 * What people read of a run that ends otherwise than by an exit, made before the run: native/client/failure-message.c prints it where nothing else is to
 * be said. Pure.
 */
import { constants } from 'node:os'
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import type { Outcome } from '../backends/outcome.ts'
import type { Plan } from '../plan/plan.ts'
import { classify } from './classify.ts'
import { exitStatus } from './exit-status.ts'
import type { Origins } from './hints.ts'
import { ORDINARY } from './result-template.ts'
import { resultLines } from './text.ts'

/** Stand for what is known at the end: no other text of a run holds them. */
const PROGRAM = 'name-of-the-program'
const MANY = 987_654_321

const BARE: Outcome = { ...ORDINARY, exitCode: null }

interface Failure {
  readonly kind: 'exec' | 'signal' | 'deadline' | 'exit'
  readonly number: number
  readonly outcome: Partial<Outcome>
}

const notExecuted = (errno: string, detail: string): Partial<Outcome> => ({
  cause: 'exec',
  failure: { step: '', path: '', errno, detail },
})

const { ENOENT, EACCES, EISDIR, ENOEXEC, ENOTDIR, ELOOP } = constants.errno
/** A missing interpreter is node's to tell: the hint says where the script's first line leads. */
const NOT_EXECUTED: readonly Failure[] = Object.entries({ ENOENT, EACCES, EISDIR, ENOEXEC, ENOTDIR, ELOOP }).map(
  ([errno, number]) => ({ kind: 'exec', number, outcome: notExecuted(errno, '') }),
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
const KILLED_BY: readonly Failure[] = SIGNALS.map((signal) => ({
  kind: 'signal',
  number: constants.signals[signal],
  outcome: { signal },
}))

const LATE: readonly Failure[] = [0, 1, 2].map((number) => ({
  kind: 'deadline',
  number,
  outcome: { cause: 'deadline', killed: number === 2 ? MANY : number },
}))

/** Any exit code but 0, at a terminal. */
const FAILED: Failure = { kind: 'exit', number: 0, outcome: { exitCode: 1 } }

/** Entries of a launch file. */
export function messageRecords(plan: Plan, origins: Origins): readonly LaunchRecord[] {
  return [...NOT_EXECUTED, ...KILLED_BY, ...LATE, FAILED].flatMap((failure): LaunchRecord[] => {
    // The warnings are known before the run, and said then.
    const result = classify({ ...plan, warnings: [] }, { ...BARE, ...failure.outcome }, [PROGRAM], {
      origins,
      isAtTerminal: true,
    })
    const text = resultLines(result)
      .map((line) => `${line}\n`)
      .join('')
    const parts = cut(text, failure)
    return parts === undefined ? [] : [['message', failure.kind, failure.number, exitStatus(result), ...parts]]
  })
}

type Slot = 'program' | 'killed' | 'none'

/** @returns undefined where the mark is not found once */
function cut(
  text: string,
  { kind, outcome }: Failure,
): readonly [before: string, slot: Slot, after: string] | undefined {
  if (kind === 'exit') return text === '' ? undefined : [text, 'none', '']
  if (kind === 'signal' || (kind === 'deadline' && outcome.killed !== MANY)) return [text, 'none', '']
  const [slot, mark] = kind === 'deadline' ? (['killed', String(MANY)] as const) : (['program', PROGRAM] as const)
  const [before = '', after, ...more] = text.split(mark)
  return after === undefined || more.length > 0 ? undefined : [before, slot, after]
}
