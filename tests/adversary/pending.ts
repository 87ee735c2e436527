/** Rows whose fix is on its way; this list goes with the last of them. */
export const PENDING: ReadonlySet<string> = new Set(['state.profile-hard-link'])
