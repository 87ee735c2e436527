import { SandboxError } from '../error.ts'

/** A command line that cannot be understood. @param hint a command line that can */
export function usageError(message: string, hint: string): SandboxError {
  return new SandboxError('USAGE', message, { hint })
}
