/**
 * The values that differ from run to run: the id and the start time.
 * Edge: the clock, randomness.
 */
import { randomHex } from '../os/random-id.ts'

/** 80 random bits, lower case: unique without coordination. */
export function newRunId(): string {
  return randomHex(10)
}

/** Milliseconds since 1970, to compare with times of files. */
export function now(): number {
  return Date.now()
}
