/** Why the command never ran: a raw failure -> code, message and hint. Rows of tables, decided by step and errno only. */
import type { ErrorCode } from '../error.ts'
import { explainFailure } from '../host/explain.ts'
import type { Surroundings } from '../host/facts.ts'
import type { SetupFailure } from '../supervisor/outcome.ts'

export interface Explained {
  readonly code: ErrorCode
  readonly message: string
  readonly hint: string
}

const COMMAND_NOT_FOUND = 'COMMAND_NOT_FOUND'
const COMMAND_NOT_EXECUTABLE = 'COMMAND_NOT_EXECUTABLE'

/** Word of `failure.detail` for ENOENT of a file that is there: what its `#!` line, or its ELF header, names is not. */
const INTERPRETER = 'interpreter'

interface ExecRow {
  readonly code: ErrorCode
  readonly what: string
  readonly hint: string
}

/** Reasons of execve(2) for people. What is not in the table is a command that cannot be executed, with its errno. */
const EXEC_FAILURES: Readonly<Record<string, ExecRow>> = {
  EACCES: {
    code: COMMAND_NOT_EXECUTABLE,
    what: 'permission denied',
    hint: 'give it the execute bit (chmod +x), or run it through its interpreter',
  },
  EISDIR: { code: COMMAND_NOT_EXECUTABLE, what: 'is a directory', hint: 'name a program' },
  ENOEXEC: {
    code: COMMAND_NOT_EXECUTABLE,
    what: 'not a program of this machine: wrong architecture, or a script without a #! line',
    hint: 'start a script through its interpreter, for example: sh SCRIPT',
  },
  ENOTDIR: { code: COMMAND_NOT_FOUND, what: 'a part of its path is not a directory', hint: 'check the path' },
  ELOOP: { code: COMMAND_NOT_EXECUTABLE, what: 'too many symbolic links', hint: 'check where its links lead' },
  ETXTBSY: { code: COMMAND_NOT_EXECUTABLE, what: 'the file is open for writing', hint: 'close it first' },
  E2BIG: {
    code: COMMAND_NOT_EXECUTABLE,
    what: 'arguments and environment are too long',
    hint: 'pass long input by stdin or by a file in a zone',
  },
  ENOMEM: {
    code: COMMAND_NOT_EXECUTABLE,
    what: 'not enough memory to load it',
    hint: 'raise --memory or resources.memory',
  },
}

const NOT_FOUND: ExecRow = {
  code: COMMAND_NOT_FOUND,
  what: 'not found in the sandbox',
  hint: 'check the name; a program outside /usr becomes visible with --ro DIRECTORY, what is searched is shown by --plan',
}

const BAD_INTERPRETER: ExecRow = {
  code: COMMAND_NOT_EXECUTABLE,
  what: 'its interpreter is not there',
  hint: 'look at its #! line (or: file COMMAND); an interpreter outside /usr becomes visible with --ro DIRECTORY',
}

function execRow({ errno, detail }: SetupFailure): ExecRow {
  if (errno === 'ENOENT') return detail.includes(INTERPRETER) ? BAD_INTERPRETER : NOT_FOUND
  return (
    EXEC_FAILURES[errno] ?? { code: COMMAND_NOT_EXECUTABLE, what: errno || 'cannot be executed', hint: NOT_FOUND.hint }
  )
}

function inBrackets(words: string): string {
  return words === '' ? '' : ` (${words})`
}

/** A failed execve(2) of the command. @param program its first word, as the caller wrote it */
export function explainExec(failure: SetupFailure, program: string): Explained {
  // An empty word names no file; which errno a search of PATH comes to for it says nothing.
  const { code, what, hint } = program === '' ? NOT_FOUND : execRow(failure)
  const detail = failure.detail === INTERPRETER ? '' : failure.detail
  return { code, message: `${program || "''"}: ${what}${inBrackets(detail)}`, hint }
}

/** What a hint for a failed set-up step is when nothing better is known about it. */
const ASK_DOCTOR = 'llm-do doctor   # tries every part of a sandbox on this machine and names what fails'

/** What is known about the place where a set-up step failed; it makes the explanation narrower. */
export interface FailurePlace {
  /** Executable of the engine, for fixes that name it. */
  readonly program?: string
  readonly around?: Surroundings
}

/** A step of building the sandbox that failed: which one, on what, what the kernel said, and what that means here. */
export function explainSetup(failure: SetupFailure, { program = 'bwrap', around }: FailurePlace = {}): Explained {
  const { step, path, errno, detail } = failure
  const where = path === '' ? '' : ` ${path}`
  const why = errno === '' ? '' : `: ${errno}`
  const seen = `${step}${where}${why}${inBrackets(detail)}`
  const { cause, fix } = explainFailure({ ok: false, step, errno, message: detail }, { program, around })
  return { code: 'SETUP_FAILED', message: fix === '' ? seen : `${seen}: ${cause}`, hint: fix === '' ? ASK_DOCTOR : fix }
}
