/** The one error that carries every problem of a policy. */
import { SandboxError } from '../error.ts'

/** More than this does not help people, and a file of a megabyte can have a great many. */
const MOST_PROBLEMS = 100

const OF_FILES = 'llm-do profiles show default   (docs/reference/profiles.md lists every key)'
const OF_FLAGS = 'llm-do exec --help   (man llm-do-exec explains every option)'

/** A problem of an option, or of its variable. */
const OF_A_CALL = /^(?:--|"?LLM_DO_EXEC_)/

/** @param found at least one, each a finished line */
export function invalidPolicy(found: readonly string[]): SandboxError {
  const rest = found.length - MOST_PROBLEMS
  const problems = rest > 0 ? [...found.slice(0, MOST_PROBLEMS), `and ${rest} more.`] : found
  const head = problems.length === 1 ? '' : `${found.length} problems:\n  `
  return new SandboxError('POLICY_INVALID', head + problems.join('\n  '), {
    hint: found.every((problem) => OF_A_CALL.test(problem)) ? OF_FLAGS : OF_FILES,
    problems,
  })
}
