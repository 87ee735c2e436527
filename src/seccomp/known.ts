/**
 * Filters that need not be compiled: those of the shipped profiles, as they were compiled when the program was built. Pure.
 */

/** Words that ask for a filter (filter.ts) -> the filter, in hexadecimal. */
export type KnownFilters = Readonly<Record<string, string>>

/** Filled in by scripts/build.mjs. Run from the sources nothing is known, and every filter is compiled. */
export const KNOWN_FILTERS: KnownFilters = {}
