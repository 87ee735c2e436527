/** The one error that carries every problem of a policy. */
import { SandboxError } from '../error.ts'

/** @param problems at least one, each a finished line */
export function invalidPolicy(problems: readonly string[]): SandboxError {
  const head = problems.length === 1 ? '' : `${problems.length} problems:\n  `
  return new SandboxError('POLICY_INVALID', head + problems.join('\n  '), {
    hint: 'llm-do profiles show default   (docs/profiles.md lists every key)',
    problems,
  })
}
