/**
 * One class and one catalogue for everything that can go wrong with a sandbox.
 * A command that fails is a Result; only a sandbox that fails is a SandboxError.
 */
import { EXIT_KILLED, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_SETUP } from './contract.ts'

/** Stable codes, for programs. Each one is explained in docs/reference/errors.md (a test compares the two). */
export const ERROR_CODES = {
  USAGE: 'The command line cannot be understood.',
  OPTIONS_INVALID: 'The options of a function of the library cannot be understood.',
  POLICY_INVALID: 'A profile, flag or environment value is not a valid policy.',
  POLICY_ESCALATION: 'A worker or workshop asks for more than it was granted.',
  PROFILE_NOT_FOUND: 'No profile has this name.',
  PROFILE_UNREADABLE: 'A profile file exists but cannot be read or parsed.',
  PROFILE_CYCLE: 'Profiles extend each other in a circle.',
  WORKER_INVALID: 'A worker or workshop file cannot be used.',
  WORKER_NOT_FOUND: 'No worker has this name.',
  ZONE_INVALID: 'A zone cannot be mounted as asked.',
  COMMAND_INVALID: 'The command cannot be passed to a process.',
  COMMAND_NOT_FOUND: 'The command does not exist inside the sandbox.',
  COMMAND_NOT_EXECUTABLE: 'The command exists inside the sandbox but cannot be executed.',
  COMMAND_BLOCKED: 'A rule of the worker blocks this command.',
  NO_BACKEND: 'No backend offers all that the policy needs.',
  HELPER_MISSING: 'A native program is missing, foreign or not trustworthy.',
  SETUP_FAILED: 'The sandbox could not be built.',
  BACKEND_FAILED: 'The backend broke while the command ran.',
  OUTPUT_FAILED: 'A result or a message could not be written.',
  OUTPUT_NOT_FOUND: 'A long output of an MCP client is not kept, or not at that place.',
  SANDBOX_CLOSED: 'The sandbox or executor of the library was closed before.',
  SANDBOX_EXISTS: 'A sandbox of this name was started before and was not stopped.',
  SANDBOX_NOT_FOUND: 'No sandbox of this name lives.',
  RUN_NOT_FOUND: 'No failed run of this name is known, or its directory is gone.',
  LAYER_NOT_FOUND: 'No copy-on-write run of this name has changes that wait.',
  LAYER_BUSY: 'The changes of a run are in use: it is not over, or another command works on them.',
  LAYER_FAILED: 'The changes of a run cannot be read, applied, taken back or removed.',
  INTERNAL: 'A defect of llm-do exec itself.',
} as const

export type ErrorCode = keyof typeof ERROR_CODES

export interface SandboxErrorOptions {
  /** The fix; a command where possible. */
  readonly hint?: string
  /** Everything that is wrong when there is more than one thing, one line each. */
  readonly problems?: readonly string[]
  readonly cause?: unknown
}

/** A sandbox that could not do its work: `code` for programs, `message` says what, on what and why, `hint` what to do. */
export class SandboxError extends Error {
  readonly code: ErrorCode
  readonly hint: string
  readonly problems: readonly string[]

  constructor(code: ErrorCode, message: string, options: SandboxErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'SandboxError'
    this.code = code
    this.hint = options.hint ?? ''
    this.problems = options.problems ?? []
  }
}

/** Exit status for an error: 127 and 126 as a shell has them, 137 if the command may have run, 125 if the sandbox failed. */
export function exitStatusOf(code: string): 125 | 126 | 127 | 137 {
  if (code === 'BACKEND_FAILED') return EXIT_KILLED
  if (code === 'COMMAND_NOT_FOUND') return EXIT_NOT_FOUND
  return code === 'COMMAND_BLOCKED' || code === 'COMMAND_NOT_EXECUTABLE' ? EXIT_NOT_EXECUTABLE : EXIT_SETUP
}
