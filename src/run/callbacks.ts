/**
 * The caller's part in a run: the listeners of its output, and the source of its input. An error in one of them ends the run, and is the
 * error that the caller gets: a run without its listener has not succeeded. Pure.
 */
import type { Listener } from '../backends/capture.ts'
import type { ChildStdio } from '../backends/child-process.ts'
import { bytesInput, type Input } from '../backends/input.ts'
import type { ExecOptions } from './plan-run.ts'

export type Callbacks = Pick<ExecOptions, 'stdin' | 'onStdout' | 'onStderr' | 'signal'>

/** The same, none of which fails any more. */
export interface GuardedCallbacks extends Callbacks {
  readonly stdin?: ChildStdio['stdin']
}

export const inputOf = (stdin: NonNullable<Callbacks['stdin']>): ChildStdio['stdin'] =>
  stdin instanceof Uint8Array ? bytesInput(stdin) : stdin

/**
 * @param run with callbacks that never fail, and a signal that is aborted when one of them would have
 * @throws the first error of a callback, when the run is over
 */
export async function withCallbacks<T>(given: Callbacks, run: (guarded: GuardedCallbacks) => Promise<T>): Promise<T> {
  const { onStdout, onStderr } = given
  // Nothing of the caller's that could fail.
  if (given.stdin === undefined && onStdout === undefined && onStderr === undefined)
    return run(given.signal === undefined ? {} : { signal: given.signal })
  const stdin = given.stdin && inputOf(given.stdin)
  const input = typeof stdin === 'string' ? undefined : stdin
  const failure = new Failure(given.signal)
  try {
    const done = await run({
      signal: failure.signal,
      ...(stdin !== undefined && { stdin: input === undefined ? stdin : failure.ofInput(input) }),
      ...(onStdout !== undefined && { onStdout: failure.ofListener(onStdout) }),
      ...(onStderr !== undefined && { onStderr: failure.ofListener(onStderr) }),
    })
    failure.throwIfAny()
    return done
  } finally {
    failure.forget()
    input?.close()
  }
}

class Failure {
  private readonly abort = new AbortController()
  private first: { readonly error: unknown } | undefined
  private readonly follow = (): void => this.abort.abort(this.outer?.reason)

  constructor(private readonly outer: AbortSignal | undefined) {
    if (outer?.aborted === true) this.follow()
    outer?.addEventListener('abort', this.follow)
  }

  get signal(): AbortSignal {
    return this.abort.signal
  }

  throwIfAny(): void {
    if (this.first !== undefined) throw this.first.error
  }

  forget(): void {
    this.outer?.removeEventListener('abort', this.follow)
  }

  /** After a failure it hears nothing more. */
  ofListener(listener: Listener): Listener {
    return (chunk) => {
      if (this.first !== undefined) return undefined
      try {
        const pending = listener(chunk)
        return isPromise(pending) ? Promise.resolve(pending).catch(this.note) : undefined
      } catch (error) {
        return this.note(error)
      }
    }
  }

  ofInput(input: Input): Input {
    const piece: Input['piece'] = (index) => {
      const next = input.piece(index)
      if (next instanceof Promise) next.catch(this.note)
      return next
    }
    return { ...input, piece }
  }

  private readonly note = (error: unknown): void => {
    this.first ??= { error }
    this.abort.abort()
  }
}

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
