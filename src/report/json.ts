/** Result -> one line of JSON, in the shape that a caller asked for. Pure; the text never holds a raw line break. */

import type { Reason, Result } from './result.ts'

/** `native` is the whole result; `shell` and `task` are what tool users already parse. */
export const JSON_FORMS = ['native', 'shell', 'task'] as const
export type JsonForm = (typeof JSON_FORMS)[number]

/** The form that an option names; a switch that the environment turns on (`true`) means the default one. */
export function jsonForm(value: string | boolean | readonly string[] | undefined): JsonForm | undefined {
  if (value === undefined || value === false) return undefined
  return JSON_FORMS.find((form) => form === value) ?? 'native'
}

/** `--json=shell`: what a shell tool of an agent returns. */
export interface ShellForm {
  readonly stdout: string
  readonly stderr: string
  /** As a shell shows it, 128+N for a signal; -1 after the deadline. */
  readonly exit_code: number
  /** Something is missing from stdout or stderr. */
  readonly truncated: boolean
  /** Only when the bytes are not UTF-8: both streams are base64. */
  readonly encoding?: 'base64'
}

/** `--json=task`: what a Docker task executor returns. */
export interface TaskForm {
  readonly success: boolean
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number
  /** Milliseconds, whole. */
  readonly executionTime: number
  readonly timedOut: boolean
  /** Why it did not succeed, in one line; absent when the command's own exit code says it all. */
  readonly error?: string
  readonly encoding?: 'base64'
}

const TIMED_OUT = -1

/** A caller that only knows stderr must still learn why there is none. */
function stderrWithMessage({ stderr, encoding, error }: Result): string {
  return error === undefined || encoding === 'base64'
    ? stderr
    : `${stderr}llm-do: error ${error.code}: ${error.message}\n`
}

function encodingOf({ encoding }: Result): { readonly encoding?: 'base64' } {
  return encoding === 'base64' ? { encoding } : {}
}

export function shellForm(result: Result): ShellForm {
  const { stdout, truncated, reason, exitStatus } = result
  return {
    stdout,
    stderr: stderrWithMessage(result),
    exit_code: reason === 'timeout' ? TIMED_OUT : exitStatus,
    truncated: truncated.stdout + truncated.stderr > 0,
    ...encodingOf(result),
  }
}

/** Reasons that an exit code tells alone. */
const ORDINARY: ReadonlySet<Reason> = new Set(['exit', 'signal'])

export function taskForm(result: Result): TaskForm {
  const { ok, stdout, stderr, reason, exitStatus, durationMs, error, message } = result
  const why = error?.message ?? (ORDINARY.has(reason) ? '' : message)
  return {
    success: ok,
    stdout,
    stderr,
    exitCode: exitStatus,
    executionTime: Math.round(durationMs),
    timedOut: reason === 'timeout',
    ...(why === '' ? {} : { error: why }),
    ...encodingOf(result),
  }
}

/** The object that is printed. */
export function inForm(result: Result, form: JsonForm): Result | ShellForm | TaskForm {
  if (form === 'shell') return shellForm(result)
  return form === 'task' ? taskForm(result) : result
}

/**
 * JSON.stringify escapes every control character and lone surrogate; U+2028 and U+2029 are escaped here, because
 * programs that split text into lines at them would split the object.
 */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value)
  return /[\u2028\u2029]/.test(text) ? text.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029') : text
}

/** One object, one line, ended by a line feed. */
export const jsonLine = (object: object): string => `${jsonText(object)}\n`

export function printJson(result: Result, form: JsonForm = 'native'): string {
  return jsonLine(inForm(result, form))
}
