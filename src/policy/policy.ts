/**
 * A policy: the checked sum of profiles, workshop, worker, environment and flags.
 * Plain data with every default filled in. Sizes are bytes, times are milliseconds; `null` means "no limit".
 */
import type { PolicyValues } from './keys/index.ts'
import type { Origin } from './values.ts'

/** Sizes in bytes, times in milliseconds. */
export type Resources = PolicyValues['resources']

/** The values of all keys, and what is not a key. */
export type Policy = PolicyValues & {
  /** Name or path of the profile that was asked for. */
  readonly profile: string
  /**
   * Absolute host paths, as they are reached, that decide the next run: files in use, those that would be found first, our own
   * directories. Every step of them stays as it is wherever a rw zone would show it; see plan/names.ts.
   */
  readonly protectFiles: readonly string[]
  /** Dotted key -> who set it, every layer that did, last one wins. */
  readonly origins: Readonly<Record<string, readonly Origin[]>>
}
