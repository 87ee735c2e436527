/**
 * Waiting between attempts: longer each time, never in step with other machines.
 * Edge: timers, chance.
 */
import { setTimeout as sleep } from 'node:timers/promises'

const FIRST_MS = 500
const LONGEST_MS = 30_000

/** Between half and all of twice the last one. */
export const delayMs = (attempt: number, random = Math.random()): number =>
  Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 10)) * (0.5 + random / 2)

/** A tenth more or less: a thousand agents that were started at once do not ask at once. */
export const jittered = (ms: number, random = Math.random()): number => ms * (0.9 + random / 5)

/** Returns early when `signal` is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

/**
 * Tries until it succeeds.
 * @param isFinal an error that no attempt mends
 * @throws the last error, when it is final or `signal` is aborted
 */
export async function persist<T>(
  attempt: () => Promise<T>,
  {
    signal,
    isFinal,
    onError,
  }: { signal: AbortSignal; isFinal: (error: unknown) => boolean; onError: (error: unknown) => void },
): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await attempt()
    } catch (error) {
      if (isFinal(error) || signal.aborted) throw error
      if (failures === 0) onError(error)
      await pause(delayMs(failures), signal)
    }
  }
}

/** A signal that is aborted so long after another one, for as long as that one is heard. */
export function later(signal: AbortSignal, ms: number): { readonly signal: AbortSignal; readonly forget: () => void } {
  const controller = new AbortController()
  const abort = (): void => void setTimeout(() => controller.abort(), ms).unref()
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return { signal: controller.signal, forget: () => signal.removeEventListener('abort', abort) }
}
