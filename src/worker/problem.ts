/** A problem of a worker or workshop file: where, what was expected, what stands there. Pure. */
import { SandboxError } from '../error.ts'
import { neutralise } from '../report/text.ts'
import type { SourceLocation } from './worker.ts'

export interface Problem extends SourceLocation {
  readonly expected: string
  readonly got: string
  /** A word that was probably meant. */
  readonly near?: string | undefined
}

/** `reviewer.worker:7: sandbox.zones.0.mode: expected ro, rw or tmpfs, got "wr" (string). Did you mean "rw"?` */
export function problemLine({ near, expected, got, ...where }: Problem): string {
  const question = near === undefined ? '' : ` Did you mean "${near}"?`
  return `${locationText(where)} expected ${expected}, got ${got}.${question}`
}

/** `reviewer.worker:7: sandbox.network:`, safe to print whatever the file is called. */
export function locationText({ file, line, key }: SourceLocation): string {
  const position = line === undefined ? file : `${file}:${line}`
  return neutralise(key === '' ? `${position}:` : `${position}: ${key}:`)
}

const FORMATS = 'llm-do workers check   (docs/reference/workers.md has every shape)'

/** @param problems at least one */
export function invalidWorker(problems: readonly Problem[], hint = FORMATS): SandboxError {
  return refusal({ code: 'WORKER_INVALID', lines: problems.map(problemLine), hint })
}

/** One error with every finished line. */
export function refusal(input: {
  readonly code: 'WORKER_INVALID' | 'POLICY_ESCALATION'
  readonly lines: readonly string[]
  readonly hint: string
}): SandboxError {
  const { code, lines, hint } = input
  const [first = ''] = lines
  return lines.length === 1
    ? new SandboxError(code, first, { hint })
    : new SandboxError(code, `${lines.length} problems.`, { hint, problems: lines })
}
