/** Lines of a batch: a task in, a result out. Pure. */
import {
  didYouMean,
  isMapping,
  jsonLine,
  type Mapping,
  mappingIn,
  NEEDS,
  type Need,
  parseDuration,
  quoteText,
  quoteValue,
} from '../core.ts'
import type { Task, TaskReport } from './port.ts'
import { taskProblem } from './task.ts'

/** A line without a valid task; it gets a result, too. */
export interface WrongLine {
  readonly id: string
  readonly problem: string
}

const KEYS = ['id', 'command', 'stdin', 'env', 'timeout', 'require']

/** @param number from 1: the ID of a line that names none */
export function readTaskLine(text: string, number: number, directory: string): Task | WrongLine {
  const value = mappingIn(text)
  if (value === undefined) return { id: String(number), problem: `line ${number}: expected an object of JSON` }
  const id = typeof value['id'] === 'string' || typeof value['id'] === 'number' ? String(value['id']) : String(number)
  const task = taskOf(value, id, directory)
  const problem = typeof task === 'string' ? task : taskProblem(task)
  return typeof task === 'object' && problem === undefined ? task : { id, problem: `line ${number}: ${problem}` }
}

/** @returns what is wrong with it */
function taskOf(value: Mapping, id: string, directory: string): Task | string {
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key))
  if (unknown !== undefined) return `${quoteText(unknown)}: no key of a task.${didYouMean(unknown, KEYS)}`
  const { command, stdin, env = {}, timeout, require = [] } = value
  const words = wordsOf(command)
  if (words === undefined) return 'command: expected a text or a list of words'
  if (stdin !== undefined && typeof stdin !== 'string') return 'stdin: expected a text'
  if (!isVariables(env)) return 'env: expected an object of texts'
  if (!isNeeds(require)) return `require: expected a list of ${NEEDS.join(', ')}`
  const limit = timeout === undefined ? undefined : parseDuration(timeout)
  if (limit?.ok === false) return `timeout: expected a duration such as 30s, got ${quoteValue(timeout)}`
  return {
    id,
    commands: [words],
    directory,
    env,
    require,
    ...(stdin !== undefined && { stdin }),
    ...(limit !== undefined && { timeoutMs: limit.value }),
  }
}

/** A text is a script of a shell, as `-c` takes it. */
function wordsOf(command: unknown): readonly string[] | undefined {
  if (typeof command === 'string') return ['/bin/sh', '-c', command]
  return Array.isArray(command) && command.every((word) => typeof word === 'string') ? command : undefined
}

const isVariables = (value: unknown): value is Readonly<Record<string, string>> =>
  isMapping(value) && Object.values(value).every((one) => typeof one === 'string')

const isNeeds = (value: unknown): value is readonly Need[] =>
  Array.isArray(value) && value.every((need) => NEEDS.some((known) => known === need))

export const isOk = (report: TaskReport): boolean => report.status === 'finished' && report.exitCode === 0

/** `{id, ok, exitCode, reason, stdout, stderr, ...}`, or with `error` what did not run. */
export function resultLine(id: string, report: TaskReport): string {
  if (report.status === 'finished') {
    const { status: _, resultZip: __, isolation: ___, ...rest } = report
    return jsonLine({ id, ok: isOk(report), ...rest })
  }
  const { cause, code, message } = report
  return jsonLine({ id, ok: false, error: { cause, ...(code !== undefined && { code }), message } })
}
