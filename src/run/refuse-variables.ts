/**
 * A program that uses the library judges no command and keeps no record: it must not look as if it did.
 * Edge: this process as the caller.
 */
import { SandboxError } from '../error.ts'
import { type Environment, variableOf } from '../policy/environment.ts'

const OF_COMMAND_LINES = ['worker', 'workshop', 'audit']

/** @throws SandboxError POLICY_INVALID for the first variable that only command lines obey */
export function refuseVariables(env: Environment = process.env): void {
  const refused = variableOf(OF_COMMAND_LINES, env)
  if (refused === undefined) return
  throw new SandboxError('POLICY_INVALID', `${refused}: a program that uses the library does not support it.`, {
    hint: `unset ${refused}, or run the command by llm-do exec`,
  })
}
