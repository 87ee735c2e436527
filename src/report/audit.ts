/**
 * One run -> one line of the audit log. Each line carries the SHA-256 of the line before it, so a line that is changed,
 * removed or slipped in later breaks the chain from there on. (Lines cut off at the very end leave a valid shorter
 * chain: to notice that, keep the last hash somewhere else.) Values of the environment are never written.
 */
import { createHash } from 'node:crypto'
import { mappingIn } from '../text/json.ts'
import type { Result } from './result.ts'

/** `prev` of the first line. */
export const CHAIN_START = '0'.repeat(64)

export interface AuditEntry {
  /** ISO 8601, UTC. */
  readonly time: string
  readonly result: Result
  /** Name of the worker on whose behalf it ran. */
  readonly worker?: string
  /** `run`, or what refused it. */
  readonly decision: 'run' | 'blocked' | 'refused'
  /** The decider: `policy`, a rule, a person at the prompt. */
  readonly decidedBy: string
}

export function sha256(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** The object that a line is. @param previous hash of the line before, or CHAIN_START */
export function auditObject({ time, result, worker, decision, decidedBy }: AuditEntry, previous: string): object {
  return {
    schema: 1,
    time,
    decision,
    decidedBy,
    // NUL cannot be part of an argument, so no two commands have the same sum.
    argvSha256: sha256(result.command.map((word) => `${word}\0`).join('')),
    argv: result.command,
    reason: result.reason,
    exitCode: result.exitCode,
    signal: result.signal,
    durationMs: result.durationMs,
    usage: result.usage,
    denials: result.denials,
    ...(result.error === undefined ? {} : { error: result.error.code }),
    // The client has what follows from the plan (plan-words.ts).
    ...(worker === undefined ? {} : { worker }),
    profile: result.profile,
    planHash: result.planHash,
    backend: result.backend,
    ...(result.network === undefined ? {} : { network: result.network }),
    prev: previous,
  }
}

/** @returns the line without its line feed */
export function auditLine(entry: AuditEntry, previous: string): string {
  return JSON.stringify(auditObject(entry, previous))
}

/** The problem of one line, `undefined` for none. */
export function checkAuditLine(line: string | Uint8Array, previous: string): string | undefined {
  const entry = mappingIn(typeof line === 'string' ? line : Buffer.from(line).toString('utf8'))
  if (entry === undefined) return 'is not a JSON object: its writer died half-way, or the file was edited by hand'
  if (entry['prev'] === previous) return undefined
  return `does not continue the line before: expected prev ${previous}, got ${JSON.stringify(entry['prev'] ?? null)}`
}
