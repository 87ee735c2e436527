/** Variables of options that a command does not support: if it ignored them, more could happen than was meant. Pure. */
import { type Environment, variableOf } from '../policy/environment.ts'
import { usageError } from './usage-error.ts'

/** Of one run, or about a person. */
export const NOT_OF_TASKS = ['worker', 'workshop', 'audit', 'apply', 'cow-continue', 'plan']

/**
 * @param names of options
 * @param program the words that start it
 * @throws SandboxError USAGE for the first variable that is set
 */
export function refuseVariables(env: Environment, names: readonly string[], program: string): void {
  const refused = variableOf(names, env)
  if (refused !== undefined)
    throw usageError(`${refused}: ${program} does not support it.`, `${refused}= ${program} ...`)
}
