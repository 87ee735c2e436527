/**
 * Filters that need not be compiled: those of the shipped profiles, as they were compiled when the program was built. Pure.
 */

/** Words that ask for a filter (filter.ts) -> the filter, in hexadecimal. */
export type PrecompiledFilters = Readonly<Record<string, string>>

/** Filled in by scripts/build.mjs. Empty when run from the sources, where every filter is compiled. */
export const PRECOMPILED_FILTERS: PrecompiledFilters = {}
