/**
 * The methods by which a program that uses the library handles the changes of a run: next to the data, and left out of its JSON.
 * Edge: this process as the caller.
 */
import type { Change } from '../cow/change.ts'
import {
  type Applied,
  type ApplyOptions,
  applyLayer,
  changesOf,
  discardLayer,
  findLayer,
  undoLayer,
} from '../cow/layers.ts'
import type { PendingChanges } from '../cow/pending.ts'
import type { Result } from '../report/result.ts'
import { type Diff, type DiffOptions, diffLayer } from './diff.ts'
import { exec } from './exec.ts'
import type { ExecOptions } from './plan-run.ts'
import { refuseVariables } from './refuse-variables.ts'

export interface CopyOnWrite extends PendingChanges {
  /** All of them, as they are now. */
  readonly changes: () => Promise<readonly Change[]>
  readonly diff: (options?: Omit<DiffOptions, 'env'>) => Promise<Diff>
  /** All or nothing; conflicts are in the answer. */
  readonly apply: (options?: ApplyOptions) => Promise<Applied>
  /** @returns the first path that has changed since the apply; then nothing was undone */
  readonly undo: () => Promise<string | undefined>
  readonly discard: () => Promise<void>
}

export interface ExecResult extends Result {
  readonly cow?: CopyOnWrite
  /** With reason `cancelled`: the very value that `signal` was aborted with. Not enumerable, since it may be anything: JSON has the message. */
  readonly abortReason?: unknown
}

/** Runs one command in one sandbox; see run/exec.ts. */
export async function execWithHandle(options: ExecOptions): Promise<ExecResult> {
  refuseVariables(options.env)
  return withHandle(await exec(options), { env: options.env, signal: options.signal })
}

export function withHandle(
  { cow, ...result }: Result,
  { env = process.env, signal }: { readonly env: ExecOptions['env']; readonly signal: AbortSignal | undefined },
): ExecResult {
  const handled: ExecResult = cow === undefined ? result : { ...result, cow: handleOf(cow, env) }
  return result.reason === 'cancelled' && signal?.aborted === true
    ? Object.defineProperty(handled, 'abortReason', { value: signal.reason })
    : handled
}

function handleOf(cow: PendingChanges, env: NonNullable<ExecOptions['env']>): CopyOnWrite {
  const layer = () => findLayer(cow.id, env)
  return {
    ...cow,
    changes: async () => await changesOf(layer()),
    diff: async (options = {}) => await diffLayer(layer(), { ...options, env }),
    apply: async (options = {}) => await applyLayer(layer(), options),
    undo: async () => await undoLayer(layer()),
    discard: async () => await discardLayer(layer()),
  }
}
